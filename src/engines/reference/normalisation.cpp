#include <algorithm>
#include <cmath>

#include "engines/reference/call.h"

namespace trocar::reference {

namespace {

struct Moments {
    double mean = 0;
    double variance = 0;  // of the whole, not of a sample
};

Moments moments_of(const double* x, const Indices& steps) {
    Moments m;
    for (const auto step : steps) {
        m.mean += x[step];
    }
    m.mean /= static_cast<double>(steps.size());
    for (const auto step : steps) {
        m.variance += (x[step] - m.mean) * (x[step] - m.mean);
    }
    m.variance /= static_cast<double>(steps.size());
    return m;
}

void standardize(double* x, const Indices& steps, const Moments& m, double epsilon) {
    const double deviation = std::sqrt(m.variance + epsilon);
    for (const auto step : steps) {
        x[step] = (x[step] - m.mean) / deviation;
    }
}

Indices axes_from(std::size_t first, std::size_t rank) {
    Indices axes;
    for (auto i = first; i < rank; ++i) {
        axes.push_back(i);
    }
    return axes;
}

// Scale and bias of one number per channel: dimension 1.
void scale_channels(Numbers& x, const Shape& shape, const Numbers& scale, const Numbers& bias) {
    const auto channels = size_at(shape, 1);
    require(scale.size() == channels && bias.size() == channels,
            "one scale and one bias per channel are wanted");
    const auto plane = count(Shape(shape.begin() + 2, shape.end()));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const auto c = i / plane % channels;
        x[i] = x[i] * scale[c] + bias[c];
    }
}

constexpr double default_epsilon = 1e-5F;

void batch_normalization(Call& call) {
    const auto shape = call.shape(0);
    const auto epsilon = call.number("epsilon", default_epsilon);
    auto x = call.numbers(0);
    const auto scale = call.numbers(1);
    const auto bias = call.numbers(2);
    auto mean = call.numbers(3);
    auto variance = call.numbers(4);
    require(call.integer("spatial", 1) != 0, "only statistics per channel are known");
    Indices others = all_axes(shape.size());
    require(shape.size() >= 2, "a tensor with channels is wanted");
    others.erase(others.begin() + 1);
    const auto lines = lines_along(shape, others);  // one per channel
    require(mean.size() == lines.starts.size() && variance.size() == mean.size(),
            "one mean and one variance per channel are wanted");
    const bool training = call.integer("training_mode", 0) != 0;
    auto running = std::pair{mean, variance};
    const auto momentum = call.number("momentum", 0.9F);
    for (std::size_t c = 0; c < mean.size(); ++c) {
        if (training) {
            const auto m = moments_of(x.data() + lines.starts[c], lines.steps);
            running.first[c] = mean[c] * momentum + m.mean * (1 - momentum);
            running.second[c] = variance[c] * momentum + m.variance * (1 - momentum);
            mean[c] = m.mean;
            variance[c] = m.variance;
        }
        standardize(x.data() + lines.starts[c], lines.steps, {mean[c], variance[c]}, epsilon);
    }
    scale_channels(x, shape, scale, bias);
    call.give(0, call.dtype(0), shape, x);
    if (call.opset() >= 14) {
        call.give(1, call.dtype(3), call.shape(3), running.first);
        call.give(2, call.dtype(4), call.shape(4), running.second);
    }
}

void instance_normalization(Call& call) {
    const auto shape = call.shape(0);
    require(shape.size() >= 2, "a tensor with channels is wanted");
    auto x = call.numbers(0);
    const auto lines = lines_along(shape, axes_from(2, shape.size()));
    for (const auto start : lines.starts) {
        standardize(x.data() + start, lines.steps, moments_of(x.data() + start, lines.steps),
                    call.number("epsilon", default_epsilon));
    }
    scale_channels(x, shape, call.numbers(1), call.numbers(2));
    call.give(0, call.dtype(0), shape, x);
}

// Before version 21 scale and bias are per group.
Numbers per_channel(const Numbers& given, std::size_t channels) {
    require(!given.empty() && channels % given.size() == 0, "the scales do not fit the channels");
    Numbers all;
    for (std::size_t c = 0; c < channels; ++c) {
        all.push_back(given[c / (channels / given.size())]);
    }
    return all;
}

void group_normalization(Call& call) {
    const auto shape = call.shape(0);
    require(shape.size() >= 2, "a tensor with channels is wanted");
    const auto groups = call.integer("num_groups", 0);
    require(groups > 0 && shape[1] % groups == 0, "the channels are no multiple of the groups");
    auto x = call.numbers(0);
    const auto channels = size_at(shape, 1);
    const Shape grouped{shape[0], groups,
                        to_integer(x.size()) / std::max<std::int64_t>(shape[0] * groups, 1)};
    const auto lines = lines_along(grouped, {2});
    for (const auto start : lines.starts) {
        standardize(x.data() + start, lines.steps, moments_of(x.data() + start, lines.steps),
                    call.number("epsilon", default_epsilon));
    }
    scale_channels(x, shape, per_channel(call.numbers(1), channels),
                   per_channel(call.numbers(2), channels));
    call.give(0, call.dtype(0), shape, x);
}

void scale_and_shift(const Call& call, Numbers& x) {
    const auto shape = call.shape(0);
    const auto scale = call.numbers(1);
    const auto from = spread(call.shape(1), shape);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] *= scale[from[i]];
    }
    if (call.has(2)) {
        const auto bias = call.numbers(2);
        const auto bias_from = spread(call.shape(2), shape);
        for (std::size_t i = 0; i < x.size(); ++i) {
            x[i] += bias[bias_from[i]];
        }
    }
}

