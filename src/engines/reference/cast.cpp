#include "engines/reference/cast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "engines/reference/call.h"
#include "util/elements.h"

namespace trocar::reference {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

bool is_float8(DType dtype) {
    return dtype == DType::f8e4m3fn || dtype == DType::f8e4m3fnuz || dtype == DType::f8e5m2 ||
           dtype == DType::f8e5m2fnuz;
}

// The largest number rounds up to what is out of range at half a step above it.
double overflow_from(DType dtype) {
    const double high = range(dtype).high;
    const int mantissa = dtype == DType::f8e4m3fn || dtype == DType::f8e4m3fnuz ? 3 : 2;
    return high + std::ldexp(1.0, std::ilogb(high) - mantissa - 1);
}

void fit_float8(DType dtype, Numbers& numbers, bool saturate) {
    const double high = range(dtype).high;
    const double limit = overflow_from(dtype);
    for (auto& x : numbers) {
        if (std::isnan(x)) {
            continue;
        }
        if (saturate) {
            x = std::clamp(x, -high, high);
        } else if (std::abs(x) > limit || (std::abs(x) == limit && dtype != DType::f8e4m3fn)) {
            x = dtype == DType::f8e5m2 ? std::copysign(std::numeric_limits<double>::infinity(), x)
                                       : nan;
        }
    }
}

// Powers of two only.
void fit_e8m0(Numbers& numbers, const CastRules& rules) {
    const auto limits = range(DType::f8e8m0);
    for (auto& x : numbers) {
        if (std::isnan(x)) {
            continue;
        }
        if (!(x >= limits.low) || x > limits.high) {
            x = rules.saturate ? std::clamp(x, limits.low, limits.high) : nan;
            continue;
        }
        int exponent = 0;
        const double fraction = 2 * std::frexp(x, &exponent);  // in [1, 2)
        --exponent;
        const bool up = rules.round_mode == "up"        ? fraction > 1
                        : rules.round_mode == "nearest" ? fraction >= 1.5
                                                        : false;
        x = std::min(std::ldexp(1.0, exponent + (up ? 1 : 0)), limits.high);
    }
}

double parsed(const std::string& text) {
    const char* begin = text.c_str();
    char* end = nullptr;
    const double number = std::strtod(begin, &end);
    if (end == begin) {
        fail(fmt::format("'{}' is no number", text));
    }
    return number;
}

std::vector<std::string> texts_of(const Value& value) {
    std::vector<std::string> texts;
    if (is_float(value.dtype())) {
        for (const auto x : read<double>(value)) {
            texts.push_back(std::isnan(x)   ? "NaN"
                            : std::isinf(x) ? (x > 0 ? "INF" : "-INF")
                            : value.dtype() == DType::f64
                                ? fmt::format("{}", x)
                                : fmt::format("{}", static_cast<float>(x)));
        }
        return texts;
    }
    with_number(value.dtype(), [&](auto zero) {
        for (const auto x : read<decltype(zero)>(value)) {
            texts.push_back(fmt::format("{}", x));
        }
    });
    return texts;
}

// Kept within 64 bits; NaN becomes 0.
Integers truncated(const Numbers& numbers) {
    Integers whole;
    whole.reserve(numbers.size());
    for (const auto x : numbers) {
        whole.push_back(std::isnan(x) ? 0
                        : x >= 0x1p63 ? INT64_MAX
                        : x < -0x1p63 ? INT64_MIN
                                      : static_cast<std::int64_t>(x));
    }
    return whole;
}

Value from_numbers(DType to, const Shape& shape, Numbers numbers, const CastRules& rules) {
    if (to == DType::boolean) {
        for (auto& x : numbers) {
            x = x != 0 ? 1 : 0;
        }
    } else if (to == DType::u64) {
        for (auto& x : numbers) {
            x = std::trunc(x);
        }
    } else if (is_integer(to)) {
        // Out of range the standard leaves it open: the low bits are kept, as from integers.
        return write<std::int64_t>(to, shape, truncated(numbers));
    }
    return write_small(to, shape, std::move(numbers), rules);
}

}  // namespace

Value write_small(DType dtype, const Shape& shape, Numbers numbers, const CastRules& rules) {
    if (is_float8(dtype)) {
        fit_float8(dtype, numbers, rules.saturate);
    } else if (dtype == DType::f8e8m0) {
        fit_e8m0(numbers, rules);
    }
    return write<double>(dtype, shape, numbers);
}

Value cast(const Value& value, DType to, const CastRules& rules) {
    const auto from = value.dtype();
    const auto shape = value.shape();
    if (from == to) {
        return value;
    }
    if (to == DType::string) {
        return Value::strings(shape, texts_of(value));
    }
    if (!is_float(to) && !is_integer(to) && to != DType::boolean) {
        fail(fmt::format("elements cannot become {}", name(to)));
    }
    if (from == DType::string) {
        Numbers numbers;
        for (const auto& text : value.string_values()) {
            numbers.push_back(parsed(text));
        }
        return from_numbers(to, shape, std::move(numbers), rules);
    }
    if (is_float(from) || is_float(to)) {
        return from_numbers(to, shape, read<double>(value), rules);
    }
    return write<std::uint64_t>(to, shape, read<std::uint64_t>(value));
}

namespace {

CastRules rules_of(const Call& call) {
    CastRules rules;
    rules.saturate = call.integer("saturate", 1) != 0;
    rules.round_mode = call.text("round_mode", "up");
    require(rules.round_mode == "up" || rules.round_mode == "down" || rules.round_mode == "nearest",
            "there is no such round_mode");
    return rules;
}

DType target_of(const Call& call) {
    if (const auto* to = call.attribute("to");
        to != nullptr && std::holds_alternative<std::string>(to->value)) {
        // The first version has the name of the type.
        auto lower = std::get<std::string>(to->value);
        std::transform(lower.begin(), lower.end(), lower.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        return parse_dtype(lower).value_or(DType::undefined);
    }
    return static_cast<DType>(call.integer("to", 0));
}

void cast_op(Call& call) {
    call.give(0, cast(call.tensor(0), target_of(call), rules_of(call)));
}

void cast_like(Call& call) {
    call.give(0, cast(call.tensor(0), call.dtype(1), rules_of(call)));
}

void bit_cast(Call& call) {
    const auto to = target_of(call);
    const auto& value = call.tensor(0);
    require(bits(to) != 0 && bits(to) == bits(value.dtype()), "the types differ in their bits");
    call.give(0, Value::borrow(to, value.shape(), value.bytes(), value.body()));
}

}  // namespace

std::span<const Entry> cast_ops() {
    static constexpr Entry ops[]{
        {"BitCast", bit_cast},
        {"Cast", cast_op},
        {"CastLike", cast_like},
    };
    return ops;
}

}  // namespace trocar::reference
