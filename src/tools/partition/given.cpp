#include "tools/partition/given.h"

#include <fmt/format.h>

#include <charconv>

#include "base/json.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/text.h"

namespace trocar::partition_tool_parts {

DeviceRule rule_of(const Model& model, std::string_view device, std::string_view selector,
                   const char* from) {
    if (device.empty() || selector.empty()) {
        throw Error(Fault::usage, fmt::format("{} names no device, or no ops for it", from),
                    "write --device NAME=SELECTOR, as in --device npu='Conv | Relu'");
    }
    DeviceRule rule{std::string(device), parse_selector(selector)};
    select_some(model.graph, rule.ops, from);
    return rule;
}

// Lines of a device and a selector; what follows a # is for the reader.
void read_rules(const Model& model, const std::string& path, std::vector<DeviceRule>& rules) {
    std::size_t number = 0;
    for (const auto& raw : split(read_file(path), '\n')) {
        ++number;
        const auto line = trim(raw);
        if (line.empty() || line.starts_with('#')) {
            continue;
        }
        const auto space = line.find_first_of(" \t");
        if (space == std::string_view::npos) {
            throw Error(Fault::input,
                        fmt::format("'{}', line {}: a selector is missing", path, number),
                        "each line is a device and a selector, as in: npu Conv | Relu");
        }
        rules.push_back(rule_of(model, line.substr(0, space), trim(line.substr(space)),
                                fmt::format("'{}', line {},", path, number).c_str()));
    }
}

// Costs of ops by name: a report of `trocar profile` as JSON, or lines NAME,COST.
std::map<std::string, double> read_costs(const std::string& path) {
    std::map<std::string, double> costs;
    const auto text = read_file(path);
    const auto json = Json::parse(text);
    const auto* tables = json ? json->find("tables") : nullptr;
    if (tables != nullptr && tables->is_object()) {
        for (const auto& [key, table] : tables->items()) {
            if (!table.is_array()) {
                continue;
            }
            for (const auto& row : table) {
                const auto* name = row.find("name");
                const auto* cost = row.find("self_ns");
                if (name != nullptr && name->is_string() && cost != nullptr && cost->is_number()) {
                    costs.emplace(name->string(), cost->number());
                }
            }
        }
    } else {
        for (const auto& line : split(text, '\n')) {
            const auto comma = line.rfind(',');
            double cost = 0;
            if (comma == std::string::npos) {
                continue;
            }
            const auto word = trim(std::string_view(line).substr(comma + 1));
            const auto [at, failure] =
                std::from_chars(word.data(), word.data() + word.size(), cost);
            if (failure == std::errc{} && at == word.data() + word.size() && cost >= 0) {
                costs.emplace(trim(line.substr(0, comma)), cost);
            }
        }
    }
    if (costs.empty()) {
        throw Error(Fault::input, fmt::format("'{}' has no costs of ops", path),
                    "it is a report of `trocar profile --json`, or has lines NAME,COST");
    }
    return costs;
}

}  // namespace trocar::partition_tool_parts
