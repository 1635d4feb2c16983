#include "trocar/report.h"

#include <gtest/gtest.h>

namespace trocar {
namespace {

TEST(MarkdownReport, HasListsAndTablesWithNothingTakenForMarkup) {
    Report report;
    report.tool = "summary";
    report.sections = {{"model",
                        "Model",
                        {{"file", "File", "a|b_c.onnx", Show::plain, ""},
                         {"macs", "MACs", Cell::unavailable("no *shape*"), Show::plain, ""}}}};
    Table table;
    table.title = "Ops";
    table.columns = {{.key = "name", .title = "Name", .tree = true},
                     {.key = "bytes", .title = "Bytes", .show = Show::bytes},
                     {.key = "x", .title = "X", .hidden = true}};
    table.rows = {{{"_a|<b>\n", 1024, 1}, 1, false}, {{"Total", 2048, 1}, 0, true}};
    report.tables = {table};
    report.warnings = {"w"};
    EXPECT_EQ(find_report_format("markdown")->write(report, {}),
              "# trocar summary\n\n"
              "## Model\n\n"
              "- **File**: a\\|b_c.onnx\n"
              "- **MACs**: – (no \\*shape\\*)\n\n"
              "## Ops\n\n"
              "| Name | Bytes |\n"
              "|:---|---:|\n"
              "| &emsp;\\_a\\|&lt;b>\\\\n | 1.00 KiB |\n"
              "| **Total** | **2.00 KiB** |\n\n"
              "## Warnings\n\n"
              "- w\n");
}

}  // namespace
}  // namespace trocar
