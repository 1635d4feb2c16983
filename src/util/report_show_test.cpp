#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trocar/report.h"

namespace trocar {
namespace {

TEST(Show, CountsAreGroupedByThousands) {
    EXPECT_EQ(show(25557032, Show::count), "25,557,032");
    EXPECT_EQ(show(999, Show::count), "999");
    EXPECT_EQ(show(1000, Show::count), "1,000");
    EXPECT_EQ(show(-123456, Show::count), "-123,456");
    EXPECT_EQ(show(std::numeric_limits<std::int64_t>::min(), Show::count),
              "-9,223,372,036,854,775,808");
    EXPECT_EQ(show(1234.5, Show::count), "1234.5");
}

TEST(Show, CompactHasFourDigitsAndAUnit) {
    EXPECT_EQ(show(25557032, Show::compact), "25.56 M");
    EXPECT_EQ(show(4089184256, Show::compact), "4.089 G");
    EXPECT_EQ(show(300774272, Show::compact), "300.8 M");
    EXPECT_EQ(show(0, Show::compact), "0");
    EXPECT_EQ(show(999, Show::compact), "999");
    EXPECT_EQ(show(1000, Show::compact), "1.000 k");
    EXPECT_EQ(show(999960, Show::compact), "1.000 M");
    EXPECT_EQ(show(0.25, Show::compact), "0.250");
}

TEST(Show, BytesAreBinaryUnits) {
    EXPECT_EQ(show(102228128, Show::bytes), "97.5 MiB");
    EXPECT_EQ(show(0, Show::bytes), "0 B");
    EXPECT_EQ(show(1023, Show::bytes), "1023 B");
    EXPECT_EQ(show(1024, Show::bytes), "1.00 KiB");
    EXPECT_EQ(show(1023 * 1024, Show::bytes), "1023 KiB");
    EXPECT_EQ(show(1024 * 1024 - 1, Show::bytes), "1.00 MiB");
}

TEST(Show, APercentageThatIsNotQuiteNothingOrAllDoesNotReadAsSuch) {
    EXPECT_EQ(show(0.1234, Show::percent), "12.3 %");
    EXPECT_EQ(show(0.0, Show::percent), "0.0 %");
    EXPECT_EQ(show(0.0001, Show::percent), "<0.1 %");
    EXPECT_EQ(show(0.99999, Show::percent), ">99.9 %");
    EXPECT_EQ(show(1.0, Show::percent), "100.0 %");
}

TEST(Show, TimesChooseTheirUnit) {
    EXPECT_EQ(show(0.0794, Show::seconds), "79.4 ms");
    EXPECT_EQ(show(79400000, Show::nanoseconds), "79.4 ms");
    EXPECT_EQ(show(0.0000026, Show::seconds), "2.60 µs");
    EXPECT_EQ(show(812, Show::nanoseconds), "812 ns");
    EXPECT_EQ(show(0.9999, Show::seconds), "1.00 s");
    EXPECT_EQ(show(61.5, Show::seconds), "61.5 s");
    EXPECT_EQ(show(125, Show::seconds), "2 min 05 s");
    EXPECT_EQ(show(7500, Show::seconds), "2 h 05 min");
    EXPECT_EQ(show(0, Show::seconds), "0 s");
}

TEST(Show, RatiosKeepThreeDigits) {
    EXPECT_EQ(show(1.0234, Show::ratio), "1.02×");
    EXPECT_EQ(show(20.0, Show::ratio), "20.0×");
    EXPECT_EQ(show(123.4, Show::ratio), "123×");
    EXPECT_EQ(show(38.4123, Show::decibels), "38.4 dB");
    EXPECT_EQ(show(9.0, Show::decibels), "9.0 dB");
}

TEST(Show, OtherCells) {
    EXPECT_EQ(show(Cell(), Show::count), "–");
    EXPECT_EQ(show(true, Show::plain), "yes");
    EXPECT_EQ(show(std::nan(""), Show::bytes), "NaN");
    EXPECT_EQ(show(-std::numeric_limits<double>::infinity(), Show::compact), "-inf");
    EXPECT_EQ(show(0.5, Show::plain), "0.5");
    EXPECT_EQ(show(std::vector<std::string>{"a", "b"}, Show::plain), "a, b");
    EXPECT_EQ(show("a\x1b[31m\n\xff", Show::plain), "a\\x1b[31m\\n�");
}

TEST(ReportFormats, AreFoundByNameAndSuffix) {
    EXPECT_STREQ(find_report_format("json")->name, "json");
    EXPECT_EQ(find_report_format("xml"), nullptr);
    EXPECT_STREQ(report_format_for("a/b.md")->name, "markdown");
    EXPECT_STREQ(report_format_for("b.csv")->name, "csv");
    EXPECT_STREQ(report_format_for("b.txt")->name, "text");
    EXPECT_EQ(report_format_for("b"), nullptr);
    EXPECT_EQ(report_format_for("b.pdf"), nullptr);
}

}  // namespace
}  // namespace trocar
