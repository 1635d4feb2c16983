#include "trocar/intervals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trocar/error.h"
#include "util/distributions.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The numbers are those of scipy 1.17.1.

TEST(Distributions, NormalQuantiles) {
    EXPECT_NEAR(0, normal_quantile(0.5), 1e-15);
    EXPECT_NEAR(1.959963984540054, normal_quantile(0.975), 1e-14);
    EXPECT_NEAR(2.5758293035489004, normal_quantile(0.995), 1e-14);
    EXPECT_NEAR(-0.5244005127080409, normal_quantile(0.3), 1e-14);
    EXPECT_NEAR(-6.361340902404056, normal_quantile(1e-10), 1e-13);
    EXPECT_NEAR(-37.0470962993612, normal_quantile(1e-300), 1e-12);
    EXPECT_THROW(normal_quantile(1), Error);
}

TEST(Distributions, StudentQuantiles) {
    EXPECT_NEAR(12.706204736174694, student_quantile(0.975, 1), 1e-11);
    EXPECT_NEAR(4.302652729749462, student_quantile(0.975, 2), 1e-12);
    EXPECT_NEAR(2.0422724563012378, student_quantile(0.975, 30), 1e-12);
    EXPECT_NEAR(-1.9623390808264083, student_quantile(0.025, 1000), 1e-11);
}

TEST(Distributions, IncompleteBeta) {
    EXPECT_NEAR(0.5248, incomplete_beta(2, 3, 0.4), 1e-14);
    EXPECT_NEAR(0.84835909036529, incomplete_beta(0.5, 10, 0.1), 1e-13);
    EXPECT_NEAR(0.7298824325036775, incomplete_beta(1e6, 2e6, 0.3335), 1e-11);
    EXPECT_NEAR(0.8144533152313072, incomplete_beta(1e9, 1e9, 0.50001), 1e-9);
    EXPECT_EQ(0, incomplete_beta(2, 3, 0));
    EXPECT_EQ(1, incomplete_beta(2, 3, 1));
}

TEST(Distributions, HypergeometricTails) {
    EXPECT_NEAR(0.8672911704667254, hypergeometric_at_least(12, {1000, 300, 50}), 1e-12);
    EXPECT_NEAR(0.21655080973121965, hypergeometric_at_most(12, {1000, 300, 50}), 1e-12);
    EXPECT_NEAR(0.014330145361376643, hypergeometric_at_least(3000, {10000000, 2900000, 10000}),
                1e-10);
    EXPECT_NEAR(0.00028861254001336654,
                hypergeometric_at_least(30500, {1000000000, 300000000, 100000}), 1e-10);
    EXPECT_EQ(1, hypergeometric_at_least(5, {10, 10, 5}));
    EXPECT_EQ(0, hypergeometric_at_most(4, {10, 10, 5}));
}

struct Reference {
    std::uint64_t events, trials;
    double confidence;
    Interval exact, score;
};
const Reference references[] = {
    {0, 10, 0.95, {0, 0.3084971078187607}, {0, 0.27753279986288926}},
    {3,
     10,
     0.95,
     {0.0667395111777345, 0.6524528500599973},
     {0.10779126740630102, 0.6032218525388546}},
    {10, 10, 0.99, {0.5887040186524747, 1}, {0.6011459066950919, 1}},
    {7,
     12,
     0.9,
     {0.31523779072445207, 0.818975242757679},
     {0.3559810149005346, 0.7800221193082192}},
    {50,
     1000,
     0.95,
     {0.03733539760466178, 0.06539048791549364},
     {0.03813026239274881, 0.06531382024425081}},
    {1,
     1000000,
     0.99,
     {5.012541810981499e-09, 7.430105611978525e-06},
     {1.174054749996328e-07, 8.517433834755595e-06}},
    {123456789,
     1000000000,
     0.95,
     {0.12343640076269403, 0.12347717941704354},
     {0.1234364016192789, 0.12347717927367159}},
    {999999999,
     1000000000,
     0.95,
     {0.9999999944283565, 0.9999999999746821},
     {0.9999999943350657, 0.9999999998234754}},
    {0, 1000000000, 0.95, {0, 3.6888794473100194e-09}, {0, 3.841458805937319e-09}},
    {500000000,
     1000000000,
     0.999,
     {0.499947971704288, 0.5000520282957119},
     {0.4999479722044157, 0.5000520277955842}},
};

