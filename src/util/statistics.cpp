#include "util/statistics.h"

#include <algorithm>
#include <cmath>

namespace trocar {

namespace {

double median_of(std::vector<double>& samples) {
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    if (samples.size() % 2 == 1) {
        return *middle;
    }
    return (*middle + *std::max_element(samples.begin(), middle)) / 2;
}

}  // namespace

Spread spread(std::vector<double> samples) {
    if (samples.empty()) {
        return {};
    }
    Spread result;
    const auto [least, greatest] = std::minmax_element(samples.begin(), samples.end());
    result.least = *least;
    result.greatest = *greatest;
    result.median = median_of(samples);
    for (auto& sample : samples) {
        sample = std::abs(sample - result.median);
    }
    result.deviation = median_of(samples);
    return result;
}

}  // namespace trocar
