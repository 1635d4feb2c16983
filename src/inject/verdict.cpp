#include "inject/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trocar/difference.h"
#include "trocar/error.h"
#include "util/elements.h"

namespace trocar::inject {

namespace {

std::vector<double> numbers_of(const Value& value) {
    std::vector<double> numbers(number_count(value.dtype(), value.element_count()));
    decode(value.dtype(), value.bytes(), 0, numbers);
    return numbers;
}

// The largest of numbers that are there.
void raise(double& largest, double number) {
    largest = std::isnan(largest) || number > largest ? number : largest;
}

// All outputs taken together as one long tensor. Squares are taken of numbers that are scaled
// below 1, for those of f64 may be beyond all bounds.
void measure(const std::vector<NamedValue>& golden, const std::vector<NamedValue>& faulty,
             TrialResult& result) {
    std::vector<std::pair<double, double>> both;
    double scale = 0;
    for (std::size_t i = 0; i < golden.size(); ++i) {
        const auto& a = golden[i].value;
        const auto& b = faulty[i].value;
        if (!a.is_tensor() || !b.is_tensor() || !is_numeric(a.dtype()) || a.dtype() != b.dtype() ||
            a.shape() != b.shape()) {
            continue;
        }
        const auto x = numbers_of(a);
        const auto y = numbers_of(b);
        const auto d = difference(a, b);
        if (!std::isnan(d.max_abs)) {
            raise(result.max_abs, d.max_abs);
        }
        const bool zero = std::all_of(x.begin(), x.end(), [](double n) { return n == 0; });
        if (!std::isnan(d.max_rel) && !(zero && d.max_abs > 0)) {
            raise(result.max_rel, d.max_rel);
        }
        for (std::size_t k = 0; k < x.size(); ++k) {
            if (std::isfinite(x[k]) && std::isfinite(y[k])) {
                both.emplace_back(x[k], y[k]);
                scale = std::max({scale, std::abs(x[k]), std::abs(y[k])});
            }
        }
    }
    if (both.empty()) {
        return;
    }
    scale = scale > 0 ? scale : 1;
    double sum_abs = 0;
    double signal = 0;
    double noise = 0;
    double product = 0;
    double other = 0;
    const auto count = static_cast<double>(both.size());
    for (const auto& [a, b] : both) {
        const auto x = a / scale;
        const auto y = b / scale;
        sum_abs += std::abs(b - a) / count;
        signal += x * x;
        const auto d = (b - a) / scale;
        noise += d * d;
        product += x * y;
        other += y * y;
    }
    result.mean_abs = sum_abs;
    result.sqnr_db = noise == 0    ? std::numeric_limits<double>::infinity()
                     : signal == 0 ? TrialResult::none
                                   : 10 * std::log10(signal / noise);
    result.cosine = signal > 0 && other > 0 ? product / std::sqrt(signal) / std::sqrt(other)
                                            : TrialResult::none;
}

}  // namespace

std::optional<bool> is_correct(const Rule& rule, const Choices& choices,
                               const CampaignInput& input) {
    return input.label && rule.has_classes() && choices.positions == 1
               ? std::optional(choices.top == *input.label)
               : std::nullopt;
}

TrialResult judge(const std::vector<NamedValue>& golden, const Rule& rule, const Choices& choices,
                  const std::vector<NamedValue>& faulty, bool same, const Lane& lane,
                  const CampaignInput& input, const Metric& metric) {
    TrialResult result;
    result.golden_top = choices.top;
    result.detected = lane.detected;
    result.golden_correct = is_correct(rule, choices, input);
    if (!lane.failure.empty()) {
        result.outcome = Outcome::failed;
        result.failure = lane.failure;
        if (result.golden_correct) {
            result.faulty_correct = false;
        }
        return result;
    }
    if (same) {
        result.faulty_top = result.golden_top;
        result.positions = choices.positions;
        result.max_abs = result.mean_abs = result.max_rel = 0;
        result.sqnr_db = std::numeric_limits<double>::infinity();
        result.cosine = 1;
        result.outcome = lane.bad ? Outcome::due : Outcome::masked;
    } else {
        compare(rule, choices, golden, faulty, result);
        measure(golden, faulty, result);
        result.outcome = lane.bad ? Outcome::due : result.sdc1 ? Outcome::sdc : Outcome::benign;
    }
    if (result.golden_correct) {
        // Where there are several positions now, it is not the one class any more.
        result.faulty_correct = result.positions == 1 && result.faulty_top == *input.label;
    }
    if (metric) {
        auto numbers = metric(golden, faulty, input);
        std::sort(numbers.begin(), numbers.end());
        const auto twice =
            std::adjacent_find(numbers.begin(), numbers.end(),
                               [](const auto& a, const auto& b) { return a.first == b.first; });
        if (twice != numbers.end()) {
            throw Error(Fault::input,
                        fmt::format("there are two metrics named '{}'", twice->first));
        }
        for (auto& [name, number] : numbers) {
            if (name.empty()) {
                result.metric = number;
            } else {
                result.metrics.emplace_back(std::move(name), number);
            }
        }
    }
    return result;
}

}  // namespace trocar::inject
