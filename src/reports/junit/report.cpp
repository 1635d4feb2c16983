#include "trocar/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/display.h"

namespace trocar {

namespace {

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

struct Case {
    std::string name;
    std::string group;
    std::string verdict;
    std::string reason;
};

std::string cell_of(const Table& table, const Row& row, std::string_view key) {
    for (std::size_t i = 0; i < table.columns.size() && i < row.cells.size(); ++i) {
        if (table.columns[i].key == key && !row.cells[i].missing()) {
            return show(row.cells[i], Show::plain);
        }
    }
    return {};
}

bool has_verdicts(const Table& table) {
    return std::any_of(table.columns.begin(), table.columns.end(),
                       [](const Column& column) { return column.key == "verdict"; });
}

// The rows of the longest table that has a verdict on each; without one, the report as a whole.
std::vector<Case> cases_of(const Report& report) {
    const Table* longest = nullptr;
    for (const auto& table : report.tables) {
        if (has_verdicts(table) &&
            (longest == nullptr || table.rows.size() > longest->rows.size())) {
            longest = &table;
        }
    }
    std::vector<Case> cases;
    if (longest == nullptr) {
        cases.push_back({report.tool, report.tool, report.verdict ? "PASS" : "FAIL",
                         report.verdict ? "" : "the answer is no"});
        return cases;
    }
    for (const auto& row : longest->rows) {
        Case one;
        for (const auto* key : {"layer", "name", "tensor"}) {
            const auto text = cell_of(*longest, row, key);
            one.name += one.name.empty() || text.empty() ? text : " " + text;
        }
        for (const auto* key : {"side", "mode"}) {
            const auto text = cell_of(*longest, row, key);
            one.group += one.group.empty() || text.empty() ? text : ", " + text;
        }
        one.verdict = cell_of(*longest, row, "verdict");
        one.reason = cell_of(*longest, row, "reason");
        cases.push_back(std::move(one));
    }
    return cases;
}

std::string write(const Report& report, const Style&) {
    const auto cases = cases_of(report);
    const auto count = [&](std::string_view verdict) {
        return std::count_if(cases.begin(), cases.end(),
                             [&](const Case& one) { return one.verdict == verdict; });
    };
    auto out = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"trocar {}\" "
        "tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
        escaped(report.tool), cases.size(), count("FAIL"), count("INCOMPARABLE"));
    for (const auto& one : cases) {
        out += fmt::format("<testcase name=\"{}\" classname=\"{}\"", escaped(one.name),
                           escaped(one.group));
        if (one.verdict == "FAIL" || one.verdict == "INCOMPARABLE") {
            const auto* tag = one.verdict == "FAIL" ? "failure" : "error";
            out += fmt::format("><{} message=\"{}\"/></testcase>\n", tag, escaped(one.reason));
        } else if (one.verdict == "WARN") {
            out +=
                fmt::format("><system-out>WARN: {}</system-out></testcase>\n", escaped(one.reason));
        } else {
            out += "/>\n";
        }
    }
    return out + "</testsuite>\n</testsuites>\n";
}

}  // namespace

extern const ReportFormat junit_report{
    .name = "junit",
    .summary = "JUnit XML, as systems for continuous integration read it",
    .suffixes = ".xml",
    .write = write,
};

}  // namespace trocar
