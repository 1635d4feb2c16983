#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "energy/fake_machine.h"
#include "trocar/error.h"

namespace trocar::energy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Powercap : public testing::Test {
protected:
    Powercap() { fake.options.choice = parse_energy("powercap"); }

    EnergySource source() { return find(fake.options, fake.machine).source; }
    EnergyMeter meter() { return open_meter(fake.options, fake.machine); }
    static std::vector<std::string> summed(const EnergySource& source) {
        std::vector<std::string> names;
        for (const auto& domain : source.domains) {
            if (domain.summed) {
                names.push_back(domain.name);
            }
        }
        return names;
    }
    static std::string why_not(const EnergySource& source, const std::string& name) {
        for (const auto& domain : source.domains) {
            if (domain.name == name) {
                return domain.unsummed_reason;
            }
        }
        return "no such domain";
    }
    void desktop() {
        fake.zone("intel-rapl:0", "package-0", 40);
        fake.zone("intel-rapl:0:0", "core", 30, 5e6);
        fake.zone("intel-rapl:0:1", "uncore", 2, 6e6);
        fake.zone("intel-rapl:0:2", "dram", 3, 7e6);
        fake.zone("intel-rapl:1", "psys", 60, 8e6);
    }

    FakeMachine fake;
};

TEST_F(Powercap, SumsPackagesAndDramAndNothingTwice) {
    desktop();
    fake.zone("intel-rapl-mmio:0", "package-0", 40);
    const auto found = source();
    EXPECT_EQ(found.unavailable, "");
    EXPECT_EQ(found.label, EnergyLabel::measured);
    EXPECT_THAT(summed(found), ElementsAre("package-0", "package-0/dram"));
    EXPECT_THAT(why_not(found, "package-0/core"), HasSubstr("inside"));
    EXPECT_THAT(why_not(found, "psys"), HasSubstr("holds the others"));
    EXPECT_THAT(why_not(found, "package-0 (intel-rapl-mmio:0)"), HasSubstr("another interface"));
}

TEST_F(Powercap, ThePlatformIsPsysAlone) {
    desktop();
    fake.options.scope = EnergyScope::platform;
    EXPECT_THAT(summed(source()), ElementsAre("psys"));
}

TEST_F(Powercap, WithoutPsysThePlatformSaysSo) {
    fake.zone("intel-rapl:0", "package-0", 40);
    fake.options.scope = EnergyScope::platform;
    const auto found = source();
    EXPECT_THAT(summed(found), ElementsAre("package-0"));
    EXPECT_THAT(found.notes, ElementsAre(HasSubstr("no psys")));
}

TEST_F(Powercap, DiesThatMirrorOneAnotherCountOnce) {
    fake.zone("intel-rapl:0", "package-0-die-0", 40);
    fake.zone("intel-rapl:1", "package-0-die-1", 40);
    fake.zone("intel-rapl:2", "package-1-die-0", 40, 9e6);
    const auto found = source();
    EXPECT_THAT(summed(found), ElementsAre("package-0-die-0", "package-1-die-0"));
    EXPECT_THAT(why_not(found, "package-0-die-1"), HasSubstr("mirrors"));
}

TEST_F(Powercap, ADomainThatStandsStillIsNotSummed) {
    fake.zone("intel-rapl:0", "package-0", 40);
    fake.zone("intel-rapl:0:0", "dram", 0);
    const auto found = source();
    EXPECT_THAT(summed(found), ElementsAre("package-0"));
    EXPECT_THAT(found.notes, ElementsAre(HasSubstr("did not move")));
}

TEST_F(Powercap, CountersThatAllStandStillAreUnavailable) {
    fake.zone("intel-rapl:0", "package-0", 0);
    const auto found = source();
    EXPECT_EQ(found.label, EnergyLabel::unavailable);
    EXPECT_THAT(found.unavailable, HasSubstr("did not move"));
    EXPECT_FALSE(found.tick_seconds);
    EXPECT_THROW(meter(), Error);
}

