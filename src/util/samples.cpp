#include "util/samples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "util/statistics.h"

namespace trocar {

namespace {

// A start is not looked for further in than this: finding it takes time in proportion.
constexpr std::size_t longest_start = 200;

double deviation(std::span<const double> samples) {
    const auto median = spread({samples.begin(), samples.end()}).median;
    double sum = 0;
    for (const double sample : samples) {
        sum += std::abs(sample - median);
    }
    return sum;
}

}  // namespace

double quantile(std::vector<double> samples, double q) {
    if (samples.empty()) {
        return 0;
    }
    std::sort(samples.begin(), samples.end());
    const double at = q * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const auto above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (at - static_cast<double>(below)) * (samples[above] - samples[below]);
}

Interval median_interval(std::vector<double> samples) {
    if (samples.empty()) {
        return {};
    }
    std::sort(samples.begin(), samples.end());
    const auto n = static_cast<double>(samples.size());
    // The k-th smallest and k-th largest: k from the binomial distribution with p = 1/2, whose
    // tails are summed until they pass 2.5 %.
    double term = std::exp(-n * std::log(2.0));
    double tail = term;
    std::size_t k = 0;
    while (tail <= 0.025 && term > 0) {
        ++k;
        term *= (n - static_cast<double>(k) + 1) / static_cast<double>(k);
        tail += term;
    }
    if (term <= 0) {  // too many samples for exact terms
        k = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - 0.98 * std::sqrt(n))));
    }
    k = k > 0 ? k - 1 : 0;
    return {samples[k], samples[samples.size() - 1 - k]};
}

Interval rerun_interval(std::span<const double> samples) {
    constexpr std::size_t fewest = 6;
    // Student's t at 97.5 %, for 6 to 10 stretches.
    constexpr std::array<double, 5> quantiles = {2.571, 2.447, 2.365, 2.306, 2.262};
    constexpr std::size_t most = fewest + quantiles.size() - 1;
    if (samples.size() < fewest) {
        return median_interval({samples.begin(), samples.end()});
    }
    const auto stretches = std::min(samples.size(), most);
    std::vector<double> medians;
    double mean = 0;
    for (std::size_t i = 0; i < stretches; ++i) {
        const auto from = i * samples.size() / stretches;
        const auto to = (i + 1) * samples.size() / stretches;
        const auto some = samples.subspan(from, to - from);
        medians.push_back(quantile({some.begin(), some.end()}, 0.5));
        mean += medians.back() / static_cast<double>(stretches);
    }
    double squares = 0;
    for (const auto median : medians) {
        squares += (median - mean) * (median - mean);
    }
    const auto n = static_cast<double>(stretches);
    // Of the difference of two such medians: each has its own error.
    const auto error = std::sqrt(2 * squares / (n - 1) / n);
    const auto middle = quantile({samples.begin(), samples.end()}, 0.5);
    const auto half = quantiles[stretches - fewest] * error;
    return {middle - half, middle + half};
}

std::size_t steady_start(std::span<const double> samples) {
    const auto last = std::min(samples.size() / 2, longest_start);
    const double whole = deviation(samples);
    double least = whole;
    std::size_t start = 0;
    for (std::size_t k = 1; k <= last; ++k) {
        const double parted = deviation(samples.first(k)) + deviation(samples.subspan(k));
        if (parted < least) {
            least = parted;
            start = k;
        }
    }
    if (start == 0) {
        return 0;
    }
    // A start is slower than what follows by more than what follows scatters, and parting it must
    // pay: any two sets of samples deviate a little less from their own medians.
    const auto begin =
        spread({samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(start)});
    const auto rest = spread({samples.begin() + static_cast<std::ptrdiff_t>(start), samples.end()});
    const bool slower = begin.median > rest.median + 3 * rest.deviation;
    return slower && least < 0.9 * whole ? start : 0;
}

std::vector<std::size_t> middle_half(std::span<const double> samples) {
    std::vector<std::size_t> order(samples.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (samples.size() < 4) {
        return order;
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return samples[a] < samples[b]; });
    const auto quarter = static_cast<std::ptrdiff_t>(samples.size() / 4);
    std::vector<std::size_t> middle(order.begin() + quarter, order.end() - quarter);
    std::sort(middle.begin(), middle.end());
    return middle;
}

double same_distribution(std::span<const double> a, std::span<const double> b) {
    if (a.empty() || b.empty()) {
        return 1;
    }
    std::vector<std::pair<double, bool>> all;  // and whether it is of `a`
    for (const double sample : a) {
        all.emplace_back(sample, true);
    }
    for (const double sample : b) {
        all.emplace_back(sample, false);
    }
    std::sort(all.begin(), all.end());
    const auto n = static_cast<double>(all.size());
    double rank_sum = 0;  // of `a`
    double ties = 0;
    for (std::size_t i = 0; i < all.size();) {
        auto j = i;
        while (j < all.size() && all[j].first == all[i].first) {
            ++j;
        }
        const auto equal = static_cast<double>(j - i);
        const double rank = (static_cast<double>(i) + static_cast<double>(j) + 1) / 2;
        for (; i < j; ++i) {
            rank_sum += all[i].second ? rank : 0;
        }
        ties += equal * equal * equal - equal;
    }
    const auto x = static_cast<double>(a.size());
    const auto y = static_cast<double>(b.size());
    const double u = rank_sum - x * (x + 1) / 2;
    const double variance = x * y / 12 * (n + 1 - ties / (n * (n - 1)));
    if (variance <= 0) {
        return 1;
    }
    const double distance = std::max(0.0, std::abs(u - x * y / 2) - 0.5) / std::sqrt(variance);
    return std::erfc(distance / std::sqrt(2.0));
}

}  // namespace trocar
