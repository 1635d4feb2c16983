// Resize and its forerunner Upsample: one axis after the other.
#include <algorithm>
#include <cmath>

#include "engines/reference/call.h"

namespace trocar::reference {

namespace {

constexpr std::int64_t longest = 1 << 20;  // of a resized axis

// What one place of a resized axis is made of.
struct Mix {
    Indices places;
    Numbers weights;
    bool outside = false;  // takes the extrapolation value
};

struct Rules {
    std::string mode = "nearest";
    std::string coordinates = "half_pixel";
    std::string nearest = "round_prefer_floor";
    double cubic = -0.75;
    bool exclude_outside = false;
    bool antialias = false;
};

// One axis as it is resized.
struct Axis {
    std::int64_t from = 1;
    std::int64_t to = 1;
    double scale = 1;
    double start = 0;  // of the region of interest, in parts of the axis
    double end = 1;
};

double source_of(const Rules& rules, const Axis& axis, double x) {
    const auto from = static_cast<double>(axis.from);
    const auto to = static_cast<double>(axis.to);
    const auto& mode = rules.coordinates;
    if (mode == "half_pixel") {
        return (x + 0.5) / axis.scale - 0.5;
    }
    if (mode == "half_pixel_symmetric") {
        const double adjustment = to / (axis.scale * from);
        const double offset = from / 2 * (1 - adjustment);
        return offset + (x + 0.5) / axis.scale - 0.5;
    }
    if (mode == "pytorch_half_pixel") {
        return axis.to > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
    }
    if (mode == "align_corners") {
        // As long as the scale makes it, not rounded to whole places.
        return axis.to > 1 ? x * (from - 1) / (axis.scale * from - 1) : 0;
    }
    if (mode == "tf_half_pixel_for_nn") {
        return (x + 0.5) / axis.scale;
    }
    if (mode == "tf_crop_and_resize") {
        return axis.to > 1
                   ? axis.start * (from - 1) + x * (axis.end - axis.start) * (from - 1) / (to - 1)
                   : 0.5 * (axis.start + axis.end) * (from - 1);
    }
    require(mode == "asymmetric", "there is no such coordinate_transformation_mode");
    return x / axis.scale;
}

double nearest_of(const Rules& rules, double x) {
    if (rules.nearest == "round_prefer_floor") {
        return std::ceil(x - 0.5);
    }
    if (rules.nearest == "round_prefer_ceil") {
        return std::floor(x + 0.5);
    }
    require(rules.nearest == "floor" || rules.nearest == "ceil", "there is no such nearest_mode");
    return rules.nearest == "floor" ? std::floor(x) : std::ceil(x);
}

double cubic_kernel(double x, double a) {
    x = std::abs(x);
    if (x <= 1) {
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    }
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

std::size_t clamped(double place, std::int64_t size) {
    return static_cast<std::size_t>(
        std::clamp(place, 0.0, static_cast<double>(std::max<std::int64_t>(size - 1, 0))));
}

// The filter of the mode, stretched when the axis shrinks and antialias is asked for.
Mix filtered(const Rules& rules, const Axis& axis, double x) {
    const bool is_cubic = rules.mode == "cubic";
    const double squeeze = rules.antialias ? std::min(axis.scale, 1.0) : 1.0;
    const double reach = (is_cubic ? 2 : 1) / squeeze;
    require(reach < 1 << 20, "the axis shrinks too much");
    const double first = std::floor(x) + std::floor(-reach) + 1;
    const auto taps = static_cast<int>(2 - 2 * (std::floor(-reach) + 1));
    Mix mix;
    double sum = 0;
    for (int i = 0; i < taps; ++i) {
        const double place = first + i;
        const double at = (place - x) * squeeze;
        double weight = is_cubic ? cubic_kernel(at, rules.cubic) : std::max(1 - std::abs(at), 0.0);
        if (rules.exclude_outside && (place < 0 || place >= static_cast<double>(axis.from))) {
            weight = 0;
        }
        mix.places.push_back(clamped(place, axis.from));
        mix.weights.push_back(weight);
        sum += weight;
    }
    for (auto& weight : mix.weights) {
        weight /= sum;
    }
    return mix;
}

Mix mix_of(const Rules& rules, const Axis& axis, std::int64_t at) {
    const double x = source_of(rules, axis, static_cast<double>(at));
    require(std::isfinite(x) && std::abs(x) < 1e15, "a place to be read is out of range");
    Mix mix;
    if (rules.mode == "nearest") {
        mix = {{clamped(nearest_of(rules, x), axis.from)}, {1}, false};
    } else {
        require(rules.mode == "linear" || rules.mode == "cubic", "there is no such mode");
        mix = filtered(rules, axis, x);
    }
    mix.outside = rules.coordinates == "tf_crop_and_resize" &&
                  (x < 0 || x > static_cast<double>(axis.from - 1));
    return mix;
}

// --- What the op asks for -----------------------------------------------------------------------

Integers listed_axes(const Call& call, std::size_t rank) {
    auto axes = call.integers("axes").value_or(Integers{});
    if (axes.empty()) {
        for (std::size_t i = 0; i < rank; ++i) {
            axes.push_back(to_integer(i));
        }
    }
    axes_of(axes, rank);
    return axes;
}

void set_sizes(const Call& call, std::vector<Axis>& all, const Integers& axes,
               const Integers& sizes) {
    require(sizes.size() == axes.size(), "one size per axis is wanted");
    const auto policy = call.text("keep_aspect_ratio_policy", "stretch");
    const bool larger = policy == "not_smaller";
    double common = larger ? 0 : 1e300;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        auto& axis = all[axis_of(axes[i], all.size())];
        require(sizes[i] > 0 && axis.from > 0 && sizes[i] <= longest, "a size is out of range");
        axis.to = sizes[i];
        axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.from);
        common = larger ? std::max(common, axis.scale) : std::min(common, axis.scale);
    }
    if (policy == "stretch") {
        return;
    }
    require(larger || policy == "not_larger", "there is no such keep_aspect_ratio_policy");
    for (const auto given : axes) {
        auto& axis = all[axis_of(given, all.size())];
        axis.scale = common;
        axis.to =
            static_cast<std::int64_t>(std::floor(common * static_cast<double>(axis.from) + 0.5));
    }
}

void set_scales(std::vector<Axis>& all, const Integers& axes, const Numbers& scales) {
    require(scales.size() == axes.size(), "one scale per axis is wanted");
    for (std::size_t i = 0; i < axes.size(); ++i) {
        auto& axis = all[axis_of(axes[i], all.size())];
        const double size = std::floor(static_cast<double>(axis.from) * scales[i]);
        require(scales[i] > 0 && size <= static_cast<double>(longest), "a scale is out of range");
        axis.scale = scales[i];
        axis.to = static_cast<std::int64_t>(size);
    }
}

// One axis of a tensor made anew.
Numbers resized(const Numbers& x, Shape& shape, std::size_t at, const std::vector<Mix>& mixes) {
    const auto from = lines_along(shape, {at});
    shape[at] = to_integer(mixes.size());
    Numbers made(count(shape));
    const auto into = lines_along(shape, {at});
    for (std::size_t l = 0; l < from.starts.size(); ++l) {
        for (std::size_t i = 0; i < mixes.size(); ++i) {
            double sum = 0;
            for (std::size_t k = 0; k < mixes[i].places.size(); ++k) {
                sum += mixes[i].weights[k] * x[from.starts[l] + from.steps[mixes[i].places[k]]];
            }
            made[into.starts[l] + into.steps[i]] = sum;
        }
    }
    return made;
}

void resize_all(Call& call, const Rules& rules, const std::vector<Axis>& axes) {
    auto shape = call.shape(0);
    auto x = call.numbers(0);
    std::vector<std::vector<bool>> outside;
    for (std::size_t d = 0; d < axes.size(); ++d) {
        std::vector<Mix> mixes;
        outside.emplace_back();
        for (std::int64_t i = 0; i < axes[d].to; ++i) {
            mixes.push_back(mix_of(rules, axes[d], i));
            outside[d].push_back(mixes.back().outside);
        }
        const bool same = axes[d].from == axes[d].to && axes[d].scale == 1 &&
                          rules.coordinates != "tf_crop_and_resize";
        require(axes[d].from > 0 || mixes.empty(), "nothing can be made of an empty axis");
        if (!same) {
            x = resized(x, shape, d, mixes);
        }
    }
    if (rules.coordinates == "tf_crop_and_resize") {
        const auto strides = strides_of(shape);
        const auto value = call.number("extrapolation_value", 0);
        for (std::size_t i = 0; i < x.size(); ++i) {
            for (std::size_t d = 0; d < shape.size(); ++d) {
                if (outside[d][to_size(to_integer(i) / strides[d] % shape[d])]) {
                    x[i] = value;
                }
            }
        }
    }
    call.give(0, call.dtype(0), shape, x);
}

std::vector<Axis> whole(const Shape& shape) {
    std::vector<Axis> axes;
    for (const auto size : shape) {
        axes.push_back({size, size, 1, 0, 1});
    }
    return axes;
}

// Before version 11 places are counted from the corner and rounded down.
Rules early_rules(const Call& call) {
    Rules rules;
    rules.mode = call.text("mode", "nearest");
    rules.mode = rules.mode == "bilinear" ? "linear" : rules.mode;
    rules.coordinates = "asymmetric";
    rules.nearest = "floor";
    return rules;
}

void upsample(Call& call) {
    auto axes = whole(call.shape(0));
    auto scales = call.numbers("scales");
    if (!scales && call.has(1)) {
        scales = call.numbers(1);
    }
    if (!scales) {
        scales = Numbers{1, 1, call.number("height_scale", 1), call.number("width_scale", 1)};
    }
    set_scales(axes, listed_axes(call, axes.size()), *scales);
    resize_all(call, early_rules(call), axes);
}

void resize(Call& call) {
    if (call.opset() < 11) {
        upsample(call);
        return;
    }
    auto all = whole(call.shape(0));
    const auto axes = listed_axes(call, all.size());
    Rules rules;
    rules.mode = call.text("mode", "nearest");
    rules.coordinates = call.text("coordinate_transformation_mode", "half_pixel");
    rules.nearest = call.text("nearest_mode", "round_prefer_floor");
    rules.cubic = call.number("cubic_coeff_a", -0.75);
    rules.exclude_outside = call.integer("exclude_outside", 0) != 0;
    rules.antialias = call.integer("antialias", 0) != 0;
    if (call.has(3) && count(call.shape(3)) > 0) {
        set_sizes(call, all, axes, call.integers(3));
    } else {
        set_scales(all, axes, call.numbers(2));
    }
    if (rules.coordinates == "tf_crop_and_resize") {
        const auto region = call.numbers(1);
        require(region.size() == 2 * axes.size(), "two ends per axis are wanted");
        for (std::size_t i = 0; i < axes.size(); ++i) {
            auto& axis = all[axis_of(axes[i], all.size())];
            axis.start = region[i];
            axis.end = region[axes.size() + i];
        }
    }
    resize_all(call, rules, all);
}

}  // namespace

std::span<const Entry> resize_ops() {
    static constexpr Entry ops[]{
        {"Resize", resize},
        {"Upsample", upsample},
    };
    return ops;
}

}  // namespace trocar::reference
