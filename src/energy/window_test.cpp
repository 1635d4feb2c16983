#include "energy/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trocar::energy {
namespace {

using testing::HasSubstr;

Channel channel(std::string name, std::uint64_t range = 0) {
    Channel one;
    one.domain.name = std::move(name);
    one.unit = 1e-6;
    one.range = range;
    return one;
}

Value count(std::uint64_t number) {
    Value value;
    value.count = number;
    return value;
}

Value watts(double number) {
    Value value;
    value.watts = number;
    return value;
}

Value failed(std::string why) {
    Value value;
    value.failed = std::move(why);
    return value;
}

Edge edge(double at, std::vector<Value> values, bool aligned = false) {
    Edge one;
    one.at = at;
    one.aligned = aligned;
    one.values = std::move(values);
    return one;
}

TEST(EnergyCount, IsTheDifferenceOfTwoReads) {
    const auto part =
        energy_counted(channel("package-0"), count(1'000'000), count(3'500'000), 1, 100);
    ASSERT_TRUE(part.joules);
    EXPECT_DOUBLE_EQ(*part.joules, 2.5);
    EXPECT_EQ(part.gap, "");
}

TEST(EnergyCount, AWrapIsUndoneByTheRange) {
    const auto part = energy_counted(channel("package-0", 262'143'328'850), count(262'143'000'000),
                                     count(671'150), 0.1, 100);
    ASSERT_TRUE(part.joules);
    EXPECT_NEAR(*part.joules, 1.0, 1e-9);
}

TEST(EnergyCount, EqualReadsAreNoWrapAndNoZero) {
    const auto part =
        energy_counted(channel("package-0", 1'000'000), count(7), count(7), 1e-4, 100);
    EXPECT_FALSE(part.joules);
    EXPECT_THAT(part.gap, HasSubstr("did not move"));
}

TEST(EnergyCount, GoingBackFurtherThanAWrapCouldIsAReset) {
    const auto part =
        energy_counted(channel("package-0", 262'143'328'850), count(90'000'000), count(5), 1, 100);
    EXPECT_FALSE(part.joules);
    EXPECT_THAT(part.gap, HasSubstr("reset"));
    EXPECT_THAT(energy_counted(channel("gpu-0"), count(9), count(5), 1, 100).gap,
                HasSubstr("reset"));
}

TEST(EnergyCount, AJumpThatNoMachineCouldTakeIsAGap) {
    const auto part = energy_counted(channel("package-0"), count(0), count(5'000'000'000), 1, 2000);
    EXPECT_FALSE(part.joules);
    EXPECT_THAT(part.gap, HasSubstr("jumped"));
}

TEST(EnergyCount, AWindowThatCouldHoldTwoWrapsIsRefusedWithTheLongest) {
    const auto part = energy_counted(channel("package-0", 65'536'000'000), count(0),
                                     count(40'000'000'000), 700, 100);
    EXPECT_FALSE(part.joules);
    EXPECT_THAT(part.gap, HasSubstr("two wraps"));
    EXPECT_THAT(part.gap, HasSubstr("in 655 s"));
}

TEST(EnergyCount, AReadAboveTheRangeIsAGap) {
    EXPECT_THAT(energy_counted(channel("package-0", 10), count(1), count(11), 1, 100).gap,
                HasSubstr("above its range"));
}

TEST(EnergyCount, AFailedReadIsAGapAndNotZero) {
    const auto part = energy_counted(channel("package-0"), count(1), failed("it is gone"), 1, 100);
    EXPECT_FALSE(part.joules);
    EXPECT_EQ(part.gap, "it is gone");
}

TEST(EnergyEdges, TheErrorIsTwoTicksOfTheWindow) {
    EnergyWindow window;
    fill_counted(window, {channel("package-0")}, edge(10, {count(0)}),
                 edge(11, {count(50'000'000)}), 0.01, 1000);
    ASSERT_TRUE(window.joules);
    EXPECT_DOUBLE_EQ(*window.joules, 50);
    EXPECT_EQ(window.label, EnergyLabel::measured);
    EXPECT_NEAR(*window.uncertainty_joules, 50 * 2 * 0.01, 1e-5);
}

TEST(EnergyEdges, AnAlignedEdgeHasNoTickOfError) {
    EnergyWindow window;
    auto begin = edge(10, {count(0)}, true);
    begin.span = 1e-5;
    fill_counted(window, {channel("package-0")}, begin, edge(11, {count(50'000'000)}), 0.01, 1000);
    EXPECT_NEAR(*window.uncertainty_joules, 50 * (0.01 + 1e-5), 1e-5);
}

TEST(EnergyEdges, WithoutATickTheErrorIsUnknown) {
    EnergyWindow window;
    fill_counted(window, {channel("package-0")}, edge(10, {count(0)}),
                 edge(11, {count(50'000'000)}), std::nullopt, 1000);
    EXPECT_TRUE(window.joules);
    EXPECT_FALSE(window.uncertainty_joules);
}

TEST(EnergyEdges, AClockThatGoesBackIsAGap) {
    EnergyWindow window;
    fill_counted(window, {channel("package-0")}, edge(10, {count(0)}), edge(9, {count(50)}), 0.01,
                 1000);
    EXPECT_FALSE(window.joules);
    EXPECT_FALSE(window.seconds);
    EXPECT_THAT(window.gap, HasSubstr("clock went back"));
}

TEST(EnergyEdges, OnlySummedDomainsAreSummedAndOnlyTheirGapsCount) {
    std::vector<Channel> channels{channel("package-0"), channel("core"), channel("package-1")};
    channels[1].domain.summed = false;
    EnergyWindow window;
    fill_counted(window, channels, edge(0, {count(0), count(0), count(0)}),
                 edge(1, {count(3'000'000), failed("gone"), count(4'000'000)}), 0.001, 1000);
    ASSERT_TRUE(window.joules);
    EXPECT_DOUBLE_EQ(*window.joules, 7);
    EXPECT_FALSE(window.domains[1].joules);
    EXPECT_EQ(window.domains[1].gap, "gone");

    EnergyWindow broken;
    fill_counted(broken, channels, edge(0, {count(0), count(0), count(0)}),
                 edge(1, {count(3'000'000), count(1), failed("gone")}), 0.001, 1000);
    EXPECT_FALSE(broken.joules);
    EXPECT_EQ(broken.label, EnergyLabel::unavailable);
    EXPECT_EQ(broken.gap, "gone");
    EXPECT_TRUE(broken.domains[0].joules);
}

Found sampled(double lag = 0) {
    Found found;
    found.lag_seconds = lag;
    found.sample_seconds = 0.1;
    return found;
}

TEST(EnergySamples, AreIntegratedByTrapezoids) {
    EnergyWindow window;
    fill_integrated(window, {channel("VDD_IN")},
                    {edge(0, {watts(10)}), edge(0.1, {watts(20)}), edge(0.3, {watts(20)})},
                    sampled(), 1000);
    ASSERT_TRUE(window.joules);
    EXPECT_NEAR(*window.joules, 1.5 + 4, 1e-12);
    EXPECT_NEAR(*window.uncertainty_joules, 0.5, 1e-12);
    EXPECT_EQ(window.label, EnergyLabel::integrated);
}

TEST(EnergySamples, ASensorThatAveragesIsLessCertain) {
    EnergyWindow window;
    fill_integrated(window, {channel("gpu-0")}, {edge(0, {watts(10)}), edge(0.1, {watts(20)})},
                    sampled(1), 1000);
    EXPECT_NEAR(*window.uncertainty_joules, 0.5 + 10, 1e-12);
}

TEST(EnergySamples, OneThatFailedIsAGap) {
    EnergyWindow window;
    fill_integrated(window, {channel("gpu-0")},
                    {edge(0, {watts(10)}), edge(0.1, {failed("lost")}), edge(0.2, {watts(10)})},
                    sampled(), 1000);
    EXPECT_FALSE(window.joules);
    EXPECT_EQ(window.gap, "lost");
}

TEST(EnergySamples, ZeroThroughoutOrTooMuchOrTooFarApartIsAGap) {
    EnergyWindow zero;
    fill_integrated(zero, {channel("gpu-0")}, {edge(0, {watts(0)}), edge(0.1, {watts(0)})},
                    sampled(), 1000);
    EXPECT_THAT(zero.gap, HasSubstr("0 W throughout"));
    EnergyWindow much;
    fill_integrated(much, {channel("gpu-0")}, {edge(0, {watts(1)}), edge(0.1, {watts(5000)})},
                    sampled(), 1000);
    EXPECT_THAT(much.gap, HasSubstr("cannot be"));
    EnergyWindow far;
    fill_integrated(far, {channel("gpu-0")}, {edge(0, {watts(1)}), edge(5, {watts(1)})}, sampled(),
                    1000);
    EXPECT_THAT(far.gap, HasSubstr("nothing was sampled"));
    EnergyWindow back;
    fill_integrated(back, {channel("gpu-0")},
                    {edge(0, {watts(1)}), edge(0.3, {watts(1)}), edge(0.2, {watts(1)})}, sampled(),
                    1000);
    EXPECT_THAT(back.gap, HasSubstr("clock went back"));
}

EnergyWindow gross(double joules, double seconds, double uncertain) {
    EnergyWindow window;
    window.joules = joules;
    window.seconds = seconds;
    window.uncertainty_joules = uncertain;
    return window;
}

EnergyIdle idle(double power, double uncertain) {
    EnergyIdle one;
    one.watts = power;
    one.uncertainty_watts = uncertain;
    return one;
}

TEST(EnergyNet, IsGrossLessIdle) {
    auto window = gross(100, 10, 2);
    subtract_idle(window, idle(4, 0.1));
    EXPECT_DOUBLE_EQ(*window.joules, 100);
    EXPECT_DOUBLE_EQ(*window.idle_watts, 4);
    EXPECT_DOUBLE_EQ(*window.net_joules, 60);
    EXPECT_DOUBLE_EQ(*window.net_uncertainty_joules, 3);
    EXPECT_FALSE(window.idle_drift);
}

TEST(EnergyNet, DriftIsFlaggedAndWidensTheBound) {
    auto window = gross(100, 10, 2);
    subtract_idle(window, idle(4, 0.1), idle(5, 0.1));
    EXPECT_DOUBLE_EQ(*window.idle_watts, 4.5);
    EXPECT_DOUBLE_EQ(*window.net_joules, 55);
    EXPECT_DOUBLE_EQ(*window.net_uncertainty_joules, 2 + 10 * (0.1 + 0.5));
    EXPECT_TRUE(window.idle_drift);
    ASSERT_EQ(window.notes.size(), 1U);
    auto steady = gross(100, 10, 2);
    subtract_idle(steady, idle(4, 0.1), idle(4.1, 0.1));
    EXPECT_FALSE(steady.idle_drift);
}

TEST(EnergyNet, IsAbsentWithoutIdleOrForAGap) {
    auto window = gross(100, 10, 2);
    EnergyIdle unknown;
    unknown.gap = "gone";
    subtract_idle(window, unknown);
    EXPECT_FALSE(window.net_joules);
    EXPECT_FALSE(window.idle_watts);
    subtract_idle(window, unknown, idle(4, 0.1));
    EXPECT_DOUBLE_EQ(*window.net_joules, 60);
    EnergyWindow gap;
    gap.seconds = 1;
    subtract_idle(gap, idle(4, 0.1));
    EXPECT_FALSE(gap.net_joules);
}

TEST(EnergyNet, MayBeBelowZeroAndIsShownSo) {
    auto window = gross(10, 10, 2);
    subtract_idle(window, idle(4, 0.1));
    EXPECT_DOUBLE_EQ(*window.net_joules, -30);
}

TEST(EnergyWindowLength, FollowsFromTheTick) {
    EnergySource source;
    EXPECT_FALSE(recommended_seconds(source));
    source.tick_seconds = 0.1;
    EXPECT_DOUBLE_EQ(*recommended_seconds(source), 10);
    EXPECT_DOUBLE_EQ(*recommended_seconds(source, 0.1), 2);
    EXPECT_FALSE(recommended_seconds(source, 0));
}

}  // namespace
}  // namespace trocar::energy
