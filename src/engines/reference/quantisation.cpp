#include <algorithm>
#include <cmath>

#include "engines/reference/cast.h"
#include "engines/reference/convolution.h"
#include "engines/reference/product.h"
#include "util/elements.h"

namespace trocar::reference {

namespace {

// For every element the scale that is its own: one for all, one per place of the axis, or one per
// block along the axis.
Indices scale_places(const Call& call, const Shape& shape, const Shape& scale) {
    if (count(scale) == 1 && scale.size() <= 1) {
        return Indices(count(shape), 0);
    }
    const auto axis = axis_of(call.integer("axis", 1), shape.size());
    const auto strides = strides_of(shape);
    auto block = call.integer("block_size", 0);
    require(block >= 0, "the block size is negative");
    Integers scale_strides(shape.size(), 0);
    if (scale.size() == 1) {
        require(scale[0] == shape[axis], "one scale per place of the axis is wanted");
        scale_strides[axis] = 1;
        block = 1;
    } else {
        require(scale.size() == shape.size(), "the scales have another rank than the input");
        block = block == 0 && scale[axis] > 0 ? (shape[axis] + scale[axis] - 1) / scale[axis]
                                              : std::max<std::int64_t>(block, 1);
        for (std::size_t i = 0; i < shape.size(); ++i) {
            const auto wanted = i == axis ? (shape[i] + block - 1) / block : shape[i];
            require(scale[i] == wanted, "the scales do not fit the blocks of the input");
        }
        scale_strides = strides_of(scale);
    }
    Indices places(count(shape));
    for (std::size_t i = 0; i < places.size(); ++i) {
        std::int64_t place = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const auto at = to_integer(i) / strides[d] % shape[d];
            place += (d == axis ? at / block : at) * scale_strides[d];
        }
        places[i] = to_size(place);
    }
    return places;
}

Numbers zero_points(const Call& call, std::size_t slot, const Shape& scale) {
    if (!call.has(slot)) {
        return Numbers(count(scale), 0);
    }
    require(count(call.shape(slot)) == count(scale), "scales and zero points differ in shape");
    return call.numbers(slot);
}

DType type_at(const Call& call, const char* name, DType otherwise) {
    const auto given = call.integer(name, 0);
    return given == 0 ? otherwise : static_cast<DType>(given);
}

void quantize_linear(Call& call) {
    const auto shape = call.shape(0);
    auto x = call.numbers(0);
    const auto scale = call.numbers(1);
    const auto zero = zero_points(call, 2, call.shape(1));
    const auto places = scale_places(call, shape, call.shape(1));
    const auto to = type_at(call, "output_dtype", call.has(2) ? call.dtype(2) : DType::u8);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] /= scale[places[i]];
    }
    const auto precision = type_at(call, "precision", call.dtype(1));
    round_all(is_float(precision) ? precision : DType::f32, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = (is_integer(to) ? std::nearbyint(x[i]) : x[i]) + zero[places[i]];
    }
    const CastRules rules{call.integer("saturate", 1) != 0, "up"};
    call.give(0, write_small(to, shape, std::move(x), rules));
}

void dequantize_linear(Call& call) {
    const auto shape = call.shape(0);
    auto x = call.numbers(0);
    const auto scale = call.numbers(1);
    const auto zero = zero_points(call, 2, call.shape(1));
    const auto places = scale_places(call, shape, call.shape(1));
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = (x[i] - zero[places[i]]) * scale[places[i]];
    }
    call.give(0, type_at(call, "output_dtype", call.dtype(1)), shape, x);
}

// Defined as ops on f32, each of which rounds.
void dynamic_quantize_linear(Call& call) {
    auto x = call.numbers(0);
    double low = 0;
    double high = 0;
    for (const auto v : x) {
        low = std::min(low, v);
        high = std::max(high, v);
    }
    const auto f32 = [](double v) { return rounded_to(DType::f32, v); };
    const double scale = f32(f32(high - low) / 255);
    const double zero = scale == 0 ? 0 : std::clamp(std::nearbyint(f32(-low / scale)), 0.0, 255.0);
    for (auto& v : x) {
        v = scale == 0 ? zero : std::nearbyint(f32(v / scale)) + zero;
    }
    call.give(0, DType::u8, call.shape(0), x);
    call.give(1, scalar(DType::f32, scale));
    call.give(2, scalar(DType::u8, zero));
}

