#include "util/distribution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace trocar {

namespace {

constexpr std::size_t bins = 256;
using BinCounts = std::array<std::uint64_t, bins>;

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

// c·log2(c), from a table for the counts that samples have.
double weighted_log(std::uint64_t count) {
    static const auto table = [] {
        std::array<double, 1025> made{};
        for (std::size_t i = 2; i < made.size(); ++i) {
            made[i] = static_cast<double>(i) * std::log2(static_cast<double>(i));
        }
        return made;
    }();
    const auto number = static_cast<double>(count);
    return count < table.size() ? table[count] : number * std::log2(number);
}

double entropy_bits(const BinCounts& counts, double total) {
    double sum = 0;
    for (const auto count : counts) {
        sum += weighted_log(count);
    }
    return std::max(std::log2(total) - sum / total, 0.0);
}

void fill_histogram(const BinCounts& counts, Distribution& distribution) {
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

    const BinCounts& counts() const { return counts_; }

    std::array<double, 3> quantiles(const std::array<double, 3>& shares) const {
        std::array<Place, 3> places;
        std::array<std::vector<double>, 3> gathered;
        for (std::size_t q = 0; q < 3; ++q) {
            places[q] = place_of(shares[q]);
            gathered[q].resize(counts_[places[q].bin] + 1);
        }
        gather(places, gathered);
        std::array<double, 3> found;
        for (std::size_t q = 0; q < 3; ++q) {
            const auto begin = gathered[q].begin();
            const auto at = begin + static_cast<std::ptrdiff_t>(places[q].rank);
            std::nth_element(begin, at, gathered[q].end() - 1);
            found[q] = *at;
        }
        return found;
    }

private:
    void count() {
        // Two tables: the same bin again and again would otherwise wait for its last addition.
        BinCounts odd{};
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

    // A quantile: in which bin, and where among its numbers in ascending order.
    struct Place {
        std::size_t bin = 0;
        std::uint64_t rank = 0;
    };
    Place place_of(double share) const {
        Place place{0, rank_of(share, numbers_.size())};
        while (place.rank >= counts_[place.bin]) {
            place.rank -= counts_[place.bin++];
        }
        return place;
    }

    // The numbers of three bins in one pass. Each is written and kept only where it belongs, so
    // that no branch is guessed wrong; one place more than needed is there for that.
    void gather(const std::array<Place, 3>& places,
                std::array<std::vector<double>, 3>& gathered) const {
        std::array<std::size_t, 3> kept{};
        for (std::size_t i = 0; i < numbers_.size(); ++i) {
            for (std::size_t q = 0; q < 3; ++q) {
                gathered[q][kept[q]] = numbers_[i];
                kept[q] += bin_of_[i] == places[q].bin ? 1 : 0;
            }
        }
    }

    std::span<const double> numbers_;
    std::vector<std::uint8_t> bin_of_;
    BinCounts counts_{};
};

}  // namespace

Distribution distribution_of(std::span<const double> numbers, double min, double max) {
    Distribution distribution;
    distribution.numbers = numbers.size();
    const Binned binned(numbers, min, max);
    const auto [p1, p50, p99] = binned.quantiles({0.01, 0.5, 0.99});
    distribution.p1 = p1;
    distribution.p50 = p50;
    distribution.p99 = p99;
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
    BinCounts counts{};
    for (const auto& number : numbers) {
        counts[binning(number.number)] += number.weight;
    }
    distribution.entropy_bits = entropy_bits(counts, static_cast<double>(total));
    fill_histogram(counts, distribution);
    return distribution;
}

}  // namespace trocar
