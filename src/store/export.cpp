#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "store/body.h"
#include "store/rows.h"
#include "store/schema.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/report_blocks.h"
#include "util/text.h"

namespace trocar {

namespace {

using store::Database;
using store::Statement;

std::string hex(std::span<const std::byte> bytes) {
    std::string text;
    for (const auto byte : bytes) {
        text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    }
    return text;
}

std::string number_text(double value) {
    return std::isinf(value) ? (value > 0 ? "inf" : "-inf") : exact(value);
}

// RFC 4180: in quotes where it has commas, quotes or ends of lines.
std::string csv_text(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) {
        return text;
    }
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c == '"' ? "\"\"" : std::string(1, c);
    }
    return quoted + '"';
}

std::string csv_cell(const Statement& row, int place) {
    switch (row.kind(place)) {
        case Statement::Kind::null:
            return {};
        case Statement::Kind::integer:
            return fmt::format("{}", row.integer(place));
        case Statement::Kind::number:
            return number_text(row.number(place));
        case Statement::Kind::text:
            return csv_text(row.text(place));
        case Statement::Kind::bytes:
            return hex(row.bytes(place));
    }
    return {};
}

std::string json_text(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_cell(const Statement& row, int place) {
    switch (row.kind(place)) {
        case Statement::Kind::null:
            return "null";
        case Statement::Kind::integer:
            return fmt::format("{}", row.integer(place));
        case Statement::Kind::number:
            // JSON has no infinity.
            return std::isinf(row.number(place)) ? json_text(number_text(row.number(place)))
                                                 : number_text(row.number(place));
        case Statement::Kind::text:
            return json_text(row.text(place));
        case Statement::Kind::bytes:
            return json_text(hex(row.bytes(place)));
    }
    return "null";
}

void write_csv(FileWriter& file, Statement row) {
    for (int i = 0; i < row.columns(); ++i) {
        file.write((i > 0 ? "," : "") + csv_text(row.column_name(i)));
    }
    file.write("\n");
    while (row.step()) {
        for (int i = 0; i < row.columns(); ++i) {
            file.write((i > 0 ? "," : "") + csv_cell(row, i));
        }
        file.write("\n");
    }
}

// A list of objects, one on a line.
void write_json(FileWriter& file, Statement row) {
    file.write("[");
    bool first = true;
    while (row.step()) {
        file.write(first ? "\n" : ",\n");
        first = false;
        for (int i = 0; i < row.columns(); ++i) {
            file.write((i > 0 ? "," : "{") + json_text(row.column_name(i)) + ":" +
                       json_cell(row, i));
        }
        file.write("}");
    }
    file.write("\n]");
}

void write_everything(FileWriter& file, const Database& database) {
    file.write(fmt::format("{{\"schema\":\"trocar.campaign/{}\"", store::schema_version));
    for (const char* table : {"campaign", "context", "strata", "faults", "results", "metrics",
                              "layer_effects", "golden", "runs", "savings", "audits"}) {
        if (std::string_view(table) == "metrics" && !store::has_metrics(database)) {
            continue;
        }
        file.write(fmt::format(",\n\"{}\":", table));
        write_json(file, database.prepare(fmt::format("SELECT * FROM {}", table)));
    }
    file.write("}\n");
}

}  // namespace

std::vector<std::string> CampaignStore::tables() {
    return store::table_names();
}

void CampaignStore::export_to(const std::filesystem::path& file, const std::string& table) const {
    const auto& names = store::table_names();
    const bool everything = table == "everything";
    if (!everything && std::find(names.begin(), names.end(), table) == names.end()) {
        const auto guess = did_you_mean(table, names);
        throw Error(Fault::usage, fmt::format("a store has no table '{}'", table),
                    fmt::format("{}{}one of: {}, everything", guess, guess.empty() ? "" : " ",
                                fmt::join(names, ", ")));
    }
    const auto suffix = file.extension();
    if (suffix != ".csv" && suffix != ".json") {
        throw Error(Fault::usage,
                    fmt::format("cannot tell from '{}' how to write it", file.string()),
                    "name a file that ends in .csv or .json");
    }
    if (everything && suffix != ".json") {
        throw Error(Fault::usage, "a .csv file holds one table, not everything",
                    "name a table, or a file that ends in .json");
    }
    const std::scoped_lock lock(body_->mutex);
    FileWriter writer(file);
    if (everything) {
        write_everything(writer, body_->database);
    } else if (suffix == ".csv") {
        write_csv(writer, body_->database.prepare(fmt::format("SELECT * FROM {}", table)));
    } else {
        write_json(writer, body_->database.prepare(fmt::format("SELECT * FROM {}", table)));
        writer.write("\n");
    }
    writer.commit();
}

}  // namespace trocar
