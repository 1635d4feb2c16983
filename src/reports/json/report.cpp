#include "trocar/report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
#include "trocar/version.h"
#include "util/report_blocks.h"

namespace trocar {

namespace {

// Adds the cell under its key. What JSON cannot hold is null, with the reason beside it.
void add(Json& object, const std::string& key, const Cell& cell) {
    auto& place = object[key];
    std::string reason = cell.reason;
    if (const auto* number = std::get_if<double>(&cell.value); number && !std::isfinite(*number)) {
        reason = std::isnan(*number) ? "NaN" : *number < 0 ? "-infinity" : "infinity";
    } else {
        std::visit(
            [&](const auto& value) {
                if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
                    place = value;
                }
            },
            cell.value);
    }
    if (place.is_null() && !reason.empty()) {
        object[key + "_reason"] = reason;
    }
}

Json object_of(const std::vector<Scalar>& scalars) {
    auto object = Json::object(Json::Order::given);
    for (const auto& scalar : scalars) {
        add(object, scalar.key, scalar.value);
        if (!scalar.note.empty()) {
            object[scalar.key + "_note"] = scalar.note;
        }
    }
    return object;
}

Json object_of(const Table& table, const Row& row, bool with_depth) {
    auto object = Json::object(Json::Order::given);
    if (with_depth) {
        object["depth"] = row.depth;
    }
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        add(object, table.columns[i].key, i < row.cells.size() ? row.cells[i] : Cell());
    }
    return object;
}

// One row per line. Rows are written as they are made: a table may have very many.
void append_table(std::string& out, const Table& table) {
    out += fmt::format("    {}: [", json_quoted(table.key));
    const bool with_depth = is_tree(table);
    const char* separator = "\n";
    for (const auto& row : table.rows) {
        out += separator;
        out += "      ";
        out += object_of(table, row, with_depth).dump();
        separator = ",\n";
    }
    out += table.rows.empty() ? "]" : "\n    ]";
}

std::string write(const Report& report, const Style&) {
    std::string out = "{\n";
    const auto member = [&](const char* key, const Json& value, bool last = false) {
        out += fmt::format("  \"{}\": {}{}\n", key, value.dump(), last ? "" : ",");
    };
    member("schema", "trocar.report/1");
    member("tool", report.tool);
    member("trocar", version());
    member("build", build_type());
    member("context", object_of(report.context));
    auto sections = Json::object(Json::Order::given);
    for (const auto& section : report.sections) {
        sections[section.key] = object_of(section.scalars);
    }
    member("sections", sections);
    out += "  \"tables\": {";
    auto notes = Json::array();
    const char* separator = "\n";
    for (const auto& table : report.tables) {
        out += separator;
        append_table(out, table);
        separator = ",\n";
        if (!table.note.empty()) {
            notes.push_back(table.note);
        }
    }
    out += report.tables.empty() ? "},\n" : "\n  },\n";
    for (const auto& note : report.notes) {
        notes.push_back(note);
    }
    member("notes", notes);
    member("warnings", report.warnings);
    member("verdict", report.verdict);
    member("partial", report.partial || report.unfinished, true);
    return out + "}\n";
}

}  // namespace

extern const ReportFormat json_report{
    .name = "json",
    .summary = "everything, for programs",
    .suffixes = ".json",
    .write = write,
};

}  // namespace trocar
