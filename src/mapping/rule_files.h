#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mapping/syntax.h"

namespace trocar::mapping {

// The rule files from one dialect to another: those that are named, then the one of this build.
// Throws Error(unsupported) when there is neither, and Error(input).
std::vector<RuleFile> rule_files(const std::string& from, const std::string& to,
                                 const std::vector<std::filesystem::path>& further);

// Texts of the rule files of this build, written by CMake from src/mapping/rules/*.map.
struct EmbeddedRules {
    const char* name;
    const char* text;
};
extern const EmbeddedRules embedded_rules[];
extern const std::size_t embedded_rules_count;

}  // namespace trocar::mapping
