// How often the intervals hold the true rate, by simulation with a fixed seed.
#include <gtest/gtest.h>

#include <functional>

#include "trocar/intervals.h"
#include "trocar/random.h"

namespace trocar {
namespace {

constexpr std::uint64_t rounds = 2000;

// Numbers in [0, 1), one after the other.
class Stream {
public:
    explicit Stream(std::uint64_t key) : key_(key) {}
    double next() {
        const auto words = philox(key_, 0, at_++);
        return unit_double(words[0], words[1]);
    }
    std::uint64_t events(std::uint64_t trials, double rate) {
        std::uint64_t count = 0;
        for (std::uint64_t i = 0; i < trials; ++i) {
            count += next() < rate ? 1 : 0;
        }
        return count;
    }
    // Marked ones among `trials` drawn without replacement.
    std::uint64_t drawn(std::uint64_t trials, std::uint64_t population, std::uint64_t marked) {
        std::uint64_t count = 0;
        for (std::uint64_t i = 0; i < trials; ++i) {
            const auto left = static_cast<double>(population - i);
            count += next() * left < static_cast<double>(marked - count) ? 1 : 0;
        }
        return count;
    }

private:
    std::uint64_t key_;
    std::uint64_t at_ = 0;
};

double coverage(double truth, const std::function<Interval(Stream&)>& draw) {
    std::uint64_t held = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        Stream stream(round);
        const auto interval = draw(stream);
        held += interval.low <= truth && truth <= interval.high ? 1 : 0;
    }
    return static_cast<double>(held) / rounds;
}

TEST(Coverage, ClopperPearsonHoldsAtLeastItsConfidence) {
    for (const double rate : {0.005, 0.1, 0.5}) {
        EXPECT_GE(
            coverage(rate,
                     [&](Stream& s) { return clopper_pearson(s.events(100, rate), 100, 0.95); }),
            0.945);
    }
    EXPECT_GE(
        coverage(0.1,
                 [](Stream& s) { return clopper_pearson(s.drawn(100, 300, 30), 100, 0.95, 300); }),
        0.945);
}

TEST(Coverage, WilsonIsNearItsConfidence) {
    for (const double rate : {0.02, 0.1, 0.5}) {
        const auto share =
            coverage(rate, [&](Stream& s) { return wilson(s.events(200, rate), 200, 0.95); });
        EXPECT_GE(share, 0.93) << rate;
        EXPECT_LE(share, 0.985) << rate;
    }
    const auto share =
        coverage(0.1, [](Stream& s) { return wilson(s.drawn(150, 300, 30), 150, 0.95, 300); });
    EXPECT_GE(share, 0.93);
    EXPECT_LE(share, 0.985);
}

TEST(Coverage, StrataThatDiffer) {
    const std::vector<std::uint64_t> sizes{100000, 10000, 1000, 50000, 200};
    const std::vector<double> rates{0.002, 0.3, 0.9, 0.02, 0.5};
    const std::vector<std::uint64_t> trials{200, 100, 50, 100, 200};
    double truth = 0;
    double population = 0;
    for (std::size_t h = 0; h < sizes.size(); ++h) {
        truth += static_cast<double>(sizes[h]) * rates[h];
        population += static_cast<double>(sizes[h]);
    }
    truth /= population;
    const auto share = coverage(truth, [&](Stream& s) {
        std::vector<SampledStratum> strata;
        for (std::size_t h = 0; h < sizes.size(); ++h) {
            const auto marked =
                static_cast<std::uint64_t>(rates[h] * static_cast<double>(sizes[h]) + 0.5);
            strata.push_back({sizes[h], trials[h], s.drawn(trials[h], sizes[h], marked)});
        }
        return stratified_rate(strata, 0.95).interval;
    });
    EXPECT_GE(share, 0.94);
    EXPECT_LE(share, 0.99);
}

TEST(Coverage, RareEventsInManyStrata) {
    const auto share = coverage(0.002, [](Stream& s) {
        std::vector<SampledStratum> strata;
        for (int h = 0; h < 20; ++h) {
            strata.push_back({100000, 50, s.drawn(50, 100000, 200)});
        }
        return stratified_rate(strata, 0.95).interval;
    });
    EXPECT_GE(share, 0.93);
}

// Faults whose inputs fail together, more or less.
TEST(Coverage, Clusters) {
    const auto share = coverage(0.2, [](Stream& s) {
        std::vector<Cluster> clusters;
        for (int i = 0; i < 60; ++i) {
            const double rate = s.next() < 0.25 ? 0.8 : 0;
            const auto trials = static_cast<std::uint64_t>(5 + 20 * s.next());
            clusters.push_back({trials, s.events(trials, rate)});
        }
        return clustered_rate(clusters, 0.95).interval;
    });
    EXPECT_GE(share, 0.93);
    EXPECT_LE(share, 0.985);
}

// 1 % of the population fails half of the time; it is drawn as often as the rest.
TEST(Coverage, ImportanceSampling) {
    double effective = 0;
    const auto share = coverage(0.005, [&](Stream& s) {
        std::vector<WeightedTrial> trials;
        for (int i = 0; i < 400; ++i) {
            const bool weak = s.next() < 0.5;
            trials.push_back({weak ? 0.02 : 1.98, weak && s.next() < 0.5});
        }
        const auto estimate = weighted_rate(trials, 0.95);
        effective += estimate.effective / rounds;
        return estimate.interval;
    });
    EXPECT_GE(share, 0.93);
    EXPECT_LE(share, 0.985);
    EXPECT_GT(effective, 5000);  // of 400 trials: what it is done for
}

}  // namespace
}  // namespace trocar
