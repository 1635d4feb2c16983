#include "trocar/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trocar {
namespace {

std::string json(const Report& report) {
    return find_report_format("json")->write(report, {});
}

TEST(JsonReport, HoldsEverything) {
    Report report;
    report.tool = "profile";
    report.context = {{"seed", "Seed", 7, Show::plain, ""}};
    report.sections = {
        {"totals",
         "Totals",
         {{"parameters", "Parameters", 25557032, Show::compact, "a note"},
          {"energy_j", "Energy", Cell::unavailable("no counter"), Show::plain, ""}}}};
    Table table;
    table.key = "ops";
    table.columns = {{.key = "name", .title = "Name", .tree = true},
                     {.key = "share", .title = "Share"},
                     {.key = "shapes", .title = "Shapes", .hidden = true}};
    table.rows = {{{"a", 0.5, std::vector<std::string>{"1x2"}}, 1, false},
                  {{"b", std::nan("")}, 0, true}};
    table.note = "below";
    report.tables = {table};
    report.notes = {"n"};
    report.warnings = {"w"};
    report.verdict = false;
    const auto text = json(report);
    const auto from = text.find("  \"context\"");
    EXPECT_EQ(text.substr(0, 54),
              "{\n  \"schema\": \"trocar.report/1\",\n  \"tool\": \"profile\",\n");
    EXPECT_EQ(text.substr(from),
              R"(  "context": {"seed":7},
  "sections": {"totals":{"parameters":25557032,"parameters_note":"a note","energy_j":null,"energy_j_reason":"no counter"}},
  "tables": {
    "ops": [
      {"depth":1,"name":"a","share":0.5,"shapes":["1x2"]},
      {"depth":0,"name":"b","share":null,"share_reason":"NaN","shapes":null}
    ]
  },
  "notes": ["below","n"],
  "warnings": ["w"],
  "verdict": false,
  "partial": false
}
)");
}

TEST(JsonReport, NumbersAreExactAndNeverNotANumber) {
    Report report;
    const auto add = [&](const char* key, Cell cell) {
        report.context.push_back({key, key, std::move(cell), Show::plain, ""});
    };
    add("max", std::numeric_limits<std::int64_t>::max());
    add("tenth", 0.1);
    add("inf", std::numeric_limits<double>::infinity());
    add("whole", 2.0);
    EXPECT_NE(
        json(report).find(
            R"({"max":9223372036854775807,"tenth":0.1,"inf":null,"inf_reason":"infinity","whole":2.0})"),
        std::string::npos)
        << json(report);
}

TEST(JsonReport, TextThatIsNotUtf8IsReplaced) {
    Report report;
    report.notes = {"a\xff\"\n"};
    EXPECT_NE(json(report).find(R"("notes": ["a�\"\n"])"), std::string::npos) << json(report);
}

}  // namespace
}  // namespace trocar
