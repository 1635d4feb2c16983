#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "energy/fake_machine.h"
#include "energy/log_text.h"
#include "trocar/error.h"

namespace trocar::energy {
namespace {

using testing::HasSubstr;

constexpr double base = 1.7e9;

EnergyLog parse(const std::string& text, const EnergyOptions& options = {}) {
    return EnergyLog::parse(text, "meter.csv", options);
}

std::string refusal(const std::string& text) {
    try {
        parse(text);
    } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::input);
        EXPECT_NE(error.hint(), "");
        return error.what();
    }
    return "it was read";
}

TEST(EnergyLogFile, PowerIsIntegratedBetweenItsRows) {
    const auto log = parse("time,watts\n1700000000,10\n1700000001,20\n1700000002,20\n");
    EXPECT_EQ(log.rows(), 3U);
    EXPECT_EQ(log.label(), EnergyLabel::integrated);
    EXPECT_DOUBLE_EQ(log.spacing_seconds(), 1);
    EXPECT_DOUBLE_EQ(*log.window(base, base + 2).joules, 35);
    const auto part = log.window(base + 0.5, base + 1.5);
    EXPECT_DOUBLE_EQ(*part.joules, 8.75 + 10);
    EXPECT_EQ(part.label, EnergyLabel::integrated);
    EXPECT_DOUBLE_EQ(*part.uncertainty_joules, 5);
}

TEST(EnergyLogFile, CountedEnergyIsMeasured) {
    const auto log = parse("Timestamp;Energy [Wh]\n1700000000;1\n1700000010;1.1\n1700000020;1.3\n");
    EXPECT_EQ(log.label(), EnergyLabel::measured);
    const auto window = log.window(base, base + 20);
    EXPECT_NEAR(*window.joules, 0.3 * 3600, 1e-6);
    EXPECT_NEAR(*log.window(base + 5, base + 15).joules, 180 + 360, 1e-6);
    EXPECT_NEAR(*log.window(base + 5, base + 15).uncertainty_joules, 180 + 360, 1e-6);
}

TEST(EnergyLogFile, AWindowOutsideTheLogIsAGap) {
    const auto log = parse("time,watts\n1700000000,10\n1700000001,20\n");
    for (const auto& window : {log.window(base - 1, base + 1), log.window(base, base + 1.5),
                               log.window(base + 1, base + 1), log.window(base + 1, base)}) {
        EXPECT_FALSE(window.joules);
        EXPECT_NE(window.gap, "");
        EXPECT_EQ(window.label, EnergyLabel::unavailable);
    }
}

TEST(EnergyLogFile, MissingRowsAndResetsAreGapsOnlyWhereTheyAre) {
    const auto log = parse(
        "time,joules\n1700000000,10\n1700000001,20\n1700000002,30\n1700000003,2\n1700000004,9\n"
        "1700000009,20\n1700000010,30\n");
    EXPECT_TRUE(log.window(base, base + 2).joules);
    EXPECT_THAT(log.window(base + 1, base + 3.5).gap, HasSubstr("reset"));
    EXPECT_THAT(log.window(base + 4, base + 10).gap, HasSubstr("no rows for 5 s"));
    EXPECT_DOUBLE_EQ(*log.window(base + 9, base + 10).joules, 10);
}

TEST(EnergyLogFile, ZeroIsAGap) {
    EXPECT_THAT(parse("time,watts\n1700000000,0\n1700000001,0\n").window(base, base + 1).gap,
                HasSubstr("0 W"));
    EXPECT_THAT(parse("time,joules\n1700000000,5\n1700000001,5\n").window(base, base + 1).gap,
                HasSubstr("did not move"));
}

TEST(EnergyLogFile, BadRowsAreLeftOutWithTheirLine) {
    const auto log = parse(
        "\xEF\xBB\xBF# a meter\ntime,watts,state\r\n1700000000,10,on\r\n1700000001\n"
        "yesterday,10,on\n1700000002,ten,on\n1700000002,-3,on\n1700000002,inf,on\n"
        "1699999999,10,on\n1700000003000,10,on\n2023-11-14T22:13:21,10,on\n\n1700000004,10,on\n");
    EXPECT_EQ(log.rows(), 2U);
    std::vector<std::string> found;
    for (const auto& problem : log.problems()) {
        found.push_back(std::to_string(problem.line) + " " + problem.what);
    }
    EXPECT_THAT(found, testing::ElementsAre(
                           HasSubstr("4 has too few"), HasSubstr("5 'yesterday' is no time"),
                           HasSubstr("6 'ten' is no power"), HasSubstr("7 '-3'"),
                           HasSubstr("8 'inf'"), HasSubstr("9 its time is not after"),
                           HasSubstr("10 '1700000003000' is no time in seconds"),
                           HasSubstr("11 '2023-11-14T22:13:21' has no zone")));
}

