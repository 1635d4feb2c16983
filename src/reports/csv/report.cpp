#include "trocar/report.h"

#include <fmt/format.h>

#include "util/display.h"
#include "util/report_blocks.h"
#include "util/text.h"

// A CSV file holds one table, so that every program can read it: the first table of the report with
// all its columns, hidden ones too; of a report without tables its scalars, one per row. Quoting is
// that of RFC 4180, lines end in a newline alone. Numbers are whole, in the unit of their column's
// key; a missing value is an empty field; the items of a list are separated by "; ".

namespace trocar {

namespace {

std::string field(std::string_view text) {
    return csv_field(valid_utf8(text));
}

struct Field {
    std::string operator()(std::monostate) const { return {}; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return exact(value); }
    std::string operator()(const std::string& value) const { return field(value); }
    std::string operator()(const std::vector<std::string>& values) const {
        return field(fmt::format("{}", join(values, "; ")));
    }
};

std::string line(const std::vector<std::string>& fields) {
    return fmt::format("{}\n", join(fields, ","));
}

std::string write_table(const Table& table) {
    const bool with_depth = is_tree(table);
    std::vector<std::string> fields;
    if (with_depth) {
        fields.emplace_back("depth");
    }
    for (const auto& column : table.columns) {
        fields.push_back(field(column.key));
    }
    auto out = line(fields);
    for (const auto& row : table.rows) {
        fields.clear();
        if (with_depth) {
            fields.push_back(fmt::format("{}", row.depth));
        }
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
            fields.push_back(i < row.cells.size() ? std::visit(Field(), row.cells[i].value) : "");
        }
        out += line(fields);
    }
    return out;
}

std::string write(const Report& report, const Style&) {
    if (!report.tables.empty()) {
        return write_table(report.tables.front());
    }
    auto out = line({"section", "key", "value"});
    for (const auto& section : report.sections) {
        for (const auto& scalar : section.scalars) {
            out += line(
                {field(section.key), field(scalar.key), std::visit(Field(), scalar.value.value)});
        }
    }
    return out;
}

}  // namespace

extern const ReportFormat csv_report{
    .name = "csv",
    .summary = "the first table, for spreadsheets and data frames",
    .suffixes = ".csv",
    .write = write,
};

}  // namespace trocar