void layer_normalization(Call& call) {
    const auto shape = call.shape(0);
    const auto axis = axis_of(call.integer("axis", -1), shape.size());
    const auto epsilon = call.number("epsilon", default_epsilon);
    const auto stash = static_cast<DType>(call.integer("stash_type", 1));
    auto x = call.numbers(0);
    const auto lines = lines_along(shape, axes_from(axis, shape.size()));
    Numbers means;
    Numbers inverses;
    for (const auto start : lines.starts) {
        const auto m = moments_of(x.data() + start, lines.steps);
        standardize(x.data() + start, lines.steps, m, epsilon);
        means.push_back(m.mean);
        inverses.push_back(1 / std::sqrt(m.variance + epsilon));
    }
    scale_and_shift(call, x);
    call.give(0, call.dtype(0), shape, x);
    call.give(1, stash, lines.kept, means);
    call.give(2, stash, lines.kept, inverses);
}

void rms_normalization(Call& call) {
    const auto shape = call.shape(0);
    const auto axis = axis_of(call.integer("axis", -1), shape.size());
    const auto epsilon = call.number("epsilon", default_epsilon);
    auto x = call.numbers(0);
    const auto lines = lines_along(shape, axes_from(axis, shape.size()));
    for (const auto start : lines.starts) {
        double squares = 0;
        for (const auto step : lines.steps) {
            squares += x[start + step] * x[start + step];
        }
        const double root = std::sqrt(squares / static_cast<double>(lines.steps.size()) + epsilon);
        for (const auto step : lines.steps) {
            x[start + step] /= root;
        }
    }
    scale_and_shift(call, x);
    call.give(0, call.dtype(1), shape, x);
}

void lp_normalization(Call& call) {
    const auto shape = call.shape(0);
    const auto p = call.integer("p", 2);
    require(p == 1 || p == 2, "the order of the norm is neither 1 nor 2");
    auto x = call.numbers(0);
    const auto lines = lines_along(shape, {axis_of(call.integer("axis", -1), shape.size())});
    for (const auto start : lines.starts) {
        double sum = 0;
        for (const auto step : lines.steps) {
            const double v = x[start + step];
            sum += p == 1 ? std::abs(v) : v * v;
        }
        const double norm = p == 1 ? sum : std::sqrt(sum);
        for (const auto step : lines.steps) {
            x[start + step] = norm == 0 ? 0 : x[start + step] / norm;
        }
    }
    call.give(0, call.dtype(0), shape, x);
}

void mean_variance_normalization(Call& call) {
    const auto shape = call.shape(0);
    auto x = call.numbers(0);
    const auto axes = call.integers("axes").value_or(Integers{0, 2, 3});
    const auto lines = lines_along(shape, axes_of(axes, shape.size()));
    for (const auto start : lines.starts) {
        const auto m = moments_of(x.data() + start, lines.steps);
        for (const auto step : lines.steps) {
            // As the standard writes it: the epsilon is added to the deviation.
            x[start + step] = (x[start + step] - m.mean) / (std::sqrt(m.variance) + 1e-9);
        }
    }
    call.give(0, call.dtype(0), shape, x);
}

// Each element over the squares of its neighbours in other channels.
void local_response_normalization(Call& call) {
    const auto shape = call.shape(0);
    require(shape.size() >= 2, "a tensor with channels is wanted");
    const auto size = call.integer("size", 0);
    require(size > 0 && size <= to_integer(most_elements), "the size is out of range");
    const auto alpha = call.number("alpha", 0.0001F);
    const auto beta = call.number("beta", 0.75F);
    const auto bias = call.number("bias", 1);
    const auto x = call.numbers(0);
    Numbers made(x.size());
    const auto lines = lines_along(shape, {1});
    for (const auto start : lines.starts) {
        for (std::int64_t c = 0; c < shape[1]; ++c) {
            const auto first = std::max<std::int64_t>(c - (size - 1) / 2, 0);
            const auto last = std::min<std::int64_t>(c + size / 2, shape[1] - 1);
            double squares = 0;
            for (auto k = first; k <= last; ++k) {
                const double v = x[start + lines.steps[to_size(k)]];
                squares += v * v;
            }
            const auto at = start + lines.steps[to_size(c)];
            made[at] = x[at] / std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
        }
    }
    call.give(0, call.dtype(0), shape, made);
}

}  // namespace

std::span<const Entry> normalisation_ops() {
    static constexpr Entry ops[]{
        {"BatchNormalization", batch_normalization},
        {"GroupNormalization", group_normalization},
        {"InstanceNormalization", instance_normalization},
        {"LRN", local_response_normalization},
        {"LayerNormalization", layer_normalization},
        {"LpNormalization", lp_normalization},
        {"MeanVarianceNormalization", mean_variance_normalization},
        {"RMSNormalization", rms_normalization},
    };
    return ops;
}

}  // namespace trocar::reference
