#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/reference/convolution.h"

namespace trocar::reference {

namespace {

Shape picture_of(const Shape& shape) {
    require(shape.size() >= 3, "a picture with batch and channels is wanted");
    return {shape.begin() + 2, shape.end()};
}

Geometry pool_geometry(const Call& call) {
    const auto kernel = call.integers("kernel_shape");
    require(kernel.has_value(), "kernel_shape is missing");
    auto geometry = window_of(call, picture_of(call.shape(0)), *kernel);
    place(call, geometry, call.integer("ceil_mode", 0) != 0);
    return geometry;
}

Shape pooled_shape(const Call& call, const Geometry& geometry) {
    Shape shape{call.shape(0)[0], call.shape(0)[1]};
    shape.insert(shape.end(), geometry.positions.begin(), geometry.positions.end());
    return shape;
}

// Calls `visit` (output, position, element of the picture) for all that is read, plane by plane.
template <class Visit>
void for_windows(const Windows& windows, std::size_t planes, Visit&& visit) {
    Integers places(windows.positions());
    for (std::size_t tap = 0; tap < windows.taps(); ++tap) {
        windows.read(tap, 0, places);
        for (std::size_t plane = 0; plane < planes; ++plane) {
            for (std::size_t p = 0; p < places.size(); ++p) {
                if (places[p] != Windows::outside) {
                    visit(plane * places.size() + p, p,
                          plane * windows.picture() + static_cast<std::size_t>(places[p]));
                }
            }
        }
    }
}

std::size_t planes_of(const Shape& shape) {
    return count({shape[0], shape[1]});
}

// The place in the whole tensor; column-major counts within each plane.
std::int64_t index_of(std::size_t at, const Shape& picture, bool column_major) {
    const auto plane = to_integer(count(picture));
    if (!column_major) {
        return to_integer(at);
    }
    auto rest = to_integer(at) % plane;
    std::int64_t index = 0;
    for (std::size_t axis = picture.size(); axis-- > 0;) {
        std::int64_t stride = 1;
        for (std::size_t i = 0; i < axis; ++i) {
            stride *= picture[i];
        }
        index += rest % picture[axis] * stride;
        rest /= picture[axis];
    }
    return to_integer(at) / plane * plane + index;
}

void max_pool(Call& call) {
    const auto geometry = pool_geometry(call);
    const Windows windows(geometry);
    const auto shape = pooled_shape(call, geometry);
    const auto x = call.numbers(0);
    const auto nothing = to_integer(x.size());
    Integers best(count(shape), nothing);
    for_windows(windows, planes_of(shape), [&](std::size_t out, std::size_t, std::size_t in) {
        auto& found = best[out];
        if (found == nothing || x[in] > x[to_size(found)] ||
            (std::isnan(x[in]) && !std::isnan(x[to_size(found)]))) {
            found = to_integer(in);
        }
    });
    Numbers values;
    Integers indices;
    const bool column_major = call.integer("storage_order", 0) != 0;
    for (const auto at : best) {
        values.push_back(at == nothing ? -std::numeric_limits<double>::infinity() : x[to_size(at)]);
        indices.push_back(at == nothing ? -1
                                        : index_of(to_size(at), geometry.picture, column_major));
    }
    call.give(0, call.dtype(0), shape, values);
    call.give(1, DType::i64, shape, indices);
}

// How many places each window covers: of the picture, or of its pads too.
Integers covered(const Geometry& geometry, bool with_pads) {
    auto counted = geometry;
    if (with_pads) {
        for (std::size_t i = 0; i < counted.picture.size(); ++i) {
            counted.picture[i] += counted.before[i] + counted.after[i];
            counted.before[i] = 0;
        }
    }
    const Windows windows(counted);
    Integers counts(windows.positions(), 0);
    for_windows(windows, 1, [&](std::size_t, std::size_t p, std::size_t) { ++counts[p]; });
    return counts;
}

void average_pool(Call& call) {
    const auto geometry = pool_geometry(call);
    const Windows windows(geometry);
    const auto shape = pooled_shape(call, geometry);
    const auto x = call.numbers(0);
    Numbers sums(count(shape), 0.0);
    for_windows(windows, planes_of(shape),
                [&](std::size_t out, std::size_t, std::size_t in) { sums[out] += x[in]; });
    const auto counts = covered(geometry, call.integer("count_include_pad", 0) != 0);
    for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i] /= static_cast<double>(counts[i % counts.size()]);
    }
    call.give(0, call.dtype(0), shape, sums);
}

