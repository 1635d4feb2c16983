#include "trocar/report.h"

#include <gtest/gtest.h>

namespace trocar {
namespace {

std::string written(const Report& report) {
    return find_report_format("junit")->write(report, {});
}

TEST(JUnitReport, HasACaseForEachVerdict) {
    Report report;
    report.tool = "compare";
    Table table;
    table.columns = {{.key = "name", .title = ""},
                     {.key = "verdict", .title = ""},
                     {.key = "reason", .title = ""}};
    table.rows = {{.cells = {Cell("a"), Cell("PASS"), Cell("")}},
                  {.cells = {Cell("b<\""), Cell("FAIL"), Cell("off & far")}},
                  {.cells = {Cell("c"), Cell("INCOMPARABLE"), Cell("crashed")}},
                  {.cells = {Cell("d"), Cell("WARN"), Cell("near")}}};
    report.tables.push_back(table);
    EXPECT_EQ(written(report),
              "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
              "<testsuites>\n"
              "<testsuite name=\"trocar compare\" tests=\"4\" failures=\"1\" errors=\"1\">\n"
              "<testcase name=\"a\" classname=\"\"/>\n"
              "<testcase name=\"b&lt;&quot;\" classname=\"\"><failure message=\"off &amp; "
              "far\"/></testcase>\n"
              "<testcase name=\"c\" classname=\"\"><error message=\"crashed\"/></testcase>\n"
              "<testcase name=\"d\" classname=\"\"><system-out>WARN: "
              "near</system-out></testcase>\n"
              "</testsuite>\n</testsuites>\n");
}

TEST(JUnitReport, IsOneCaseWithoutVerdicts) {
    Report report;
    report.tool = "diff";
    report.verdict = false;
    EXPECT_NE(written(report).find("failures=\"1\""), std::string::npos);
}

}  // namespace
}  // namespace trocar