// Numbers that stand for one of all, or for places of one axis of `rank`, to that rank.
Shape aligned(const Shape& shape, std::size_t rank, std::size_t axis) {
    if (shape.size() != 1 || shape[0] == 1) {
        return shape.size() <= 1 ? Shape{} : shape;
    }
    Shape to(rank - axis, 1);
    to[0] = shape[0];
    return to;
}

void subtract(Numbers& x, const Shape& shape, const Numbers& zero, const Shape& zero_shape) {
    const auto from = spread(zero_shape, shape);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] -= zero[from[i]];
    }
}

// Multiplies by a scale of the inputs and divides by that of the output.
void requantize(Call& call, Numbers& x, const Shape& shape, const Indices& from_scale,
                const Numbers& scale, std::size_t y_scale_slot) {
    const auto y_scale = call.number(y_scale_slot);
    const auto zero = call.number(y_scale_slot + 1);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = std::nearbyint(x[i] * scale[from_scale[i]] / y_scale) + zero;
    }
    call.give(0, call.dtype(y_scale_slot + 1), shape, x);
}

// Inputs: a, its scale and zero point, the same of b, scale and zero point of the output.
void qlinear_matmul(Call& call) {
    auto a = call.numbers(0);
    auto b = call.numbers(3);
    const auto a_shape = call.shape(0);
    const auto b_shape = call.shape(3);
    require(a_shape.size() >= 2 && b_shape.size() >= 2, "matrices are wanted");
    subtract(a, a_shape, call.numbers(2),
             aligned(call.shape(2), a_shape.size(), a_shape.size() - 2));
    subtract(b, b_shape, call.numbers(5),
             aligned(call.shape(5), b_shape.size(), b_shape.size() - 1));
    auto made = matrix_product(a, a_shape, b, b_shape);
    const auto rank = made.shape.size();
    const auto a_scale = call.numbers(1);
    const auto b_scale = call.numbers(4);
    const auto from_a = spread(aligned(call.shape(1), rank, rank - 2), made.shape);
    const auto from_b = spread(aligned(call.shape(4), rank, rank - 1), made.shape);
    Numbers scales(made.numbers.size());
    Indices own(scales.size());
    for (std::size_t i = 0; i < scales.size(); ++i) {
        scales[i] = a_scale[from_a[i]] * b_scale[from_b[i]];
        own[i] = i;
    }
    requantize(call, made.numbers, made.shape, own, scales, 6);
}

// Zero points of weights: one for all, or one per filter.
Picture centred(const Call& call, std::size_t slot, std::size_t zero_slot) {
    Picture x{call.shape(slot), call.numbers(slot)};
    require(x.shape.size() >= 3, "a picture is wanted");
    if (call.has(zero_slot)) {
        subtract(x.numbers, x.shape, call.numbers(zero_slot),
                 aligned(call.shape(zero_slot), x.shape.size(), 0));
    }
    return x;
}

void conv_integer(Call& call) {
    require(bits(call.dtype(0)) <= 8 && bits(call.dtype(1)) <= 8, "8-bit integers are wanted");
    const auto made = convolved(call, centred(call, 0, 2), centred(call, 1, 3));
    call.give(0, DType::i32, made.shape, made.numbers);
}

void qlinear_conv(Call& call) {
    auto made = convolved(call, centred(call, 0, 2), centred(call, 3, 5));
    if (call.has(8)) {
        add_bias(made, call.numbers(8));
    }
    auto scale = call.numbers(4);
    const auto x_scale = call.number(1);
    for (auto& s : scale) {
        s *= x_scale;
    }
    const auto from = spread(aligned(call.shape(4), made.shape.size(), 1), made.shape);
    requantize(call, made.numbers, made.shape, from, scale, 6);
}

}  // namespace

std::span<const Entry> quantisation_ops() {
    static constexpr Entry ops[]{
        {"ConvInteger", conv_integer},
        {"DequantizeLinear", dequantize_linear},
        {"DynamicQuantizeLinear", dynamic_quantize_linear},
        {"QLinearConv", qlinear_conv},
        {"QLinearMatMul", qlinear_matmul},
        {"QuantizeLinear", quantize_linear},
    };
    return ops;
}

}  // namespace trocar::reference
