#include "inject/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trocar/difference.h"
#include "trocar/error.h"
#include "util/elements.h"

namespace trocar::inject {

namespace {

constexpr std::size_t few = 5;

const Value* deciding(const std::vector<NamedValue>& outputs) {
    for (const auto& output : outputs) {
        if (output.value.is_tensor() && is_numeric(output.value.dtype()) &&
            output.value.element_count() > 0) {
            return &output.value;
        }
    }
    return nullptr;
}

std::vector<double> numbers_of(const Value& value) {
    std::vector<double> numbers(number_count(value.dtype(), value.element_count()));
    decode(value.dtype(), value.bytes(), 0, numbers);
    return numbers;
}

// The best of a row, earlier ones first among equals; none where a NaN makes it undecided.
std::vector<std::int64_t> best(std::span<const double> row) {
    if (std::any_of(row.begin(), row.end(), [](double x) { return std::isnan(x); })) {
        return {};
    }
    std::vector<std::int64_t> order(row.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    const auto count = std::min(few, row.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end(), [&](std::int64_t a, std::int64_t b) {
                          const auto x = row[static_cast<std::size_t>(a)];
                          const auto y = row[static_cast<std::size_t>(b)];
                          return x != y ? x > y : a < b;
                      });
    order.resize(count);
    return order;
}

std::size_t row_length(const Value& value) {
    const auto shape = value.shape();
    return shape.empty() ? 1 : static_cast<std::size_t>(shape.back());
}

}  // namespace

Decision decide(const std::vector<NamedValue>& outputs) {
    Decision decision;
    const auto* value = deciding(outputs);
    if (value == nullptr) {
        return decision;
    }
    const auto numbers = numbers_of(*value);
    const auto length = row_length(*value);
    for (std::size_t first = 0; first + length <= numbers.size(); first += length) {
        const std::span row(numbers.data() + first, length);
        if (length == 1 && is_integer(value->dtype())) {
            // A class by its number.
            decision.tops.push_back(static_cast<std::int64_t>(row[0]));
            decision.five.push_back({decision.tops.back()});
            decision.scores.push_back(row[0]);
            continue;
        }
        auto order = best(row);
        decision.tops.push_back(order.empty() ? -1 : order[0]);
        decision.scores.push_back(order.empty() ? std::nan("")
                                                : row[static_cast<std::size_t>(order[0])]);
        decision.five.push_back(std::move(order));
    }
    return decision;
}

namespace {

void compare_decisions(const Decision& golden, const std::vector<NamedValue>& faulty_outputs,
                       TrialResult& result) {
    const auto faulty = decide(faulty_outputs);
    const auto* value = deciding(faulty_outputs);
    if (!faulty.tops.empty()) {
        result.faulty_top = faulty.tops[0];
    }
    if (faulty.tops.size() != golden.tops.size() || value == nullptr) {
        result.sdc1 = result.sdc5 = result.sdc10 = result.sdc20 = !golden.tops.empty();
        return;
    }
    const auto numbers = numbers_of(*value);
    const auto length = row_length(*value);
    for (std::size_t i = 0; i < golden.tops.size(); ++i) {
        result.sdc1 = result.sdc1 || faulty.tops[i] != golden.tops[i];
        const auto& five = golden.five[i];
        result.sdc5 =
            result.sdc5 || std::find(five.begin(), five.end(), faulty.tops[i]) == five.end();
        // The score of what the golden run chose, then and now.
        const auto place = length == 1 ? 0 : static_cast<std::size_t>(golden.tops[i]);
        const auto score = golden.tops[i] < 0 ? std::nan("") : numbers[i * length + place];
        const auto off = score == golden.scores[i]
                             ? 0
                             : std::abs(score - golden.scores[i]) / std::abs(golden.scores[i]);
        result.sdc10 = result.sdc10 || !(off <= 0.1);
        result.sdc20 = result.sdc20 || !(off <= 0.2);
    }
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

TrialResult judge(const std::vector<NamedValue>& golden, const Decision& decision,
                  const std::vector<NamedValue>& faulty, bool same, const Lane& lane,
                  const CampaignInput& input, const Metric& metric) {
    TrialResult result;
    result.golden_top = decision.tops.empty() ? -1 : decision.tops[0];
    result.detected = lane.detected;
    const auto label = input.label;
    if (label) {
        result.golden_correct = result.golden_top == *label;
    }
    if (!lane.failure.empty()) {
        result.outcome = Outcome::failed;
        result.failure = lane.failure;
        if (label) {
            result.faulty_correct = false;
        }
        return result;
    }
    if (same) {
        result.faulty_top = result.golden_top;
        result.max_abs = result.mean_abs = result.max_rel = 0;
        result.sqnr_db = std::numeric_limits<double>::infinity();
        result.cosine = 1;
        result.outcome = lane.bad ? Outcome::due : Outcome::masked;
    } else {
        compare_decisions(decision, faulty, result);
        measure(golden, faulty, result);
        result.outcome = lane.bad ? Outcome::due : result.sdc1 ? Outcome::sdc : Outcome::benign;
    }
    if (label) {
        result.faulty_correct = result.faulty_top == *label;
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
