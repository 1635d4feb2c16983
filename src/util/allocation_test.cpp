#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "trocar/error.h"
#include "trocar/intervals.h"
#include "trocar/random.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;
using Plans = std::vector<StratumPlan>;

TEST(Allocation, ProportionalFollowsThePopulation) {
    EXPECT_THAT(proportional_allocation(Plans{{100}, {300}, {600}}, 100), ElementsAre(10, 30, 60));
    EXPECT_THAT(proportional_allocation(Plans{{1}, {1}, {1}}, 2), ElementsAre(1, 1, 0));
    EXPECT_THAT(proportional_allocation(Plans{{1000000}, {10}}, 100, 5), ElementsAre(95, 5));
}

TEST(Allocation, NeymanFollowsTheSpread) {
    // sqrt(p (1 - p)): 0.5, 0.3, 0.1.
    EXPECT_THAT(neyman_allocation(Plans{{1000, 0.5}, {1000, 0.1}, {1000, 0.010102051}}, 90),
                ElementsAre(50, 30, 10));
}

TEST(Allocation, NoStratumGetsMoreThanItHas) {
    EXPECT_THAT(neyman_allocation(Plans{{10, 0.5}, {100000, 0.00001}}, 1000), ElementsAre(10, 990));
    EXPECT_THAT(neyman_allocation(Plans{{10, 0.5}, {20, 0.1}}, 1000), ElementsAre(10, 20));
}

TEST(Allocation, RatesOfNothingGetWhatIsLeft) {
    EXPECT_THAT(neyman_allocation(Plans{{10, 0.5}, {100, 0}, {300, 1}}, 54, 2),
                ElementsAre(10, 11, 33));
    EXPECT_THAT(neyman_allocation(Plans{{100, 0}, {300, 0}}, 40), ElementsAre(10, 30));
}

TEST(Allocation, ABudgetBelowTheMinimumIsRefused) {
    EXPECT_THROW(neyman_allocation(Plans{{10}, {10}}, 3, 2), Error);
    EXPECT_THROW(neyman_allocation(Plans{{10, 1.5}}, 3), Error);
    EXPECT_THAT(neyman_allocation(Plans{{10}, {1}}, 3, 2), ElementsAre(2, 1));
    EXPECT_THAT(neyman_allocation({}, 0), ElementsAre());
}

TEST(Allocation, AlwaysAddsUpWithinItsBounds) {
    for (std::uint32_t round = 0; round < 2000; ++round) {
        const auto words = philox(7, round, 0);
        Plans plans(1 + words[0] % 12);
        std::uint64_t population = 0;
        for (std::size_t i = 0; i < plans.size(); ++i) {
            const auto more = philox(7, round, i + 1);
            const auto size = std::uint64_t{more[0]} * more[1] >> (4 + more[2] % 60);
            plans[i] = {size, more[3] % 3 == 0 ? 0 : unit_double(more[3], more[2])};
            population += size;
        }
        const std::uint64_t least = words[1] % 3;
        const auto budget = least * plans.size() + (words[2] >> words[3] % 32);
        for (auto* allocation : {&neyman_allocation, &proportional_allocation}) {
            const auto counts = (*allocation)(plans, budget, least);
            EXPECT_EQ(std::min(budget, population),
                      std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
            for (std::size_t i = 0; i < plans.size(); ++i) {
                EXPECT_LE(counts[i], plans[i].population);
                EXPECT_GE(counts[i], std::min(least, plans[i].population));
            }
        }
    }
}

}  // namespace
}  // namespace trocar
