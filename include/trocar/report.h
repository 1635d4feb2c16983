#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace trocar {

// One cell: nothing (with a reason why not), a truth, an integer, a number, a text, or a list of
// texts.
struct Cell {
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::string>>
        value;
    std::string reason;  // of a missing value: "unavailable: …"

    Cell() = default;
    Cell(bool v) : value(v) {}
    Cell(std::int64_t v) : value(v) {}
    Cell(int v) : value(std::int64_t{v}) {}
    Cell(unsigned v) : value(std::int64_t{v}) {}
    Cell(std::uint64_t v) : value(static_cast<std::int64_t>(v)) {}
    Cell(double v) : value(v) {}
    Cell(std::string v) : value(std::move(v)) {}
    Cell(const char* v) : value(std::string(v)) {}
    Cell(std::vector<std::string> v) : value(std::move(v)) {}
    static Cell unavailable(std::string why) {
        Cell c;
        c.reason = std::move(why);
        return c;
    }
    bool missing() const { return std::holds_alternative<std::monostate>(value); }
};

// How a person wants to read a number. JSON and CSV always get it whole, in the unit of the key.
enum class Show {
    plain,
    count,        // 25557032 → 25,557,032
    compact,      // 25557032 → 25.56 M
    bytes,        // 102228128 → 97.5 MiB
    percent,      // 0.1234 → 12.3 %
    seconds,      // 0.0794 → 79.4 ms (the value is in seconds)
    nanoseconds,  // 79400000 → 79.4 ms (the value is in nanoseconds)
    ratio,        // 1.0234 → 1.02×
    decibels,     // 38.4123 → 38.4 dB
};

struct Column {
    std::string key;    // "parameter_bytes": unit last
    std::string title;  // "Param bytes"
    Show show = Show::plain;
    bool left = false;  // text is left-aligned anyway
    // When the table is wider than the terminal, columns with the highest number are left out first
    // (and named below the table). 0: always shown.
    int optional = 0;
    bool hidden = false;  // in JSON and CSV only
    bool tree = false;    // the cell is a label in a tree; the row's depth indents it
};

struct Row {
    std::vector<Cell> cells;  // one per column
    int depth = 0;            // in a tree
    bool strong = false;      // totals, headings
};

struct Table {
    std::string key;    // "ops"
    std::string title;  // printed above; may be empty
    std::vector<Column> columns;
    std::vector<Row> rows;
    std::string note;     // printed below
    bool hidden = false;  // in JSON and CSV only
};

struct Scalar {
    std::string key;    // "parameters"
    std::string title;  // "Parameters"
    Cell value;
    Show show = Show::plain;
    std::string note;  // "in 67 stored tensors"
};

// A block of scalars with a heading.
struct Section {
    std::string key;
    std::string title;
    std::vector<Scalar> scalars;
};

// A tool's answer.
struct Report {
    std::string tool;
    std::vector<Scalar> context;  // what the numbers depend on: model, engine, threads, seed…
    std::vector<Section> sections;
    std::vector<Table> tables;
    std::vector<std::string> notes;     // for the reader, after the tables
    std::vector<std::string> warnings;  // to stderr and into the report
    bool verdict = true;                // false: the tool's answer is "no" (exit 1)
    bool partial = false;               // interrupted: what there was by then
    bool unfinished = false;            // what it is about was not finished; "partial" in JSON
    // Where not empty, the answer is this text, printed as it is.
    std::string document;
    // Sections and tables in the order in which to print them, by key; empty: sections first.
    std::vector<std::string> order;
};

struct Style {
    std::size_t width = 0;  // columns of the terminal; 0: as wide as it gets
    bool colour = false;
    bool ascii = false;  // no box or tree characters beyond ASCII
    int verbosity = 0;   // -1 quiet, 1 verbose (context is printed)
};

// One way to write a report. A unit src/reports/NAME/report.cpp defines `NAME_report`.
struct ReportFormat {
    const char* name;
    const char* summary;
    const char* suffixes;  // ".json"
    std::string (*write)(const Report& report, const Style& style);
};

std::span<const ReportFormat* const> report_formats();
const ReportFormat* find_report_format(std::string_view name);
const ReportFormat* report_format_for(const std::filesystem::path& path);  // by suffix; nullptr

// "25,557,032", "25.56 M", "97.5 MiB": as the text report shows a number; a missing cell is "–".
std::string show(const Cell& cell, Show how);

}  // namespace trocar
#pragma GCC visibility pop
