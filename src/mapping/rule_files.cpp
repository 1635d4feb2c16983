#include "mapping/rule_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "trocar/error.h"
#include "trocar/mapping.h"
#include "util/files.h"

namespace trocar {

namespace mapping {

std::vector<RuleFile> rule_files(const std::string& from, const std::string& to,
                                 const std::vector<std::filesystem::path>& further) {
    std::vector<RuleFile> files;
    for (const auto& path : further) {
        auto file = parse_rules(read_file(path), path.string());
        if (file.from != from || file.to != to) {
            throw Error(Fault::input, fmt::format("'{}' maps {} to {}, not {} to {}", path.string(),
                                                  file.from, file.to, from, to));
        }
        files.push_back(std::move(file));
    }
    for (std::size_t i = 0; i < embedded_rules_count; ++i) {
        const auto& one = embedded_rules[i];
        if (one.name == fmt::format("{}-{}", from, to)) {
            files.push_back(parse_rules(one.text, fmt::format("{}.map", one.name)));
            return files;
        }
    }
    if (!files.empty()) {
        return files;
    }
    std::vector<std::string> known;
    for (const auto& one : mappings()) {
        known.push_back(fmt::format("{} to {}", one.from, one.to));
    }
    throw Error(Fault::unsupported, fmt::format("there are no rules that map {} to {}", from, to),
                fmt::format("there are rules for {}", fmt::join(known, ", ")));
}

}  // namespace mapping

const std::vector<MappingInfo>& mappings() {
    static const auto all = [] {
        std::vector<MappingInfo> made;
        for (std::size_t i = 0; i < mapping::embedded_rules_count; ++i) {
            const auto& one = mapping::embedded_rules[i];
            const auto file = mapping::parse_rules(one.text, fmt::format("{}.map", one.name));
            std::set<std::string> types;
            for (const auto& rule : file.rules) {
                types.insert(rule->match.back().types.begin(), rule->match.back().types.end());
            }
            made.push_back(
                {file.from, file.to, one.text, {types.begin(), types.end()}, file.needs_types});
        }
        return made;
    }();
    return all;
}

bool needs_types(const std::string& from, const std::string& to) {
    return std::any_of(mappings().begin(), mappings().end(), [&](const MappingInfo& one) {
        return one.from == from && one.to == to && one.needs_types;
    });
}

bool can_map(const std::string& from, const std::string& to) {
    const auto name = fmt::format("{}-{}", from, to);
    return std::any_of(mapping::embedded_rules,
                       mapping::embedded_rules + mapping::embedded_rules_count,
                       [&](const mapping::EmbeddedRules& one) { return one.name == name; });
}

}  // namespace trocar
