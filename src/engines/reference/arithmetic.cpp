// Ops on two or more tensors, element by element.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/reference/call.h"

namespace trocar::reference {

namespace {

using Unsigned = std::uint64_t;

template <class T>
T added(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
        return a + b;
    }
}

template <class T>
T multiplied(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
    } else {
        return a * b;
    }
}

template <class T>
T negative(T a) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(Unsigned{0} - static_cast<Unsigned>(a));
    } else {
        return -a;
    }
}

template <class T>
T divided(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        require(b != 0, "an integer is divided by zero");
        if constexpr (std::is_signed_v<T>) {
            return b == -1 ? negative(a) : a / b;
        }
    }
    return a / b;
}

// The remainder that has the sign of the divisor.
template <class T>
T floor_remainder(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        require(b != 0, "an integer is divided by zero");
        if constexpr (std::is_signed_v<T>) {
            if (b == -1) {
                return 0;
            }
            const T rest = a % b;
            return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
        }
        return a % b;
    } else {
        const T rest = std::fmod(a, b);
        if (rest == 0) {
            return std::copysign(rest, b);
        }
        return (rest < 0) != (b < 0) ? rest + b : rest;
    }
}

// The remainder that has the sign of the dividend.
template <class T>
T trunc_remainder(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        require(b != 0, "an integer is divided by zero");
        if constexpr (std::is_signed_v<T>) {
            return b == -1 ? 0 : a % b;
        }
        return a % b;
    } else {
        return std::fmod(a, b);
    }
}

template <class T>
T larger(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(a) || std::isnan(b)) {
            return std::numeric_limits<T>::quiet_NaN();
        }
    }
    return a < b ? b : a;
}

template <class T>
T smaller(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(a) || std::isnan(b)) {
            return std::numeric_limits<T>::quiet_NaN();
        }
    }
    return b < a ? b : a;
}

// Before version 7 the second shape may stand at an axis of the first.
Shape second_shape(const Call& call) {
    auto shape = call.shape(1);
    const auto rank = call.shape(0).size();
    if (call.opset() < 7 && call.attribute("axis") != nullptr && shape.size() < rank) {
        const auto axis = axis_of(call.integer("axis", 0), rank);
        while (shape.size() < rank - axis) {
            shape.push_back(1);
        }
    }
    return shape;
}

template <class T, class F>
auto combined(const std::vector<T>& a, const Shape& a_shape, const std::vector<T>& b,
              const Shape& b_shape, const Shape& shape, F&& f) {
    std::vector<decltype(f(T{}, T{}))> result(count(shape));
    if (a_shape == b_shape) {
        for (std::size_t i = 0; i < result.size(); ++i) {
            result[i] = f(a[i], b[i]);
        }
        return result;
    }
    const auto from_a = spread(a_shape, shape);
    const auto from_b = spread(b_shape, shape);
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] = f(a[from_a[i]], b[from_b[i]]);
    }
    return result;
}

// Both inputs are of one type; the output is of that type, or boolean.
template <class F>
void combine(Call& call, std::optional<DType> out, F&& f) {
    const auto dtype = call.dtype(0);
    require(call.dtype(1) == dtype, "the inputs are of different types");
    const auto b_shape = second_shape(call);
    const auto shape = broadcast(call.shape(0), b_shape);
    with_number(dtype, [&](auto zero) {
        using T = decltype(zero);
        const auto a = read<T>(call.tensor(0));
        const auto b = read<T>(call.tensor(1));
        call.give(0, out.value_or(dtype), shape, combined(a, call.shape(0), b, b_shape, shape, f));
    });
}

void add(Call& call) {
    combine(call, {}, [](auto a, auto b) { return added(a, b); });
}
void subtract(Call& call) {
    combine(call, {}, [](auto a, auto b) { return added(a, negative(b)); });
}
void multiply(Call& call) {
    combine(call, {}, [](auto a, auto b) { return multiplied(a, b); });
}
void divide(Call& call) {
    combine(call, {}, [](auto a, auto b) { return divided(a, b); });
}

void modulo(Call& call) {
    if (call.integer("fmod", 0) != 0) {
        combine(call, {}, [](auto a, auto b) { return trunc_remainder(a, b); });
    } else {
        combine(call, {}, [](auto a, auto b) { return floor_remainder(a, b); });
    }
}

// --- Comparisons --------------------------------------------------------------------------------

