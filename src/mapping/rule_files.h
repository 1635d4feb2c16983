#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mapping/syntax.h"

namespace trocar::mapping {

// The rule files from one dialect to another: those that are named, then those of this build, which
// are read once. The last one is FROM-TO.map, whose definitions all may use. Throws
// Error(unsupported) when there is neither, and Error(input).
using RuleFiles = std::vector<std::shared_ptr<const RuleFile>>;
RuleFiles rule_files(const std::string& from, const std::string& to,
                     const std::vector<std::filesystem::path>& further);

// The dialects that those of this build map, from and to, without reading them.
std::vector<std::pair<std::string, std::string>> mapped_dialects();

// Texts of the rule files of this build, written by CMake from src/mapping/rules/*.map.
struct EmbeddedRules {
    const char* name;  // "FROM-TO"; "FROM-TO.THEME": more of its rules
    const char* text;
};
extern const EmbeddedRules embedded_rules[];
extern const std::size_t embedded_rules_count;

}  // namespace trocar::mapping
