#include "util/samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trocar/random.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;

// 100, 101, 99, 100, …: a steady machine.
std::vector<double> steady(std::size_t count, double level = 100) {
    std::vector<double> samples;
    for (std::size_t i = 0; i < count; ++i) {
        samples.push_back(level + static_cast<double>(i % 3) - 1);
    }
    return samples;
}

TEST(Samples, QuantilesAreInterpolated) {
    EXPECT_EQ(0, quantile({}, 0.5));
    EXPECT_EQ(2.5, quantile({4, 1, 3, 2}, 0.5));
    EXPECT_EQ(1, quantile({4, 1, 3, 2}, 0));
    EXPECT_EQ(4, quantile({4, 1, 3, 2}, 1));
}

TEST(Samples, IntervalOfTheMedianIsThatOfTheTables) {
    // 10 samples: second smallest to second largest has 97.9 %, one further in 89 %.
    const auto ten = median_interval({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    EXPECT_EQ(2, ten.low);
    EXPECT_EQ(9, ten.high);
    const auto three = median_interval({5, 1, 3});
    EXPECT_EQ(1, three.low);
    EXPECT_EQ(5, three.high);
    std::vector<double> many(5000);
    for (std::size_t i = 0; i < many.size(); ++i) {
        many[i] = static_cast<double>(i);
    }
    EXPECT_NEAR(2499.5 - 69, median_interval(many).low, 2);
}

// How often the interval of one run holds the median of the next. What is drawn keeps `memory` of
// what came before, as machines do that are faster and slower by turns.
double held_by_rerun(double memory, std::uint64_t seed) {
    constexpr std::size_t runs = 1000;
    constexpr std::size_t visits = 200;
    std::vector<std::vector<double>> all;
    for (std::size_t run = 0; run < runs; ++run) {
        double state = 0;
        auto& samples = all.emplace_back();
        for (std::size_t i = 0; i < visits; ++i) {
            const auto words = philox(seed, run, i);
            const auto radius = std::sqrt(-2 * std::log(1 - unit_double(words[0], words[1])));
            const auto normal =
                radius * std::cos(6.283185307179586 * unit_double(words[2], words[3]));
            state = memory * state + std::sqrt(1 - memory * memory) * normal;
            samples.push_back(100 + state);
        }
    }
    double held = 0;
    for (std::size_t run = 0; run + 1 < runs; ++run) {
        const auto interval = rerun_interval(all[run]);
        const auto next = quantile(all[run + 1], 0.5);
        held += interval.low <= next && next <= interval.high ? 1 : 0;
    }
    return held / (runs - 1);
}

TEST(Samples, IntervalOfARerunHoldsItAsOftenAsItSays) {
    EXPECT_NEAR(held_by_rerun(0, 1), 0.95, 0.025);
    EXPECT_GT(held_by_rerun(0.8, 2), 0.90);  // 9 visits in a row are alike
}

TEST(Samples, IntervalOfARerunOfFewIsThatOfAll) {
    const std::vector<double> few = {5, 1, 3};
    EXPECT_EQ(1, rerun_interval(few).low);
    EXPECT_EQ(5, rerun_interval(few).high);
    EXPECT_EQ(0, rerun_interval({}).high);
}

TEST(Samples, SlowBeginningIsParted) {
    auto samples = steady(40);
    for (std::size_t i = 0; i < 5; ++i) {
        samples[i] += 50;
    }
    EXPECT_EQ(5U, steady_start(samples));
}

TEST(Samples, SteadyMachineHasNoBeginning) {
    EXPECT_EQ(0U, steady_start(steady(40)));
    EXPECT_EQ(0U, steady_start({}));
    auto outlier = steady(40);
    outlier[20] = 1000;
    EXPECT_EQ(0U, steady_start(outlier));
}

TEST(Samples, MiddleHalfLeavesOutBothEnds) {
    EXPECT_THAT(middle_half(std::vector<double>{9, 1, 5, 4, 8, 6, 2, 7}), ElementsAre(2, 3, 5, 7));
    EXPECT_THAT(middle_half(std::vector<double>{3, 1}), ElementsAre(0, 1));
}

TEST(Samples, DifferentMachinesAreToldApart) {
    EXPECT_GT(same_distribution(steady(30), steady(30)), 0.5);
    EXPECT_LT(same_distribution(steady(30), steady(30, 103)), 1e-6);
    EXPECT_EQ(1, same_distribution({}, steady(3)));
    EXPECT_EQ(1, same_distribution(std::vector<double>(5, 7), std::vector<double>(5, 7)));
}

}  // namespace
}  // namespace trocar