TEST(Intervals, ClopperPearsonIsThatOfScipy) {
    for (const auto& r : references) {
        const auto interval = clopper_pearson(r.events, r.trials, r.confidence);
        EXPECT_NEAR(r.exact.low, interval.low, 1e-12) << r.events << " of " << r.trials;
        EXPECT_NEAR(r.exact.high, interval.high, 1e-12) << r.events << " of " << r.trials;
    }
    const auto rare = clopper_pearson(1, 1000000, 0.99);
    EXPECT_NEAR(1, rare.low / 5.012541810981499e-09, 1e-10);
    EXPECT_NEAR(1, rare.high / 7.430105611978525e-06, 1e-10);
    EXPECT_NEAR(1, clopper_pearson(0, 1000000000, 0.95).high / 3.6888794473100194e-09, 1e-10);
}

TEST(Intervals, WilsonIsThatOfScipy) {
    for (const auto& r : references) {
        const auto interval = wilson(r.events, r.trials, r.confidence);
        EXPECT_NEAR(r.score.low, interval.low, 1e-13) << r.events << " of " << r.trials;
        EXPECT_NEAR(r.score.high, interval.high, 1e-13) << r.events << " of " << r.trials;
    }
}

TEST(Intervals, ClopperPearsonOfAPopulationInvertsTheHypergeometricDistribution) {
    const auto check = [](std::uint64_t k, std::uint64_t n, std::uint64_t population,
                          double confidence, double low, double high) {
        const auto interval = clopper_pearson(k, n, confidence, population);
        const auto all = static_cast<double>(population);
        EXPECT_DOUBLE_EQ(low, interval.low * all);
        EXPECT_DOUBLE_EQ(high, interval.high * all);
    };
    check(2, 20, 50, 0.95, 2, 13);
    check(0, 30, 100, 0.95, 0, 9);
    check(15, 100, 1000, 0.99, 76, 257);
    check(40, 40, 45, 0.95, 44, 45);
}

TEST(Intervals, APopulationMuchLargerThanTheSampleChangesNothing) {
    const auto with = clopper_pearson(50, 1000, 0.95, 1000000000000000);
    const auto without = clopper_pearson(50, 1000, 0.95);
    EXPECT_NEAR(without.low, with.low, 1e-9);
    EXPECT_NEAR(without.high, with.high, 1e-9);
    EXPECT_NEAR(wilson(50, 1000, 0.95).low, wilson(50, 1000, 0.95, 1000000000000).low, 1e-9);
}

TEST(Intervals, AWholePopulationLeavesNoDoubt) {
    for (auto* interval : {&wilson, &clopper_pearson}) {
        const auto exact = (*interval)(3, 8, 0.95, 8);
        EXPECT_EQ(0.375, exact.low);
        EXPECT_EQ(0.375, exact.high);
        const auto all_but_one = (*interval)(0, 99, 0.95, 100);
        EXPECT_EQ(0, all_but_one.low);
        EXPECT_LE(all_but_one.high, 0.01);
    }
}

TEST(Intervals, WithoutTrialsAnyRateIsPossible) {
    for (auto* interval : {&wilson, &clopper_pearson}) {
        EXPECT_EQ(0, (*interval)(0, 0, 0.95, 10).low);
        EXPECT_EQ(1, (*interval)(0, 0, 0.95, std::nullopt).high);
    }
}

TEST(Intervals, NumbersThatCannotBeAreRefused) {
    EXPECT_THROW(wilson(3, 2, 0.95), Error);
    EXPECT_THROW(wilson(3, 20, 0.95, 10), Error);
    EXPECT_THROW(clopper_pearson(1, 2, 95), Error);
    EXPECT_THROW(clopper_pearson(1, 2, std::nan("")), Error);
    EXPECT_THROW(sample_size(100, 0, 0.95), Error);
    EXPECT_THROW(margin_of(11, 10, 0.95), Error);
    EXPECT_THROW(stratified_rate(std::vector<SampledStratum>{{10, 11, 0}}, 0.95), Error);
    EXPECT_THROW(clustered_rate(std::vector<Cluster>{{1, 2}}, 0.95), Error);
    EXPECT_THROW(weighted_rate(std::vector<WeightedTrial>{{-1, false}}, 0.95), Error);
}

TEST(SampleSize, IsLeveugles) {
    EXPECT_EQ(9604U, sample_size(std::nullopt, 0.01, 0.95));
    EXPECT_EQ(16588U, sample_size(std::nullopt, 0.01, 0.99));
    EXPECT_EQ(4900U, sample_size(10000, 0.01, 0.95));  // 10000 / (1 + 9999 / 9603.6)
    EXPECT_EQ(1U, sample_size(1, 0.01, 0.95));
    EXPECT_EQ(0U, sample_size(0, 0.01, 0.95));
    EXPECT_LT(sample_size(1000000, 0.01, 0.95, 0.1), sample_size(1000000, 0.01, 0.95));
}