template <class F>
void compare(Call& call, F&& f) {
    combine(call, DType::boolean,
            [&](auto a, auto b) { return static_cast<std::int64_t>(f(a, b)); });
}

void equal(Call& call) {
    if (call.dtype(0) != DType::string) {
        compare(call, [](auto a, auto b) { return a == b; });
        return;
    }
    const auto shape = broadcast(call.shape(0), call.shape(1));
    const auto a = call.tensor(0).string_values();
    const auto b = call.tensor(1).string_values();
    require(call.dtype(1) == DType::string, "the inputs are of different types");
    const auto from_a = spread(call.shape(0), shape);
    const auto from_b = spread(call.shape(1), shape);
    Integers result(count(shape));
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] = a[from_a[i]] == b[from_b[i]] ? 1 : 0;
    }
    call.give(0, DType::boolean, shape, result);
}
void greater(Call& call) {
    compare(call, [](auto a, auto b) { return a > b; });
}
void greater_or_equal(Call& call) {
    compare(call, [](auto a, auto b) { return a >= b; });
}
void less(Call& call) {
    compare(call, [](auto a, auto b) { return a < b; });
}
void less_or_equal(Call& call) {
    compare(call, [](auto a, auto b) { return a <= b; });
}

// --- Logic and bits -----------------------------------------------------------------------------

template <class F>
void combine_integers(Call& call, F&& f) {
    const auto dtype = call.dtype(0);
    require(is_integer(dtype) || dtype == DType::boolean, "integers or booleans are wanted");
    combine(call, {}, [&](auto a, auto b) {
        if constexpr (std::is_integral_v<decltype(a)>) {
            return f(a, b);
        } else {
            return a;
        }
    });
}

void bit_and(Call& call) {
    combine_integers(call, [](auto a, auto b) { return a & b; });
}
void bit_or(Call& call) {
    combine_integers(call, [](auto a, auto b) { return a | b; });
}
void bit_xor(Call& call) {
    combine_integers(call, [](auto a, auto b) { return a ^ b; });
}

// What is shifted by a negative number or by all bits is 0, or -1 where the sign is shifted in.
void bit_shift(Call& call) {
    const auto direction = call.text("direction", "");
    require(direction == "LEFT" || direction == "RIGHT", "the direction is neither LEFT nor RIGHT");
    const bool left = direction == "LEFT";
    const auto width = bits(call.dtype(0));
    combine_integers(call, [&](auto a, auto b) {
        using T = decltype(a);
        const bool outside = b < 0 || static_cast<Unsigned>(b) >= width;
        if (left) {
            return outside ? T{0} : static_cast<T>(static_cast<Unsigned>(a) << b);
        }
        return outside ? static_cast<T>(a < 0 ? -1 : 0) : static_cast<T>(a >> b);
    });
}

// --- Powers -------------------------------------------------------------------------------------

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
    if (exponent < 0) {
        return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
    }
    std::int64_t result = 1;
    for (; exponent > 0; exponent >>= 1) {
        result = (exponent & 1) != 0 ? multiplied(result, base) : result;
        base = multiplied(base, base);
    }
    return result;
}

// The output is of the type of the base.
void power(Call& call) {
    const auto base = call.dtype(0);
    const auto b_shape = second_shape(call);
    const auto shape = broadcast(call.shape(0), b_shape);
    if (!is_float(base) && !is_float(call.dtype(1))) {
        call.give(0, base, shape,
                  combined(call.integers(0), call.shape(0), call.integers(1), b_shape, shape,
                           integer_power));
        return;
    }
    auto made = combined(call.numbers(0), call.shape(0), call.numbers(1), b_shape, shape,
                         [](double a, double b) { return std::pow(a, b); });
    if (!is_float(base)) {
        std::transform(made.begin(), made.end(), made.begin(),
                       [](double x) { return std::trunc(x); });
    }
    call.give(0, base, shape, made);
}

// --- Any number of inputs -----------------------------------------------------------------------

