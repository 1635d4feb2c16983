#include <algorithm>
#include <cmath>
#include <map>

#include "trocar/ops.h"
#include "util/samples.h"

namespace trocar {

namespace {

constexpr std::size_t enough_visits = 6;  // for an interval of order statistics
constexpr double disagreement = 0.02;

struct Used {
    std::vector<double> visits;  // medians
    std::vector<double> ns;
    std::vector<double> cpu_ns;
};

Used use(const std::vector<OpWindow>& windows, bool undisturbed) {
    std::map<std::uint32_t, std::vector<double>> visits;
    Used used;
    for (const auto& window : windows) {
        if (undisturbed && window.switches > 0) {
            continue;
        }
        visits[window.visit].push_back(window.ns);
        used.ns.push_back(window.ns);
        used.cpu_ns.push_back(window.cpu_ns);
    }
    for (auto& [visit, ns] : visits) {
        used.visits.push_back(quantile(std::move(ns), 0.5));
    }
    return used;
}

double mean_within_3_sigma(const std::vector<double>& values) {
    double sum = 0;
    double squares = 0;
    for (const auto value : values) {
        sum += value;
    }
    const auto mean = sum / static_cast<double>(values.size());
    for (const auto value : values) {
        squares += (value - mean) * (value - mean);
    }
    const auto sigma = std::sqrt(squares / static_cast<double>(values.size()));
    double kept = 0;
    double count = 0;
    for (const auto value : values) {
        if (std::abs(value - mean) <= 3 * sigma) {
            kept += value;
            ++count;
        }
    }
    return count > 0 ? kept / count : mean;
}

}  // namespace

OpTime summarize(std::vector<OpWindow> windows, double call_ns) {
    OpTime time;
    time.call_ns = call_ns;
    if (windows.empty()) {
        return time;
    }
    // Windows in which another process had the core say little of the op, where there are others.
    auto used = use(windows, true);
    const bool disturbed = used.visits.size() < enough_visits;
    if (disturbed) {
        used = use(windows, false);
    }
    const auto median = quantile(used.visits, 0.5);
    // What is timed at one moment is alike: the moments are the sample.
    const auto interval = rerun_interval(used.visits);
    const auto mean = mean_within_3_sigma(used.ns);
    time.ns = std::max(0.0, median - call_ns);
    time.interval = {std::max(0.0, interval.low - call_ns), std::max(0.0, interval.high - call_ns)};
    time.mean_ns = std::max(0.0, mean - call_ns);
    time.cpu_ns = quantile(used.cpu_ns, 0.5);
    time.doubtful = std::abs(mean - median) > disagreement * median;
    const auto half = median > 0 ? (interval.high - interval.low) / 2 / median : 1;
    time.grade = used.visits.size() < enough_visits ? 'D'
                 : half <= 0.02                     ? 'A'
                 : half <= 0.05                     ? 'B'
                 : half <= 0.10                     ? 'C'
                                                    : 'D';
    if (disturbed && time.grade < 'C') {
        time.grade = 'C';
    }
    time.windows = std::move(windows);
    return time;
}

}  // namespace trocar
