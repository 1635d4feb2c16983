#include "trocar/report.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trocar {
namespace {

std::string csv(const Report& report) {
    return find_report_format("csv")->write(report, {});
}

TEST(CsvReport, IsTheFirstTableWithAllColumns) {
    Report report;
    Table table;
    table.columns = {{.key = "name", .title = "Name", .tree = true},
                     {.key = "macs", .title = "MACs", .show = Show::compact},
                     {.key = "note", .title = "Note", .hidden = true}};
    table.rows = {{{"a,b", 25557032, "says \"x\""}, 0, false},
                  {{"line\nbreak", Cell::unavailable("why"), true}, 2, false},
                  {{" c", 0.1, std::vector<std::string>{"x", "y"}}, 2, false},
                  {{"d", std::nan("")}, 2, false}};
    report.tables = {table, table};
    EXPECT_EQ(csv(report),
              "depth,name,macs,note\n"
              "0,\"a,b\",25557032,\"says \"\"x\"\"\"\n"
              "2,\"line\nbreak\",,true\n"
              "2,\" c\",0.1,x; y\n"
              "2,d,nan,\n");
}

TEST(CsvReport, OfAReportWithoutTablesHasTheScalars) {
    Report report;
    report.sections = {{"time", "Time", {{"median_ns", "Median", 5, Show::plain, ""}}}};
    EXPECT_EQ(csv(report), "section,key,value\ntime,median_ns,5\n");
}

}  // namespace
}  // namespace trocar
