#include "tools/dump/present.h"

#include <fmt/format.h>

#include "util/text.h"

namespace trocar::dump {

namespace {

Cell text_or_missing(const std::string& text, const char* why) {
    return text.empty() ? Cell::unavailable(why) : Cell(text);
}

Cell number_cell(double number, DType dtype) {
    // Integers up to 2^53 are exact in a double.
    const bool whole = is_integer(dtype) || dtype == DType::boolean;
    return whole && number >= -0x1p53 && number <= 0x1p53 ? Cell(static_cast<std::int64_t>(number))
                                                          : Cell(number);
}

std::string shape_cell(const DumpRecord& record) {
    return record.kind == "tensor" ? shape_text(record.shape) : record.kind;
}

void add_counts(std::vector<Cell>& cells, const DumpRecord& record) {
    if (!record.statistics) {
        cells.insert(cells.end(), 6, Cell::unavailable("not numbers"));
        return;
    }
    const auto& s = *record.statistics;
    cells.push_back(s.count > 0 ? Cell(static_cast<double>(s.zeros) / static_cast<double>(s.count))
                                : Cell::unavailable("no elements"));
    cells.emplace_back(std::uint64_t{s.nans});
    cells.emplace_back(std::uint64_t{s.infinities()});
    cells.emplace_back(std::uint64_t{s.zeros});
    cells.emplace_back(std::uint64_t{s.denormals});
    cells.emplace_back(std::uint64_t{s.count});
}

void add_numbers(std::vector<Cell>& cells, const DumpRecord& record) {
    constexpr std::size_t columns = 12;
    if (!record.statistics || record.statistics->finite() == 0) {
        cells.insert(cells.end(), columns,
                     Cell::unavailable(record.statistics ? "no finite numbers" : "not numbers"));
        return;
    }
    const auto& s = *record.statistics;
    cells.push_back(number_cell(s.min, record.dtype));
    cells.push_back(number_cell(s.max, record.dtype));
    for (const double number : {s.mean, s.std, s.rms, s.l1, s.l2, s.max_abs}) {
        cells.emplace_back(number);
    }
    if (!s.distribution) {
        cells.insert(cells.end(), 4, Cell::unavailable("not wanted"));
        return;
    }
    for (const double number : {s.distribution->p1, s.distribution->p50, s.distribution->p99,
                                s.distribution->entropy_bits}) {
        cells.emplace_back(number);
    }
}

}  // namespace

Table record_table(bool sets) {
    Table table;
    table.key = "tensors";
    table.title = "Tensors";
    table.columns = {
        {.key = "set", .title = "Set", .hidden = !sets},
        {.key = "op", .title = "Op"},
        {.key = "type", .title = "Type"},
        {.key = "tensor", .title = "Tensor"},
        {.key = "dtype", .title = "Of"},
        {.key = "shape", .title = "Shape"},
        {.key = "min", .title = "Min"},
        {.key = "max", .title = "Max"},
        {.key = "mean", .title = "Mean"},
        {.key = "std", .title = "Std"},
        {.key = "rms", .title = "RMS", .optional = 7},
        {.key = "l1", .title = "L1", .hidden = true},
        {.key = "l2", .title = "L2", .hidden = true},
        {.key = "max_abs", .title = "Max abs", .hidden = true},
        {.key = "p1", .title = "p1", .optional = 5},
        {.key = "p50", .title = "p50", .optional = 4},
        {.key = "p99", .title = "p99", .optional = 5},
        {.key = "entropy_bits", .title = "Entropy", .optional = 6},
        {.key = "zero_share", .title = "Zeros", .show = Show::percent, .optional = 2},
        {.key = "nans", .title = "NaN", .show = Show::count},
        {.key = "infinities", .title = "Inf", .show = Show::count},
        {.key = "zeros", .title = "Zeros", .hidden = true},
        {.key = "denormals", .title = "Denormals", .show = Show::count, .optional = 3},
        {.key = "count", .title = "Numbers", .hidden = true},
        {.key = "slot", .title = "Slot", .hidden = true},
        {.key = "name", .title = "Name", .hidden = true},
        {.key = "module", .title = "Module", .hidden = true},
        {.key = "scope", .title = "In", .hidden = true},
        {.key = "sources", .title = "Computes", .hidden = true},
        {.key = "iterations", .title = "Rounds", .hidden = true},
        {.key = "bytes", .title = "Bytes", .hidden = true},
        {.key = "hash", .title = "Hash", .hidden = true},
        {.key = "file", .title = "File", .hidden = true},
    };
    return table;
}

Row record_row(const DumpRecord& record) {
    Row row;
    auto& cells = row.cells;
    cells = {Cell(record.set),
             Cell(record.op),
             Cell(record.type),
             Cell(record.tensor),
             record.kind == "tensor" ? Cell(trocar::name(record.dtype))
                                     : Cell::unavailable("not a tensor"),
             Cell(shape_cell(record))};
    if (!record.iterations.empty()) {
        cells[3] = Cell(fmt::format("{} @{}", record.tensor, join(record.iterations, ".")));
    }
    add_numbers(cells, record);
    add_counts(cells, record);
    cells.emplace_back(record.slot);
    cells.emplace_back(record.name);
    cells.push_back(text_or_missing(record.module, "the file does not tell"));
    cells.push_back(text_or_missing(record.scope, "in the model's own graph"));
    cells.emplace_back(record.sources);
    cells.emplace_back(fmt::format("{}", join(record.iterations, ".")));
    cells.emplace_back(record.bytes);
    cells.push_back(text_or_missing(record.hash, "not taken"));
    cells.push_back(text_or_missing(record.file, "not written"));
    return row;
}

}  // namespace trocar::dump
