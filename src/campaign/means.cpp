#include <algorithm>
#include <cmath>
#include <limits>

#include "campaign/tally.h"
#include "util/score_interval.h"

namespace trocar::campaign {

// The ratio of weighted sums; its variance is that between trials, whose inputs are not
// independent.
MeanEstimate mean(const Tally& tally, const Group& group, const std::string& metric,
                  const InjectReportOptions& options) {
    MeanEstimate estimate;
    estimate.mean = std::numeric_limits<double>::quiet_NaN();
    const auto found = tally.metrics.find(metric);
    if (found == tally.metrics.end()) {
        return estimate;
    }
    const auto& sums = found->second;
    struct Weighted {
        double weight, results, sum;
    };
    std::vector<Weighted> all;
    double results = 0;
    double sum = 0;
    for (const auto* trial : group) {
        const auto at = std::lower_bound(
            sums.begin(), sums.end(), trial->trial,
            [](const Tally::Sum& s, std::uint64_t number) { return s.trial < number; });
        if (at == sums.end() || at->trial != trial->trial) {
            continue;
        }
        const auto known =
            trial->stratum < tally.strata.size() ? tally.strata[trial->stratum].population : 0;
        const auto drawn = tally.drawn.at(trial->stratum);
        const double stands_for =
            known >= drawn ? static_cast<double>(known) / static_cast<double>(drawn) : 1;
        all.push_back(
            {stands_for * double{trial->weight}, static_cast<double>(at->results), at->sum});
        results += all.back().weight * all.back().results;
        sum += all.back().weight * all.back().sum;
        estimate.results += at->results;
    }
    if (all.empty()) {
        return estimate;
    }
    estimate.mean = sum / results;
    double residuals = 0;
    for (const auto& one : all) {
        const double residual = one.weight * (one.sum - estimate.mean * one.results);
        residuals += residual * residual;
    }
    const auto count = static_cast<double>(all.size());
    const double deviation = all.size() > 1 ? std::sqrt(count / (count - 1) * residuals) / results
                                            : std::numeric_limits<double>::infinity();
    const double width = two_sided(options.confidence) * deviation;
    estimate.interval = {estimate.mean - width, estimate.mean + width};
    return estimate;
}

}  // namespace trocar::campaign