TEST(SampleSize, MarginsAreItsInverse) {
    for (const std::uint64_t population : {100ULL, 12345ULL, 1000000000ULL}) {
        const auto trials = sample_size(population, 0.02, 0.99);
        EXPECT_LE(margin_of(trials, population, 0.99), 0.02);
        EXPECT_GT(margin_of(trials - 1, population, 0.99), 0.02);
    }
    EXPECT_EQ(0, margin_of(50, 50, 0.95));
    EXPECT_EQ(1, margin_of(0, 50, 0.95));
}

TEST(StratifiedRate, WeighsByPopulation) {
    const std::vector<SampledStratum> strata{{900, 100, 10}, {100, 100, 50}};
    const auto estimate = stratified_rate(strata, 0.95);
    EXPECT_DOUBLE_EQ(0.9 * 0.1 + 0.1 * 0.5, estimate.rate);
    EXPECT_LT(estimate.interval.low, estimate.rate);
    EXPECT_GT(estimate.interval.high, estimate.rate);
    EXPECT_THAT(estimate.notes, IsEmpty());
}

TEST(StratifiedRate, OfOneStratumIsNearClopperAndPearsons) {
    const auto one =
        stratified_rate(std::vector<SampledStratum>{{1000000, 1000, 50}}, 0.95).interval;
    const auto exact = clopper_pearson(50, 1000, 0.95, 1000000);
    EXPECT_NEAR(exact.low, one.low, 2e-4);
    EXPECT_NEAR(exact.high, one.high, 2e-4);
}

TEST(StratifiedRate, IsExactWhereAllWasTried) {
    const auto estimate =
        stratified_rate(std::vector<SampledStratum>{{10, 10, 3}, {30, 30, 0}}, 0.95);
    EXPECT_DOUBLE_EQ(3. / 40, estimate.rate);
    EXPECT_DOUBLE_EQ(estimate.rate, estimate.interval.low);
    EXPECT_DOUBLE_EQ(estimate.rate, estimate.interval.high);
    EXPECT_TRUE(std::isinf(estimate.effective));
}

TEST(StratifiedRate, WithoutEventsHasAnUpperBound) {
    const auto estimate =
        stratified_rate(std::vector<SampledStratum>{{100000, 500, 0}, {100000, 500, 0}}, 0.95);
    EXPECT_EQ(0, estimate.interval.low);
    EXPECT_GT(estimate.interval.high, 0.002);
    EXPECT_LT(estimate.interval.high, 0.008);
}

TEST(StratifiedRate, AStratumWithoutTrialsMayHaveAnyRate) {
    const auto estimate =
        stratified_rate(std::vector<SampledStratum>{{80, 80, 8}, {20, 0, 0}}, 0.95);
    EXPECT_DOUBLE_EQ(0.1, estimate.rate);
    EXPECT_DOUBLE_EQ(0.08, estimate.interval.low);
    EXPECT_DOUBLE_EQ(0.28, estimate.interval.high);
    EXPECT_THAT(estimate.notes, ElementsAre(HasSubstr("1 stratum without trials, 20 %")));
    const auto nothing = stratified_rate(std::vector<SampledStratum>{{20, 0, 0}}, 0.95);
    EXPECT_TRUE(std::isnan(nothing.rate));
    EXPECT_EQ(1, nothing.interval.high);
}

TEST(ClusteredRate, IsWiderThanTrialsWouldMakeIt) {
    std::vector<Cluster> clusters(50, {100, 0});
    for (std::size_t i = 0; i < 10; ++i) {
        clusters[i].events = 100;
    }
    const auto estimate = clustered_rate(clusters, 0.95);
    EXPECT_DOUBLE_EQ(0.2, estimate.rate);
    EXPECT_NEAR(48, estimate.effective, 1);  // all of a cluster fail or none does
    const auto exact = clopper_pearson(10, 50, 0.95);
    EXPECT_NEAR(exact.low, estimate.interval.low, 0.01);
    EXPECT_NEAR(exact.high, estimate.interval.high, 0.01);
}

TEST(ClusteredRate, WithoutEventsCountsClusters) {
    const auto none = clustered_rate(std::vector<Cluster>(20, {100, 0}), 0.95);
    EXPECT_EQ(0, none.interval.low);
    EXPECT_NEAR(clopper_pearson(0, 20, 0.95).high, none.interval.high, 1e-12);
    const auto all = clustered_rate(std::vector<Cluster>(20, {100, 100}), 0.95);
    EXPECT_EQ(1, all.interval.high);
    EXPECT_NEAR(clopper_pearson(20, 20, 0.95).low, all.interval.low, 1e-12);
    EXPECT_TRUE(std::isnan(clustered_rate({}, 0.95).rate));
}

