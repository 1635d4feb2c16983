#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "energy/fake_machine.h"
#include "trocar/error.h"

namespace trocar::energy {
namespace {

using testing::HasSubstr;

class EnergyCommand : public testing::Test {
protected:
    std::string file() const { return (fake.folder / "said").string(); }
    void says(const std::string& text) { fake.write("said", text); }
    EnergyMeter meter() {
        fake.options.choice = {"command", "cat " + file()};
        return open_meter(fake.options, fake.machine);
    }
    std::string refusal() {
        try {
            meter();
        } catch (const Error& error) {
            return error.what();
        }
        return "it was opened";
    }

    FakeMachine fake;
};

TEST_F(EnergyCommand, JoulesAreMeasuredAtTheEdges) {
    says("starting\n12.50 J\n");
    auto one = meter();
    EXPECT_EQ(one.source().label, EnergyLabel::measured);
    EXPECT_DOUBLE_EQ(*one.source().resolution, 0.01);
    EXPECT_FALSE(one.source().tick_seconds);
    one.begin();
    says("15 J\n");
    fake.now += 2;
    const auto window = one.end();
    ASSERT_TRUE(window.joules) << window.gap;
    EXPECT_DOUBLE_EQ(*window.joules, 2.5);
    EXPECT_FALSE(window.uncertainty_joules);
}

TEST_F(EnergyCommand, ATickThatIsGivenBoundsTheError) {
    fake.options.tick_seconds = 0.1;
    says("0.010 kWh");
    auto one = meter();
    one.begin();
    says("0.011 kWh");
    fake.now += 100;
    const auto window = one.end();
    EXPECT_DOUBLE_EQ(*window.joules, 3600);
    EXPECT_NEAR(*window.uncertainty_joules, 3600 * 0.002 + 2 * 3600, 0.1);
}

TEST_F(EnergyCommand, WattsAreIntegrated) {
    says("30 W\n");
    fake.machine = this_machine();
    auto one = meter();
    EXPECT_EQ(one.source().label, EnergyLabel::integrated);
    EXPECT_DOUBLE_EQ(*one.source().tick_seconds, 1);
    one.begin();
    const auto window = one.end();
    ASSERT_TRUE(window.joules) << window.gap;
    EXPECT_NEAR(*window.joules, 30 * *window.seconds, 1e-9);
}

TEST_F(EnergyCommand, ANumberWithoutAUnitIsRefused) {
    for (const auto* text : {"12.5", "J", "many J", "-3 J", "12.5 furlongs", "", "nan J"}) {
        says(text);
        EXPECT_THAT(refusal(), HasSubstr("not a number with a unit")) << text;
    }
}

TEST_F(EnergyCommand, OneThatFailsOrHangsIsRefused) {
    fake.options.choice = {"command", "exit 3"};
    EXPECT_THAT(find(fake.options, fake.machine).source.unavailable, HasSubstr("ended with 3"));
    fake.options.choice = {"command", "kill -SEGV $$"};
    EXPECT_THAT(find(fake.options, fake.machine).source.unavailable, HasSubstr("SIGSEGV"));
    fake.options.command_seconds = 0.2;
    fake.options.choice = {"command", "sleep 60"};
    EXPECT_THAT(find(fake.options, fake.machine).source.unavailable,
                HasSubstr("took longer than 0.2 s"));
}

TEST_F(EnergyCommand, OneThatFailsInTheMiddleIsAGap) {
    says("10 J");
    auto one = meter();
    one.begin();
    fake.now += 1;
    std::filesystem::remove(file());
    EXPECT_THAT(one.end().gap, HasSubstr("ended with 1"));
    says("10 J");
    one.begin();
    fake.now += 1;
    says("3 J");
    EXPECT_THAT(one.end().gap, HasSubstr("went back"));
    one.begin();
    fake.now += 1;
    EXPECT_THAT(one.end().gap, HasSubstr("did not move"));
    one.begin();
    fake.now += 1;
    says("3 W");
    EXPECT_THAT(one.end().gap, HasSubstr("changed from energy to power"));
}

TEST(EnergyChoiceText, IsParsedAndWritten) {
    for (const auto* text :
         {"auto", "none", "perf", "powercap", "powercap:/host/sys/class/powercap", "nvml",
          "nvml:/opt/libnvidia-ml.so", "hwmon:ina3221/VDD_IN", "log:file.csv",
          "command:./meter --port a:b"}) {
        EXPECT_EQ(energy_text(parse_energy(text)), text);
    }
    EXPECT_EQ(parse_energy("command:./meter --port a:b").argument, "./meter --port a:b");
    for (const auto* bad : {"", "rapl", "log", "log:", "command", "perf:x", "nvml:", "none:x"}) {
        try {
            parse_energy(bad);
            ADD_FAILURE() << bad;
        } catch (const Error& error) {
            EXPECT_EQ(error.fault(), Fault::usage);
        }
    }
    try {
        parse_energy("powercab");
        ADD_FAILURE();
    } catch (const Error& error) {
        EXPECT_THAT(error.hint(), HasSubstr("did you mean 'powercap'?"));
    }
}

TEST(EnergyNone, GivesTimeAndAReason) {
    FakeMachine fake;
    fake.options.choice = parse_energy("none");
    auto meter = open_meter(fake.options, fake.machine);
    EXPECT_FALSE(meter.available());
    meter.begin();
    fake.now += 1;
    const auto window = meter.end();
    EXPECT_NEAR(*window.seconds, 1, 1e-3);
    EXPECT_FALSE(window.joules);
    EXPECT_EQ(window.label, EnergyLabel::unavailable);
    EXPECT_EQ(window.gap, "no energy was asked for");
    EXPECT_FALSE(meter.measure_idle(0.1).watts);
    EXPECT_THROW(meter.end(), Error);
}

TEST(EnergyAuto, WithoutAnySourceSaysWhyOfEach) {
    FakeMachine fake;
    auto meter = open_meter(fake.options, fake.machine);
    EXPECT_FALSE(meter.available());
    for (const auto* each : {"perf: ", "powercap: ", "hwmon: "}) {
        EXPECT_THAT(meter.source().unavailable, HasSubstr(each));
    }
    EXPECT_NE(meter.source().remedy, "");
}

}  // namespace
}  // namespace trocar::energy
