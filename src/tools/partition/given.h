#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/partition.h"

namespace trocar::partition_tool_parts {

// A device and its ops; `from` is how messages call the place where it was said. Throws
// Error(usage).
DeviceRule rule_of(const Model& model, std::string_view device, std::string_view selector,
                   const char* from);
// Those of a file: lines of a device and a selector.
void read_rules(const Model& model, const std::string& path, std::vector<DeviceRule>& rules);
// Costs of ops by name: a report of `trocar profile` as JSON, or lines NAME,COST. Throws
// Error(input) when there are none.
std::map<std::string, double> read_costs(const std::string& path);

}  // namespace trocar::partition_tool_parts