// 10 faults: the upper end was 27.8 % without an event, and 1.7 % with one.
TEST(ClusteredRate, OfOneEventIsNotNarrowerThanOfNone) {
    std::vector<Cluster> clusters(10, {1000, 0});
    const auto none = clustered_rate(clusters, 0.95).interval;
    clusters[3].events = 1;
    const auto one = clustered_rate(clusters, 0.95).interval;
    EXPECT_GT(one.high, none.high);
    EXPECT_LT(one.high, none.high + 0.01);
}

TEST(ClusteredRate, OfAllClustersIsExact) {
    const auto estimate = clustered_rate(std::vector<Cluster>{{10, 1}, {10, 4}}, 0.95, 2);
    EXPECT_EQ(0.25, estimate.interval.low);
    EXPECT_EQ(0.25, estimate.interval.high);
}

TEST(WeightedRate, OfEqualWeightsIsTheRate) {
    std::vector<WeightedTrial> trials(100, {1, false});
    for (std::size_t i = 0; i < 20; ++i) {
        trials[i].event = true;
    }
    const auto estimate = weighted_rate(trials, 0.95);
    EXPECT_DOUBLE_EQ(0.2, estimate.rate);
    EXPECT_DOUBLE_EQ(0.2, estimate.horvitz_thompson);
    EXPECT_DOUBLE_EQ(100, estimate.kish);
    EXPECT_NEAR(99, estimate.effective, 3);
}

TEST(WeightedRate, WeighsEventsByHowLikelyTheyAre) {
    const std::vector<WeightedTrial> trials{{0.5, true}, {0.5, true}, {2, false}, {2, false}};
    const auto estimate = weighted_rate(trials, 0.95);
    EXPECT_DOUBLE_EQ(0.2, estimate.rate);
    EXPECT_DOUBLE_EQ(0.25, estimate.horvitz_thompson);
    EXPECT_DOUBLE_EQ(25 / 8.5, estimate.kish);
}

TEST(WeightedRate, WithoutEventsCountsTheHeaviest) {
    const auto estimate = weighted_rate(std::vector<WeightedTrial>(30, {2, false}), 0.95);
    EXPECT_EQ(0, estimate.rate);
    EXPECT_NEAR(clopper_pearson(0, 30, 0.95).high, estimate.interval.high, 1e-12);
    EXPECT_TRUE(std::isnan(weighted_rate({}, 0.95).rate));
    // Light ones say little of those that stand for most of the population.
    std::vector<WeightedTrial> some(1000, {0.01, false});
    some.insert(some.end(), 20, {10, false});
    EXPECT_NEAR(clopper_pearson(0, 21, 0.95).high, weighted_rate(some, 0.95).interval.high, 1e-3);
}

TEST(DesignRate, OfEqualWeightsIsThatOfClusters) {
    std::vector<Cluster> plain;
    ClusterStratum heavy;
    for (std::uint64_t i = 0; i < 200; ++i) {
        plain.push_back({4, i % 5 == 0 ? i % 4 : 0});
        heavy.clusters.push_back({plain.back(), 7});
    }
    const auto expected = clustered_rate(plain, 0.95);
    const auto found = design_rate(std::span(&heavy, 1), 0.95);
    EXPECT_DOUBLE_EQ(expected.rate, found.rate);
    EXPECT_NEAR(expected.interval.high, found.interval.high, 1e-12);
}

TEST(DesignRate, CountsClustersForNoMoreThanTheirWeightsAllow) {
    // Many light clusters with events, and a few heavy ones, which decide.
    ClusterStratum some;
    some.clusters.assign(1000, {{1, 1}, 0.01});
    some.clusters.insert(some.clusters.end(), 20, {{1, 0}, 10});
    const auto found = design_rate(std::span(&some, 1), 0.95);
    EXPECT_NEAR(10.0 / 210, found.rate, 1e-12);
    EXPECT_LT(found.effective, 35);
    EXPECT_GT(found.interval.high - found.interval.low, 0.1);
}

TEST(DesignRate, LeavesStrataOutOfDoubtThatWereTriedAsAWhole) {
    std::vector<ClusterStratum> strata(2);
    strata[0].population = 100;
    strata[0].clusters.assign(100, {{3, 1}, 1});
    strata[1].population = 100;
    strata[1].clusters.assign(50, {{3, 0}, 2});
    const auto half = design_rate(strata, 0.95);
    EXPECT_NEAR(1. / 6, half.rate, 1e-12);
    EXPECT_NEAR(1. / 6, half.interval.low, 0.01);
    EXPECT_GT(half.interval.high, half.rate + 0.01);
    strata[1].clusters.assign(100, {{3, 0}, 1});
    const auto all = design_rate(strata, 0.95);
    EXPECT_EQ(all.interval.low, all.rate);
    EXPECT_EQ(all.interval.high, all.rate);
    EXPECT_TRUE(std::isinf(all.effective));
}

}  // namespace
}  // namespace trocar