TEST_F(Powercap, ZonesInsideOneAnotherAreFoundOnce) {
    fake.zone("intel-rapl/intel-rapl:0", "package-0", 40);
    fake.zone("intel-rapl/intel-rapl:0/intel-rapl:0:0", "dram", 3, 7e6);
    EXPECT_THAT(summed(source()), ElementsAre("package-0", "package-0/dram"));
}

TEST_F(Powercap, TheTickIsSeen) {
    fake.zone("intel-rapl:0", "package-0", 40);
    const auto found = source();
    ASSERT_TRUE(found.tick_seconds);
    EXPECT_NEAR(*found.tick_seconds, 1e-3, 5e-5);
    EXPECT_NEAR(*recommended_seconds(found), 0.1, 5e-3);
    EXPECT_DOUBLE_EQ(*found.resolution, 1e-6);
    EXPECT_NEAR(*found.longest_window_seconds, 262143.3 / 2000, 0.1);
}

TEST_F(Powercap, ATickSlowerThanTheProbeIsUnknown) {
    fake.zone("intel-rapl:0", "package-0", 40);
    fake.counter("class/powercap/intel-rapl:0/energy_uj", 40, 0.8);
    const auto found = source();
    EXPECT_FALSE(found.tick_seconds);
    EXPECT_THAT(found.notes, ElementsAre(HasSubstr("tick is not known")));
    EXPECT_FALSE(recommended_seconds(found));
}

TEST_F(Powercap, AWindowHasTheEnergyThatWasCounted) {
    desktop();
    auto one = meter();
    one.begin();
    fake.now += 2;
    const auto window = one.end();
    ASSERT_TRUE(window.joules) << window.gap;
    EXPECT_NEAR(*window.joules, 86, *window.uncertainty_joules);
    EXPECT_LT(*window.uncertainty_joules, 0.2);
    EXPECT_NEAR(*window.seconds, 2, 1e-3);
    EXPECT_EQ(window.source, "powercap");
    EXPECT_EQ(window.label, EnergyLabel::measured);
    ASSERT_EQ(window.domains.size(), 5U);
    EXPECT_FALSE(window.net_joules);
}

TEST_F(Powercap, IdleIsMeasuredAndSubtracted) {
    fake.zone("intel-rapl:0", "package-0", 0);
    double watts = 10;
    double joules = 0;
    double last = 0;
    fake.files[fake.energy_file("intel-rapl:0")] = [&]() -> FileText {
        const double tick = std::floor(fake.now * 1000) / 1000;
        joules += watts * (tick - last);
        last = tick;
        return {std::to_string(static_cast<std::uint64_t>(joules * 1e6)), 0};
    };
    auto one = meter();
    const auto before = one.measure_idle(1);
    ASSERT_TRUE(before.watts) << before.gap;
    EXPECT_NEAR(*before.watts, 10, 0.02);
    watts = 30;
    one.begin();
    fake.now += 1;
    auto window = one.end();
    EXPECT_NEAR(*window.joules, 30, 0.1);
    EXPECT_NEAR(*window.net_joules, 20, *window.net_uncertainty_joules);
    watts = 14;
    const auto after = one.measure_idle(1);
    subtract_idle(window, before, after);
    EXPECT_TRUE(window.idle_drift);
    EXPECT_NEAR(*window.net_joules, 18, 0.2);
}

TEST_F(Powercap, AFailureInTheMiddleIsAGapAndTheNextWindowIsGood) {
    desktop();
    auto one = meter();
    auto good = fake.files[fake.energy_file("intel-rapl:0")];
    one.begin();
    fake.now += 1;
    fake.files[fake.energy_file("intel-rapl:0")] = [] { return FileText{"", EIO}; };
    const auto broken = one.end();
    EXPECT_FALSE(broken.joules);
    EXPECT_EQ(broken.label, EnergyLabel::unavailable);
    EXPECT_THAT(broken.gap, HasSubstr("could not be read"));
    fake.files[fake.energy_file("intel-rapl:0")] = [] { return FileText{"x12\n", 0}; };
    one.begin();
    fake.now += 1;
    EXPECT_THAT(one.end().gap, HasSubstr("no number"));
    fake.files[fake.energy_file("intel-rapl:0")] = good;
    one.begin();
    fake.now += 1;
    EXPECT_TRUE(one.end().joules);
}

