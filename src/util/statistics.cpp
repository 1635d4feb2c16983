#include "util/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "util/elements.h"

namespace trocar {

namespace {

constexpr std::size_t block_size = 1024;

double median_of(std::vector<double>& samples) {
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    if (samples.size() % 2 == 1) {
        return *middle;
    }
    return (*middle + *std::max_element(samples.begin(), middle)) / 2;
}

}  // namespace

NumberSummary summarize_numbers(DType dtype, Bytes bytes, std::size_t element_count) {
    NumberSummary summary;
    summary.count = number_count(dtype, element_count);
    double least = std::numeric_limits<double>::infinity();
    double greatest = -least;
    double sum = 0;
    std::array<double, block_size> block;
    for (std::size_t first = 0; first < summary.count; first += block_size) {
        const std::span numbers(block.data(), std::min(block_size, summary.count - first));
        decode(dtype, bytes, first, numbers);
        // Summed block by block: rounding errors grow with the blocks, not with the numbers.
        double block_sum = 0;
        for (const double number : numbers) {
            if (std::isfinite(number)) {
                least = std::min(least, number);
                greatest = std::max(greatest, number);
                block_sum += number;
            } else if (std::isnan(number)) {
                ++summary.nans;
            } else {
                ++summary.infinities;
            }
        }
        sum += block_sum;
    }
    const auto finite = summary.count - summary.nans - summary.infinities;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    summary.least = finite > 0 ? least : nan;
    summary.greatest = finite > 0 ? greatest : nan;
    summary.mean = finite > 0 ? sum / static_cast<double>(finite) : nan;
    return summary;
}

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
