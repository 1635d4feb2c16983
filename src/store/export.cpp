#include <fmt/format.h>

#include <algorithm>

#include "store/body.h"
#include "store/row_text.h"
#include "store/rows.h"
#include "store/schema.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/text.h"

namespace trocar {

namespace {

using store::Database;
using store::Statement;

void write_csv(FileWriter& file, Statement row) {
    file.write(store::csv_names(row) + "\n");
    while (row.step()) {
        file.write(store::csv_row(row) + "\n");
    }
}

// A list of objects, one on a line.
void write_json(FileWriter& file, Statement row) {
    file.write("[");
    bool first = true;
    while (row.step()) {
        file.write(first ? "\n" : ",\n");
        first = false;
        file.write(store::json_row(row));
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
                                join(names, ", ")));
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
