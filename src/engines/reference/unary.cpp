// Ops on one tensor, element by element.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "engines/reference/call.h"

namespace trocar::reference {

namespace {

// Of floats: computed in double, rounded once.
template <class F>
void map(Call& call, F&& f) {
    const auto dtype = call.dtype(0);
    require(is_float(dtype), "floating-point numbers are wanted");
    auto x = call.numbers(0);
    std::transform(x.begin(), x.end(), x.begin(), f);
    call.give(0, dtype, call.shape(0), x);
}

// Of floats and integers.
template <class F>
void map_any(Call& call, F&& f) {
    const auto dtype = call.dtype(0);
    with_number(dtype, [&](auto zero) {
        auto x = read<decltype(zero)>(call.tensor(0));
        std::transform(x.begin(), x.end(), x.begin(), f);
        call.give(0, dtype, call.shape(0), x);
    });
}

template <double (*function)(double)>
void math(Call& call) {
    map(call, function);
}

void absolute(Call& call) {
    map_any(call, [](auto x) {
        using T = decltype(x);
        if constexpr (std::is_same_v<T, double>) {
            return std::abs(x);
        } else {
            return x < 0 ? static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(x)) : x;
        }
    });
}

void negate(Call& call) {
    map_any(call, [](auto x) {
        using T = decltype(x);
        if constexpr (std::is_same_v<T, double>) {
            return -x;
        } else {
            return static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(x));
        }
    });
}

void sign(Call& call) {
    map_any(call, [](auto x) {
        using T = decltype(x);
        if constexpr (std::is_same_v<T, double>) {
            return std::isnan(x) ? x : static_cast<T>((x > 0) - (x < 0));
        } else {
            return static_cast<T>((x > 0) - (x < 0));
        }
    });
}

void relu(Call& call) {
    map_any(call, [](auto x) { return x < 0 ? decltype(x){0} : x; });
}

void logical_not(Call& call) {
    require(call.dtype(0) == DType::boolean, "booleans are wanted");
    map_any(call, [](auto x) { return x == 0 ? decltype(x){1} : decltype(x){0}; });
}

void bit_not(Call& call) {
    require(is_integer(call.dtype(0)), "integers are wanted");
    map_any(call, [](auto x) {
        if constexpr (std::is_integral_v<decltype(x)>) {
            return static_cast<decltype(x)>(~x);
        } else {
            return x;
        }
    });
}

// Of integers these are the integers themselves.
void rounding(Call& call, double (*function)(double)) {
    if (is_float(call.dtype(0))) {
        map(call, function);
    } else {
        call.give(0, call.tensor(0));
    }
}
void ceil(Call& call) {
    rounding(call, std::ceil);
}
void floor(Call& call) {
    rounding(call, std::floor);
}
void round(Call& call) {
    rounding(call, std::nearbyint);
}

void reciprocal(Call& call) {
    map(call, [](double x) { return 1 / x; });
}

// --- Activations --------------------------------------------------------------------------------

