#include "tools/run/outputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/statistics.h"
#include "util/elements.h"
#include "util/file_stem.h"

namespace trocar {

namespace {

Cell number_cell(double number, DType dtype) {
    // Integers up to 2^53 are exact in a double.
    const bool whole = is_integer(dtype) || dtype == DType::boolean;
    return whole && number >= -0x1p53 && number <= 0x1p53 ? Cell(static_cast<std::int64_t>(number))
                                                          : Cell(number);
}

// The cells for least, greatest, mean, NaN and infinities.
std::vector<Cell> number_cells(const Value& value) {
    const auto missing = [](const char* why) {
        return std::vector<Cell>(5, Cell::unavailable(why));
    };
    if (!value.is_tensor()) {
        return missing("not a tensor");
    }
    if (!is_numeric(value.dtype())) {
        return missing("not numbers");
    }
    if (!value.device().is_host()) {
        return missing("not in host memory");
    }
    const auto found = statistics(value, {.spread = StatisticsOptions::Spread::none});
    std::vector<Cell> cells;
    if (found.finite() > 0) {
        cells = {number_cell(found.min, value.dtype()), number_cell(found.max, value.dtype()),
                 Cell(found.mean)};
    } else {
        cells.assign(3, Cell::unavailable("no finite numbers"));
    }
    cells.emplace_back(std::uint64_t{found.nans});
    cells.emplace_back(std::uint64_t{found.infinities()});
    return cells;
}

Cell byte_cell(const Value& value) {
    if (!value.is_tensor() || bits(value.dtype()) == 0) {
        return Cell::unavailable("no fixed size");
    }
    return std::uint64_t{byte_size(value.dtype(), value.element_count())};
}

}  // namespace

std::vector<std::string> file_stems(const std::vector<NamedValue>& values) {
    std::vector<std::string> stems;
    FileStems taken;
    for (const auto& value : values) {
        stems.push_back(taken.add(value.name));
    }
    return stems;
}

std::vector<std::filesystem::path> write_outputs(const std::vector<NamedValue>& outputs,
                                                 const std::filesystem::path& folder,
                                                 std::vector<std::string>& warnings) {
    const auto stems = file_stems(outputs);
    std::vector<std::filesystem::path> files;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        try {
            files.push_back(save_value(outputs[i], folder, stems[i]));
        } catch (const Error& error) {
            if (error.fault() != Fault::unsupported) {
                throw;
            }
            warnings.push_back(
                fmt::format("output '{}' was not written: {}", outputs[i].name, error.what()));
            files.emplace_back();
        }
    }
    return files;
}

Table output_table(const std::vector<NamedValue>& outputs,
                   const std::vector<std::filesystem::path>& files) {
    Table table;
    table.key = "outputs";
    table.title = "Outputs";
    table.columns = {
        {.key = "name", .title = "Name"},
        {.key = "dtype", .title = "Type"},
        {.key = "shape", .title = "Shape"},
        {.key = "min", .title = "Min"},
        {.key = "max", .title = "Max"},
        {.key = "mean", .title = "Mean"},
        {.key = "nans", .title = "NaN", .show = Show::count},
        {.key = "infinities", .title = "Inf", .show = Show::count},
        {.key = "bytes", .title = "Size", .show = Show::bytes, .optional = 1},
    };
    if (!files.empty()) {
        table.columns.push_back({.key = "file", .title = "File"});
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto& value = outputs[i].value;
        Row row;
        row.cells.emplace_back(outputs[i].name);
        if (value.is_tensor()) {
            row.cells.emplace_back(name(value.dtype()));
            row.cells.emplace_back(shape_text(value.shape()));
        } else {
            row.cells.emplace_back(value_text(value));
            row.cells.push_back(Cell::unavailable("not a tensor"));
        }
        for (auto& cell : number_cells(value)) {
            row.cells.push_back(std::move(cell));
        }
        row.cells.push_back(byte_cell(value));
        if (!files.empty()) {
            row.cells.push_back(files[i].empty() ? Cell::unavailable("no format holds it")
                                                 : Cell(files[i].string()));
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

}  // namespace trocar
