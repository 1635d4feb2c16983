#include "engines/reference/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/reference/call.h"

namespace trocar::reference {

void softmax_line(double* x, const Indices& steps, bool logarithm) {
    double peak = -std::numeric_limits<double>::infinity();
    for (const auto step : steps) {
        peak = std::max(peak, x[step]);
    }
    double sum = 0;
    for (const auto step : steps) {
        sum += std::exp(x[step] - peak);
    }
    const double log_sum = std::log(sum);
    for (const auto step : steps) {
        x[step] = logarithm ? x[step] - peak - log_sum : std::exp(x[step] - peak) / sum;
    }
}

namespace {

// Before version 13 all dimensions from the axis on are one.
Lines softmax_lines(const Call& call) {
    const auto shape = call.shape(0);
    if (call.opset() >= 13) {
        return lines_along(shape, {axis_of(call.integer("axis", -1), shape.size())});
    }
    const auto given = call.integer("axis", 1);
    const auto first = given < 0 ? axis_of(given, shape.size()) : axis_of(given, shape.size() + 1);
    Indices axes;
    for (auto i = first; i < shape.size(); ++i) {
        axes.push_back(i);
    }
    return lines_along(shape, axes);
}

template <class F>
void along(Call& call, F&& f) {
    require(is_float(call.dtype(0)), "floating-point numbers are wanted");
    auto x = call.numbers(0);
    const auto lines = softmax_lines(call);
    for (const auto start : lines.starts) {
        f(x.data() + start, lines.steps);
    }
    call.give(0, call.dtype(0), call.shape(0), x);
}

void softmax(Call& call) {
    along(call, [](double* x, const Indices& steps) { softmax_line(x, steps, false); });
}
void log_softmax(Call& call) {
    along(call, [](double* x, const Indices& steps) { softmax_line(x, steps, true); });
}
void hardmax(Call& call) {
    along(call, [](double* x, const Indices& steps) {
        const auto best = std::max_element(steps.begin(), steps.end(),
                                           [&](auto a, auto b) { return x[a] < x[b]; });
        const auto hot = best - steps.begin();
        for (std::size_t i = 0; i < steps.size(); ++i) {
            x[steps[i]] = to_integer(i) == hot ? 1 : 0;
        }
    });
}

}  // namespace

std::span<const Entry> softmax_ops() {
    static constexpr Entry ops[]{
        {"Hardmax", hardmax},
        {"LogSoftmax", log_softmax},
        {"Softmax", softmax},
    };
    return ops;
}

}  // namespace trocar::reference
