#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "energy/fake_machine.h"
#include "trocar/error.h"

namespace trocar::energy {
namespace {

using testing::HasSubstr;

class Hwmon : public testing::Test {
protected:
    Hwmon() {
        fake.options.choice = parse_energy("hwmon");
        fake.options.sample_seconds = 0.01;
    }
    EnergySource source() { return find(fake.options, fake.machine).source; }
    void jetson() {
        fake.write("class/hwmon/hwmon3/name", "ina3221\n");
        int rail = 0;
        for (const auto* name : {"VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"}) {
            const auto number = std::to_string(++rail);
            fake.write("class/hwmon/hwmon3/in" + number + "_label", name);
            fake.write("class/hwmon/hwmon3/in" + number + "_input", "5000\n");
            fake.write("class/hwmon/hwmon3/curr" + number + "_input", "2000\n");
        }
    }

    FakeMachine fake;
};

TEST_F(Hwmon, TheSupplyRailOfAJetsonIsCurrentTimesVoltage) {
    jetson();
    auto meter = EnergyMeter::open(fake.options);
    EXPECT_EQ(meter.source().label, EnergyLabel::integrated);
    ASSERT_EQ(meter.source().domains.size(), 1U);
    EXPECT_EQ(meter.source().domains[0].name, "ina3221/VDD_IN");
    meter.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto window = meter.end();
    ASSERT_TRUE(window.joules) << window.gap;
    EXPECT_NEAR(*window.joules, 10 * *window.seconds, 1e-9);
    EXPECT_EQ(window.label, EnergyLabel::integrated);
}

TEST_F(Hwmon, SensorsAreChosenByName) {
    jetson();
    fake.options.choice = parse_energy("hwmon:ina3221/VDD_SOC, ina3221/VDD_CPU_GPU_CV");
    EXPECT_EQ(source().domains.size(), 2U);
    fake.options.choice = parse_energy("hwmon:ina3221/VDD_XX");
    EXPECT_THAT(source().unavailable, HasSubstr("VDD_XX"));
    EXPECT_THAT(source().remedy, HasSubstr("ina3221/VDD_SOC"));
}

TEST_F(Hwmon, SensorsThatMayOverlapMustBeNamed) {
    fake.write("class/hwmon/hwmon0/name", "amdgpu\n");
    fake.write("class/hwmon/hwmon0/power1_average", "30000000\n");
    fake.write("class/hwmon/hwmon0/power1_label", "PPT\n");
    EXPECT_EQ(source().unavailable, "");
    fake.options.choice = parse_energy("auto");
    EXPECT_THAT(source().unavailable, HasSubstr("a part of the machine"));
    fake.options.choice = parse_energy("hwmon");
    fake.write("class/hwmon/hwmon1/name", "other\n");
    fake.write("class/hwmon/hwmon1/power1_input", "30000000\n");
    EXPECT_THAT(source().unavailable, HasSubstr("may overlap"));
    EXPECT_THAT(source().remedy, HasSubstr("amdgpu/PPT, other/power1"));
}

TEST_F(Hwmon, CountersOfSocketsAreSummedAndThoseOfCoresAreNot) {
    const std::string chip = "class/hwmon/hwmon0/";
    fake.write(chip + "name", "amd_energy\n");
    fake.write(chip + "energy1_label", "Ecore000\n");
    fake.counter(chip + "energy1_input", 5);
    fake.write(chip + "energy2_label", "Esocket0\n");
    fake.counter(chip + "energy2_input", 50, 1e-3, 3e6);
    auto meter = open_meter(fake.options, fake.machine);
    EXPECT_EQ(meter.source().label, EnergyLabel::measured);
    meter.begin();
    fake.now += 1;
    const auto window = meter.end();
    ASSERT_TRUE(window.joules) << window.gap;
    EXPECT_NEAR(*window.joules, 50, 0.2);
}

TEST_F(Hwmon, ASensorThatFailsInTheMiddleIsAGap) {
    jetson();
    auto meter = EnergyMeter::open(fake.options);
    meter.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::filesystem::remove(fake.folder / "class/hwmon/hwmon3/curr1_input");
    const auto window = meter.end();
    EXPECT_FALSE(window.joules);
    EXPECT_THAT(window.gap, HasSubstr("curr1_input"));
}

TEST_F(Hwmon, WithoutSensorsItIsUnavailable) {
    EXPECT_THAT(source().unavailable, HasSubstr("no sensor"));
    fake.write("class/hwmon/hwmon0/name", "power_meter\n");
    fake.write("class/hwmon/hwmon0/power1_average", "broken\n");
    EXPECT_THAT(source().unavailable, HasSubstr("no number"));
}

TEST_F(Hwmon, AMeterThatGoesStopsItsThread) {
    jetson();
    auto meter = EnergyMeter::open(fake.options);
    meter.begin();
    meter.begin();
    auto other = std::move(meter);
    EXPECT_TRUE(other.available());
}

}  // namespace
}  // namespace trocar::energy
