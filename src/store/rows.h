#pragma once

#include <string>

#include "store/database.h"
#include "trocar/campaign_store.h"

namespace trocar::store {

// Rows as the values they were. `which`: "WHERE …" or "ORDER BY …", with places to bind.
Statement select_fault(const Database& database, const std::string& which);
Statement select_result(const Database& database, const std::string& which);
Statement select_effect(const Database& database, const std::string& which);
FaultRecord fault_of(const Statement& row);
TrialResult result_of(const Statement& row);
// Metrics with names, of one result. `has_metrics`: is there any in the store?
Metrics read_metrics(const Database& database, std::uint64_t trial, std::uint64_t input);
bool has_metrics(const Database& database);
LayerEffect effect_of(const Statement& row);
bool same_effect(const LayerEffect& a, const LayerEffect& b);  // NaN equals NaN

Stratum read_stratum(const Database& database, std::uint64_t place);
std::optional<GoldenInput> read_golden(const Database& database, std::uint64_t input,
                                       bool outputs = true);
std::vector<GoldenOutput> read_outputs(const Database& database, std::uint64_t input);

std::string shape_of(const Shape& shape);  // "1x3x224x224"; empty for a scalar

}  // namespace trocar::store