TEST(EnergyLogFile, ManyBadRowsAreCounted) {
    std::string text = "time,watts\n1700000000,1\n";
    for (int i = 0; i < 1000; ++i) {
        text += "x,y\n";
    }
    const auto log = parse(text);
    EXPECT_EQ(log.problems().size(), 100U);
    EXPECT_EQ(log.problem_count(), 1000U);
}

TEST(EnergyLogFile, ColumnsThatCannotBeToldAreRefused) {
    EXPECT_THAT(refusal("1700000000,10\n1700000001,20\n"), HasSubstr("no column of time"));
    EXPECT_THAT(refusal("time,power\n1,2\n"), HasSubstr("no column of watts"));
    EXPECT_THAT(refusal("time,Power [MW]\n1,2\n"), HasSubstr("no column of watts"));
    EXPECT_THAT(refusal("time,cpu_w,gpu_w\n1,2,3\n"), HasSubstr("several columns"));
    EXPECT_THAT(refusal("time,date,w\n1,2,3\n"), HasSubstr("several columns of time"));
    EXPECT_THAT(refusal("time,w\n"), HasSubstr("no rows"));
    EXPECT_THAT(refusal("time,w\nx,1\n"), HasSubstr("line 2"));
    EXPECT_THAT(refusal(""), HasSubstr("no rows"));
}

TEST(EnergyLogFile, UnitsComeFromTheNames) {
    const auto log =
        parse("\"time (ms)\"\t\"Power [mW]\"\n1700000000000\t2000\n1700000001000\t2000\n");
    EXPECT_DOUBLE_EQ(*log.window(base, base + 1).joules, 2);
}

TEST(EnergyLogFile, ClocksAreSetByAnOffset) {
    EnergyOptions options;
    options.log_offset_seconds = 100;
    const auto log = parse("time,watts\n1700000000,10\n1700000001,20\n", options);
    EXPECT_FALSE(log.window(base, base + 1).joules);
    EXPECT_DOUBLE_EQ(*log.window(base + 100, base + 101).joules, 15);
}

TEST(EnergyLogTime, IsIso8601) {
    EXPECT_DOUBLE_EQ(*iso_time("2023-11-14T22:13:20Z", std::nullopt), base);
    EXPECT_DOUBLE_EQ(*iso_time("2023-11-14 23:43:20.250+01:30", std::nullopt), base + 0.25);
    EXPECT_DOUBLE_EQ(*iso_time("2023-11-14T17:13:20,5-0500", std::nullopt), base + 0.5);
    EXPECT_DOUBLE_EQ(*iso_time("2023-11-14T23:13:20", 60), base);
    EXPECT_DOUBLE_EQ(*iso_time("2023-11-14T22:13Z", std::nullopt), base - 20);
    for (const auto* bad : {"", "2023-11-14", "2023-13-14T22:13:20Z", "2023-02-30T22:13:20Z",
                            "2023-11-14T25:13:20Z", "2023-11-14T22:13:20", "2023-11-14T22:13:20X",
                            "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20+1", "14.11.2023 22:13"}) {
        EXPECT_FALSE(iso_time(bad, std::nullopt)) << bad;
    }
}

TEST(EnergyLogMeter, JoinsItsWindowsByTime) {
    FakeMachine fake;
    fake.options.choice = parse_energy("log:" + (fake.folder / "meter.csv").string());
    EXPECT_THROW(open_meter(fake.options, fake.machine), Error);
    fake.write("meter.csv", "unix,watts\n1700000000,10\nbad\n1700000050,10\n1700000100,10\n");
    auto meter = open_meter(fake.options, fake.machine);
    EXPECT_EQ(meter.source().label, EnergyLabel::integrated);
    EXPECT_THAT(meter.source().notes, testing::ElementsAre(HasSubstr("meter.csv:3: has too few")));
    meter.begin();
    fake.now += 10;
    EXPECT_THAT(meter.end().gap, HasSubstr("the log covers"));
    fake.write("meter.csv", "unix,watts\n1700000000,10\n1700000100,10\n1700000200,10\n");
    meter.begin();
    fake.now += 10;
    const auto window = meter.end();
    ASSERT_TRUE(window.joules) << window.gap;
    EXPECT_NEAR(*window.joules, 100, 0.01);
    meter.begin();
    fake.now += 10;
    fake.unix_shift = -3;
    EXPECT_THAT(meter.end().gap, HasSubstr("clock was set"));
}

}  // namespace
}  // namespace trocar::energy