double root_of(double sum, double p) {
    return p == 2 ? std::sqrt(sum) : p == 1 ? sum : std::pow(sum, 1 / p);
}

// An integer attribute, of the first version a number.
double exponent_of(const Call& call) {
    const auto* given = call.attribute("p");
    return given != nullptr && std::holds_alternative<float>(given->value)
               ? call.number("p", 2)
               : static_cast<double>(call.integer("p", 2));
}

void lp_pool(Call& call) {
    const auto geometry = pool_geometry(call);
    const Windows windows(geometry);
    const auto shape = pooled_shape(call, geometry);
    const auto x = call.numbers(0);
    const auto p = exponent_of(call);
    Numbers sums(count(shape), 0.0);
    for_windows(windows, planes_of(shape), [&](std::size_t out, std::size_t, std::size_t in) {
        sums[out] += std::pow(std::abs(x[in]), p);
    });
    for (auto& sum : sums) {
        sum = root_of(sum, p);
    }
    call.give(0, call.dtype(0), shape, sums);
}

// `f` makes a number of a plane.
template <class F>
void global(Call& call, F&& f) {
    const auto shape = call.shape(0);
    const auto plane = count(picture_of(shape));
    require(plane > 0, "the picture is empty");
    const auto x = call.numbers(0);
    Shape to(shape.size(), 1);
    to[0] = shape[0];
    to[1] = shape[1];
    Numbers made;
    for (std::size_t i = 0; i < count(to); ++i) {
        made.push_back(f(std::span(x).subspan(i * plane, plane)));
    }
    call.give(0, call.dtype(0), to, made);
}

void global_average_pool(Call& call) {
    global(call, [](std::span<const double> x) {
        double sum = 0;
        for (const auto number : x) {
            sum += number;
        }
        return sum / static_cast<double>(x.size());
    });
}

void global_max_pool(Call& call) {
    global(call, [](std::span<const double> x) {
        double peak = x[0];
        for (const auto number : x) {
            peak = number > peak || std::isnan(number) ? number : peak;
        }
        return peak;
    });
}

void global_lp_pool(Call& call) {
    const auto p = exponent_of(call);
    global(call, [&](std::span<const double> x) {
        double sum = 0;
        for (const auto number : x) {
            sum += std::pow(std::abs(number), p);
        }
        return root_of(sum, p);
    });
}

// Puts what a MaxPool took back to where it was.
void max_unpool(Call& call) {
    const auto from = call.shape(0);
    const auto kernel = call.integers("kernel_shape");
    require(kernel.has_value() && call.shape(1) == from, "the indices do not fit the input");
    const auto g = window_of(call, picture_of(from), *kernel);
    Shape implied{from[0], from[1]};
    for (std::size_t i = 0; i < g.picture.size(); ++i) {
        implied.push_back((g.picture[i] - 1) * g.strides[i] - g.before[i] - g.after[i] +
                          g.kernel[i]);
    }
    const auto to = call.has(2) ? call.integers(2) : implied;
    require(to.size() == from.size(), "the output's shape has another rank");
    const auto x = call.numbers(0);
    const auto indices = call.integers(1);
    Numbers made(count(to), 0.0);
    // Indices count in the shape that the window implies, which stands in a corner of the output.
    for (std::size_t i = 0; i < to.size(); ++i) {
        require(implied[i] >= 0 && implied[i] <= to[i], "the output's shape is too small");
    }
    const auto inside = strided(implied, strides_of(to));
    for (std::size_t i = 0; i < x.size(); ++i) {
        require(indices[i] >= 0 && to_size(indices[i]) < inside.size(), "an index is outside");
        made[inside[to_size(indices[i])]] = x[i];
    }
    call.give(0, call.dtype(0), to, made);
}

}  // namespace

std::span<const Entry> pooling_ops() {
    static constexpr Entry ops[]{
        {"AveragePool", average_pool},
        {"GlobalAveragePool", global_average_pool},
        {"GlobalLpPool", global_lp_pool},
        {"GlobalMaxPool", global_max_pool},
        {"LpPool", lp_pool},
        {"MaxPool", max_pool},
        {"MaxUnpool", max_unpool},
    };
    return ops;
}

}  // namespace trocar::reference
