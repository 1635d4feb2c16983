#pragma once

#include <string>
#include <vector>

#include "store/database.h"
#include "trocar/op_store.h"

// Rows of the database of operators as values.
namespace trocar::ops::rows {

const char* unit_name(View unit);  // "fused", "source"
View parse_unit(const std::string& text);

void insert(store::Database& database, const OpConfig& config);  // unless it is there
void insert(store::Database& database, const OpModelFacts& model);
void insert_windows(store::Database& database, std::int64_t measurement,
                    const std::vector<OpWindow>& windows);
void finish(store::Database& database, const OpMeasurement& measurement, const std::string& when);

extern const char* const measurement_columns;
std::vector<OpMeasurement> measurements(store::Statement& rows);
std::vector<OpWindow> windows(const store::Database& database, std::int64_t measurement);
std::vector<OpModelFacts> models(const store::Database& database);
std::vector<OpConfig> configs(const store::Database& database);

// Copies a run with its measurements. Returns how many.
std::size_t copy_run(const store::Database& from, store::Database& to, const OpRun& run,
                     std::int64_t setting);

std::vector<std::string> verify(const store::Database& database);
std::string csv(const store::Database& database);
std::string jsonl(const store::Database& database);

}  // namespace trocar::ops::rows
