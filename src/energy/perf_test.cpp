#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "energy/fake_machine.h"
#include "trocar/error.h"

namespace trocar::energy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double scale = 2.3283064365386962890625e-10;  // 2^-32 J

// The kernel's folder of energy events, and events that count by the fake clock.
class Perf : public testing::Test {
protected:
    Perf() {
        fake.options.choice = parse_energy("perf");
        fake.write(device + "type", "9\n");
        fake.write(device + "cpumask", "0\n");
        fake.machine.perf_open = [this](const PerfEvent& event) {
            if (error != 0) {
                return -error;
            }
            opened.push_back(event);
            return static_cast<int>(opened.size()) + 99;
        };
        fake.machine.perf_read = [this](int fd) -> std::optional<std::uint64_t> {
            if (broken) {
                return std::nullopt;
            }
            const auto& event = opened.at(index(fd));
            const double watts = 10.0 * static_cast<double>(event.config) + event.cpu;
            return static_cast<std::uint64_t>(std::floor(fake.now * 1000) / 1000 * watts / scale);
        };
        fake.machine.perf_close = [this](int fd) { closed.push_back(fd); };
    }
    static std::size_t index(int fd) { return static_cast<std::size_t>(fd) - 100; }
    void event(const std::string& name, const std::string& config) {
        fake.write(device + "events/" + name, "event=" + config + "\n");
        fake.write(device + "events/" + name + ".scale", "2.3283064365386962890625e-10\n");
        fake.write(device + "events/" + name + ".unit", "Joules\n");
    }
    EnergySource source() { return find(fake.options, fake.machine).source; }

    const std::string device = "bus/event_source/devices/power/";
    FakeMachine fake;
    int error = 0;
    bool broken = false;
    std::vector<PerfEvent> opened;
    std::vector<int> closed;
};

TEST_F(Perf, SumsPackageAndDramOfEachSocket) {
    event("energy-pkg", "0x02");
    event("energy-cores", "0x01");
    event("energy-ram", "0x03");
    fake.write(device + "cpumask", "0,18\n");
    auto meter = open_meter(fake.options, fake.machine);
    ASSERT_EQ(opened.size(), 6U);
    EXPECT_EQ(opened[0].type, 9U);
    EXPECT_EQ(opened[0].config, 2U);
    EXPECT_EQ(opened[1].cpu, 18);
    EXPECT_NEAR(*meter.source().tick_seconds, 1e-3, 1e-4);
    EXPECT_FALSE(meter.source().longest_window_seconds);
    meter.begin();
    fake.now += 1;
    const auto window = meter.end();
    ASSERT_TRUE(window.joules) << window.gap;
    EXPECT_NEAR(*window.joules, 20 + 38 + 30 + 48, *window.uncertainty_joules);
    EXPECT_EQ(window.domains[4].name, "cores of CPU 0");
    EXPECT_FALSE(window.domains[4].summed);
}

TEST_F(Perf, AWindowHasTheEnergyOfTheEvent) {
    event("energy-pkg", "0x02");
    {
        auto meter = open_meter(fake.options, fake.machine);
        meter.begin();
        fake.now += 1;
        const auto window = meter.end();
        ASSERT_TRUE(window.joules) << window.gap;
        EXPECT_NEAR(*window.joules, 20, *window.uncertainty_joules);
        meter.begin();
        fake.now += 1;
        broken = true;
        EXPECT_THAT(meter.end().gap, HasSubstr("could not be read"));
    }
    EXPECT_THAT(closed, ElementsAre(100));
}

TEST_F(Perf, IsTheFirstChoice) {
    event("energy-pkg", "0x02");
    fake.zone("intel-rapl:0", "package-0", 40);
    fake.options.choice = parse_energy("auto");
    EXPECT_EQ(source().name, "perf");
    error = EACCES;
    EXPECT_EQ(source().name, "powercap");
}

TEST_F(Perf, WithoutPermissionItSaysWhatToDo) {
    event("energy-pkg", "0x02");
    error = EACCES;
    const auto found = source();
    EXPECT_THAT(found.unavailable, HasSubstr("perf_event_paranoid"));
    EXPECT_THAT(found.remedy, HasSubstr("sysctl kernel.perf_event_paranoid=0"));
    EXPECT_THAT(found.remedy, HasSubstr("cap_perfmon"));
    EXPECT_THROW(open_meter(fake.options, fake.machine), Error);
}

TEST_F(Perf, AnEventInAnotherUnitOrWithoutAScaleIsNotUsed) {
    event("energy-pkg", "0x02");
    fake.write(device + "events/energy-pkg.unit", "Furlongs\n");
    event("energy-ram", "0x03");
    fake.write(device + "events/energy-ram.scale", "none\n");
    EXPECT_THAT(source().unavailable, HasSubstr("no energy event"));
    EXPECT_THAT(opened, IsEmpty());
}

TEST_F(Perf, AnEventThatTheProcessorLacksIsLeftOutWithANote) {
    event("energy-pkg", "0x02");
    event("energy-psys", "0x05");
    fake.machine.perf_open = [this, open = fake.machine.perf_open](const PerfEvent& wanted) {
        return wanted.config == 5 ? -EINVAL : open(wanted);
    };
    const auto found = source();
    EXPECT_EQ(found.unavailable, "");
    EXPECT_THAT(found.notes, ElementsAre(HasSubstr("energy-psys")));
}

TEST_F(Perf, StrangeCpumasksAreRefused) {
    event("energy-pkg", "0x02");
    for (const auto* mask : {"", "x", "3-1", "0-4294967295", "1-2-3"}) {
        fake.write(device + "cpumask", mask);
        EXPECT_THAT(source().unavailable, HasSubstr("names no CPU")) << mask;
    }
}

TEST(PerfOfThisMachine, IsThereOrSaysWhyNot) {
    EnergyOptions options;
    options.probe_seconds = 0.1;
    for (const auto& source : energy_sources(options)) {
        EXPECT_NE(source.unavailable.empty(), source.label == EnergyLabel::unavailable);
        EXPECT_TRUE(source.unavailable.empty() || !source.remedy.empty()) << source.name;
    }
    auto meter = EnergyMeter::open(options);
    meter.begin();
    const auto window = meter.end();
    EXPECT_NE(window.joules.has_value(), !window.gap.empty());
}

}  // namespace
}  // namespace trocar::energy
