#include "util/distribution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace trocar {

namespace {

constexpr std::size_t bins = 256;
using Counts = std::array<std::uint64_t, bins>;

// The equal bins between two numbers.
class Binning {
public:
    Binning(double min, double max) : half_min_(min / 2), scale_(bins / (max / 2 - min / 2)) {
        if (!std::isfinite(scale_)) {  // the numbers are all the same, or as good as that
            scale_ = 0;
        }
    }
    // Halves: the distance of the two ends need not be a number of the type.
    std::size_t operator()(double number) const {
        const auto bin = static_cast<std::int32_t>((number / 2 - half_min_) * scale_);
        return static_cast<std::size_t>(std::min(bin, static_cast<std::int32_t>(bins) - 1));
    }

private:
    double half_min_;
    double scale_;
};

double entropy_bits(const Counts& counts, double total) {
    double sum = 0;
    for (const auto count : counts) {
        if (count > 0) {
            const auto share = static_cast<double>(count) / total;
            sum -= share * std::log2(share);
        }
    }
    return std::max(sum, 0.0);
}

void fill_histogram(const Counts& counts, Distribution& distribution) {
    auto& histogram = distribution.histogram;
    for (std::size_t bin = 0; bin < bins; ++bin) {
        histogram[bin * histogram.size() / bins] += counts[bin];
    }
}

// The place of a quantile among `count` numbers in ascending order.
std::uint64_t rank_of(double share, std::uint64_t count) {
    const auto place = std::ceil(share * static_cast<double>(count));
    return static_cast<std::uint64_t>(std::max(place, 1.0)) - 1;
}

// Numbers with the bin of each: a quantile is then looked for among those of one bin.
class Binned {
public:
    Binned(std::span<const double> numbers, double min, double max)
        : numbers_(numbers), bin_of_(numbers.size()) {
        const Binning binning(min, max);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            bin_of_[i] = static_cast<std::uint8_t>(binning(numbers[i]));
        }
        count();
    }

    const Counts& counts() const { return counts_; }

    double quantile(double share) {
        auto rank = rank_of(share, numbers_.size());
        std::size_t bin = 0;
        while (rank >= counts_[bin]) {
            rank -= counts_[bin++];
        }
        if (bin != gathered_bin_) {
            gather(bin);
        }
        const auto at = gathered_.begin() + static_cast<std::ptrdiff_t>(rank);
        std::nth_element(gathered_.begin(), at, gathered_.end());
        return *at;
    }

private:
    void count() {
        // Two tables: the same bin again and again would otherwise wait for its last addition.
        Counts odd{};
        for (std::size_t i = 0; i + 1 < bin_of_.size(); i += 2) {
            ++counts_[bin_of_[i]];
            ++odd[bin_of_[i + 1]];
        }
        if (bin_of_.size() % 2 == 1) {
            ++counts_[bin_of_.back()];
        }
        for (std::size_t bin = 0; bin < bins; ++bin) {
            counts_[bin] += odd[bin];
        }
    }

    void gather(std::size_t bin) {
        gathered_.resize(counts_[bin] + 1);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < numbers_.size(); ++i) {
            gathered_[kept] = numbers_[i];  // one too far is allowed: no branch to guess wrong
            kept += bin_of_[i] == bin ? 1 : 0;
        }
        gathered_.resize(kept);
        gathered_bin_ = bin;
    }

    std::span<const double> numbers_;
    std::vector<std::uint8_t> bin_of_;
    Counts counts_{};
    std::vector<double> gathered_;
    std::size_t gathered_bin_ = bins;
};

}  // namespace

Distribution distribution_of(std::span<const double> numbers, double min, double max) {
    Distribution distribution;
    distribution.numbers = numbers.size();
    Binned binned(numbers, min, max);
    distribution.p1 = binned.quantile(0.01);
    distribution.p50 = binned.quantile(0.5);
    distribution.p99 = binned.quantile(0.99);
    distribution.entropy_bits = entropy_bits(binned.counts(), static_cast<double>(numbers.size()));
    fill_histogram(binned.counts(), distribution);
    return distribution;
}

Distribution distribution_of(std::span<const WeightedNumber> numbers) {
    const auto total = std::accumulate(
        numbers.begin(), numbers.end(), std::uint64_t{0},
        [](std::uint64_t sum, const WeightedNumber& number) { return sum + number.weight; });
    const auto quantile = [&](double share) {
        auto rank = rank_of(share, total);
        std::size_t i = 0;
        while (rank >= numbers[i].weight) {
            rank -= numbers[i++].weight;
        }
        return numbers[i].number;
    };
    Distribution distribution;
    distribution.numbers = total;
    distribution.p1 = quantile(0.01);
    distribution.p50 = quantile(0.5);
    distribution.p99 = quantile(0.99);
    const Binning binning(numbers.front().number, numbers.back().number);
    Counts counts{};
    for (const auto& number : numbers) {
        counts[binning(number.number)] += number.weight;
    }
    distribution.entropy_bits = entropy_bits(counts, static_cast<double>(total));
    fill_histogram(counts, distribution);
    return distribution;
}

}  // namespace trocar