TEST_F(Powercap, AResetIsAGap) {
    fake.zone("intel-rapl:0", "package-0", 40, 1e11);
    auto one = meter();
    one.begin();
    fake.now += 1;
    fake.counter("class/powercap/intel-rapl:0/energy_uj", 0.01);
    EXPECT_THAT(one.end().gap, HasSubstr("reset"));
}

TEST_F(Powercap, AWrapInAWindowIsUndone) {
    // At 102 s it is 20 J before its range.
    const double start = 262143328850.0 - 40e6 * 102 - 20e6;
    fake.zone("intel-rapl:0", "package-0", 40);
    fake.files[fake.energy_file("intel-rapl:0")] = [&]() -> FileText {
        const double count = start + std::floor(fake.now * 1000) * 1000 * 40;
        return {std::to_string(static_cast<std::uint64_t>(std::fmod(count, 262143328850.0))), 0};
    };
    auto one = meter();
    fake.now = 101.9;
    one.begin();
    fake.now = 103;
    const auto window = one.end();
    ASSERT_TRUE(window.joules) << window.gap;
    EXPECT_NEAR(*window.joules, 44, 0.1);
}

TEST_F(Powercap, WithoutPermissionItSaysWhatToDo) {
    desktop();
    fake.files[fake.energy_file("intel-rapl:0:2")] = [] { return FileText{"", EACCES}; };
    const auto found = source();
    EXPECT_THAT(found.unavailable, HasSubstr("may not be read"));
    EXPECT_THAT(found.remedy, HasSubstr("run as root"));
    EXPECT_THAT(found.remedy, HasSubstr("perf_event_paranoid=0"));
    EXPECT_THAT(found.remedy, testing::Not(HasSubstr("chmod")));
    try {
        meter();
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::unsupported);
        EXPECT_EQ(error.hint(), found.remedy);
    }
    fake.options.choice = parse_energy("auto");
    EXPECT_EQ(source().remedy, found.remedy);
}

TEST_F(Powercap, WithoutATreeItIsUnavailable) {
    EXPECT_THAT(source().unavailable, HasSubstr("has no energy counters"));
    fake.options.choice = parse_energy("powercap:/nonexistent/tree");
    EXPECT_THAT(source().unavailable, HasSubstr("/nonexistent/tree"));
}

TEST_F(Powercap, AClockThatGoesBackIsAGap) {
    desktop();
    auto one = meter();
    one.begin();
    fake.now -= 50;
    const auto window = one.end();
    EXPECT_FALSE(window.joules);
    EXPECT_FALSE(window.seconds);
    EXPECT_THAT(window.gap, HasSubstr("clock went back"));
}

// Real time: another thread changes the file, as a kernel would.
TEST(PowercapTree, ThatChangesIsMeasured) {
    FakeMachine fake;
    fake.options.choice = parse_energy("powercap:" + (fake.folder / "tree").string());
    fake.write("tree/intel-rapl:0/name", "package-0\n");
    fake.write("tree/intel-rapl:0/max_energy_range_uj", "262143328850\n");
    fake.write("tree/intel-rapl:0/energy_uj", "1000000\n");
    std::atomic<bool> stop = false;
    const auto start = std::chrono::steady_clock::now();
    std::thread kernel([&] {
        while (!stop) {
            const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start;
            fake.write("tree/intel-rapl:0/energy_uj",
                       std::to_string(1'000'000 + std::llround(since.count() * 50e6)) + "\n");
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    });
    {
        auto meter = EnergyMeter::open(fake.options);
        ASSERT_TRUE(meter.source().tick_seconds);
        EXPECT_GT(*meter.source().tick_seconds, 4e-3);
        meter.begin();
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        const auto window = meter.end();
        ASSERT_TRUE(window.joules) << window.gap;
        // The thread may be late on a busy machine, and then catches up.
        EXPECT_GT(*window.joules, 0);
        EXPECT_LT(*window.joules, 50 * (*window.seconds + 1));
    }
    stop = true;
    kernel.join();
}

}  // namespace
}  // namespace trocar::energy