template <class F>
void fold(Call& call, bool mean, F&& f) {
    const auto dtype = call.dtype(0);
    auto shape = call.shape(0);
    for (std::size_t i = 1; i < call.input_count(); ++i) {
        require(call.dtype(i) == dtype, "the inputs are of different types");
        shape = broadcast(shape, call.shape(i));
    }
    with_number(dtype, [&](auto zero) {
        using T = decltype(zero);
        const auto first = read<T>(call.tensor(0));
        std::vector<T> result(count(shape));
        const auto from = spread(call.shape(0), shape);
        for (std::size_t i = 0; i < result.size(); ++i) {
            result[i] = first[from[i]];
        }
        for (std::size_t k = 1; k < call.input_count(); ++k) {
            result = combined(result, shape, read<T>(call.tensor(k)), call.shape(k), shape, f);
        }
        if (mean) {
            for (auto& number : result) {
                number = divided(number, static_cast<T>(call.input_count()));
            }
        }
        call.give(0, dtype, shape, result);
    });
}

void sum(Call& call) {
    fold(call, false, [](auto a, auto b) { return added(a, b); });
}
void mean(Call& call) {
    fold(call, true, [](auto a, auto b) { return added(a, b); });
}
void maximum(Call& call) {
    fold(call, false, [](auto a, auto b) { return larger(a, b); });
}
void minimum(Call& call) {
    fold(call, false, [](auto a, auto b) { return smaller(a, b); });
}

// The slopes are spread over the input, never the other way.
void prelu(Call& call) {
    const auto shape = call.shape(0);
    const auto dtype = call.dtype(0);
    auto slope_shape = call.shape(1);
    if (call.opset() < 7 && slope_shape.size() == 1 && shape.size() > 1) {
        slope_shape.resize(shape.size() - 1, 1);  // one per channel
    }
    with_number(dtype, [&](auto zero) {
        using T = decltype(zero);
        auto x = read<T>(call.tensor(0));
        const auto slope = read<T>(call.tensor(1));
        const auto from = spread(slope_shape, shape);
        for (std::size_t i = 0; i < x.size(); ++i) {
            x[i] = x[i] < 0 ? multiplied(x[i], slope[from[i]]) : x[i];
        }
        call.give(0, dtype, shape, x);
    });
}

// A gate of its first input, times the second.
void swiglu(Call& call) {
    require(call.shape(0) == call.shape(1), "the inputs differ in shape");
    const auto alpha = call.number("alpha", 1);
    auto gate = call.numbers(0);
    const auto x = call.numbers(1);
    for (std::size_t i = 0; i < gate.size(); ++i) {
        gate[i] = gate[i] / (1 + std::exp(-alpha * gate[i])) * x[i];
    }
    call.give(0, call.dtype(0), call.shape(0), gate);
}

// Bounds are attributes before version 11, optional inputs after.
void clip(Call& call) {
    const auto dtype = call.dtype(0);
    with_number(dtype, [&](auto zero) {
        using T = decltype(zero);
        auto x = read<T>(call.tensor(0));
        std::optional<T> low;
        std::optional<T> high;
        const auto bound = [&](std::size_t slot, const char* name) -> std::optional<T> {
            if (call.has(slot)) {
                const auto all = read<T>(call.tensor(slot));
                require(all.size() == 1, "a bound of one element is wanted");
                return all[0];
            }
            const auto* attribute = call.attribute(name);
            return attribute != nullptr ? std::optional(static_cast<T>(call.number(name, 0)))
                                        : std::nullopt;
        };
        low = bound(1, "min");
        high = bound(2, "max");
        for (auto& number : x) {
            number = low ? larger(number, *low) : number;
            number = high ? smaller(number, *high) : number;
        }
        call.give(0, dtype, call.shape(0), x);
    });
}

}  // namespace

std::span<const Entry> arithmetic_ops() {
    static constexpr Entry ops[]{
        {"Add", add},
        {"And", bit_and},
        {"BitShift", bit_shift},
        {"BitwiseAnd", bit_and},
        {"BitwiseOr", bit_or},
        {"BitwiseXor", bit_xor},
        {"Clip", clip},
        {"Div", divide},
        {"Equal", equal},
        {"Greater", greater},
        {"GreaterOrEqual", greater_or_equal},
        {"Less", less},
        {"LessOrEqual", less_or_equal},
        {"Max", maximum},
        {"Mean", mean},
        {"Min", minimum},
        {"Mod", modulo},
        {"Mul", multiply},
        {"Or", bit_or},
        {"PRelu", prelu},
        {"Pow", power},
        {"Sub", subtract},
        {"Sum", sum},
        {"SwiGLU", swiglu},
        {"Xor", bit_xor},
    };
    return ops;
}

}  // namespace trocar::reference