double sigmoid_of(double x) {
    return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

double softplus_of(double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

void softsign(Call& call) {
    map(call, [](double x) { return x / (1 + std::abs(x)); });
}

void mish(Call& call) {
    map(call, [](double x) { return x * std::tanh(softplus_of(x)); });
}

void leaky_relu(Call& call) {
    const auto alpha = call.number("alpha", 0.01F);
    map(call, [&](double x) { return x < 0 ? alpha * x : x; });
}

void elu(Call& call) {
    const auto alpha = call.number("alpha", 1);
    map(call, [&](double x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

void celu(Call& call) {
    const auto alpha = call.number("alpha", 1);
    map(call,
        [&](double x) { return std::max(0.0, x) + std::min(0.0, alpha * std::expm1(x / alpha)); });
}

void selu(Call& call) {
    // The defaults changed with version 6.
    const bool old = call.opset() < 6;
    const auto alpha = call.number("alpha", old ? 1.6732F : 1.67326319217681884765625F);
    const auto gamma = call.number("gamma", old ? 1.0507F : 1.05070102214813232421875F);
    map(call, [&](double x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}

double hard_sigmoid_of(double x, double alpha, double beta) {
    return std::max(0.0, std::min(1.0, alpha * x + beta));
}

void hard_sigmoid(Call& call) {
    const auto alpha = call.number("alpha", 0.2F);
    const auto beta = call.number("beta", 0.5F);
    map(call, [&](double x) { return hard_sigmoid_of(x, alpha, beta); });
}

void hard_swish(Call& call) {
    map(call, [](double x) { return x * hard_sigmoid_of(x, 1.0 / 6, 0.5); });
}

void swish(Call& call) {
    const auto alpha = call.number("alpha", 1);
    map(call, [&](double x) { return x * sigmoid_of(alpha * x); });
}

void thresholded_relu(Call& call) {
    const auto alpha = call.number("alpha", 1);
    map(call, [&](double x) { return x > alpha ? x : 0.0; });
}

void gelu(Call& call) {
    const auto approximate = call.text("approximate", "none");
    require(approximate == "none" || approximate == "tanh", "there is no such approximation");
    if (approximate == "tanh") {
        const double factor = std::sqrt(2 / std::numbers::pi);
        map(call, [&](double x) {
            return 0.5 * x * (1 + std::tanh(factor * (x + 0.044715 * x * x * x)));
        });
    } else {
        map(call, [](double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); });
    }
}

void shrink(Call& call) {
    const auto bias = call.number("bias", 0);
    const auto lambd = call.number("lambd", 0.5);
    const auto dtype = call.dtype(0);
    auto x = call.numbers(0);
    for (auto& number : x) {
        number = number < -lambd ? number + bias : number > lambd ? number - bias : 0.0;
    }
    call.give(0, dtype, call.shape(0), x);
}

// --- Questions ----------------------------------------------------------------------------------

void is_nan(Call& call) {
    const auto x = call.numbers(0);
    Integers found(x.size());
    std::transform(x.begin(), x.end(), found.begin(),
                   [](double v) { return std::isnan(v) ? 1 : 0; });
    call.give(0, DType::boolean, call.shape(0), found);
}

void is_inf(Call& call) {
    const bool negative = call.integer("detect_negative", 1) != 0;
    const bool positive = call.integer("detect_positive", 1) != 0;
    const auto x = call.numbers(0);
    Integers found(x.size());
    std::transform(x.begin(), x.end(), found.begin(), [&](double v) {
        return std::isinf(v) && (v > 0 ? positive : negative) ? 1 : 0;
    });
    call.give(0, DType::boolean, call.shape(0), found);
}

}  // namespace

std::span<const Entry> unary_ops() {
    static constexpr Entry ops[]{
        {"Abs", absolute},
        {"Acos", math<std::acos>},
        {"Acosh", math<std::acosh>},
        {"Asin", math<std::asin>},
        {"Asinh", math<std::asinh>},
        {"Atan", math<std::atan>},
        {"Atanh", math<std::atanh>},
        {"BitwiseNot", bit_not},
        {"Ceil", ceil},
        {"Celu", celu},
        {"Cos", math<std::cos>},
        {"Cosh", math<std::cosh>},
        {"Elu", elu},
        {"Erf", math<std::erf>},
        {"Exp", math<std::exp>},
        {"Floor", floor},
        {"Gelu", gelu},
        {"HardSigmoid", hard_sigmoid},
        {"HardSwish", hard_swish},
        {"IsInf", is_inf},
        {"IsNaN", is_nan},
        {"LeakyRelu", leaky_relu},
        {"Log", math<std::log>},
        {"Mish", mish},
        {"Neg", negate},
        {"Not", logical_not},
        {"Reciprocal", reciprocal},
        {"Relu", relu},
        {"Round", round},
        {"Selu", selu},
        {"Shrink", shrink},
        {"Sigmoid", math<sigmoid_of>},
        {"Sign", sign},
        {"Sin", math<std::sin>},
        {"Sinh", math<std::sinh>},
        {"Softplus", math<softplus_of>},
        {"Softsign", softsign},
        {"Sqrt", math<std::sqrt>},
        {"Swish", swish},
        {"Tan", math<std::tan>},
        {"Tanh", math<std::tanh>},
        {"ThresholdedRelu", thresholded_relu},
    };
    return ops;
}

}  // namespace trocar::reference
