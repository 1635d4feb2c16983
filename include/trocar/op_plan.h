#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trocar/model.h"
#include "trocar/ops.h"

#pragma GCC visibility push(default)
namespace trocar {

// What to measure, as a file says it (YAML; docs/ops.md has the keys).
struct OpPlan {
    struct Entry {
        std::filesystem::path path;  // of a model; relative ones from the file's folder
        std::vector<std::string> shapes;
        std::vector<std::string> inputs;
    };
    std::vector<Entry> models;
    // All operators of the file's sweeps beside each other, each with inputs and weights of its
    // own.
    std::optional<Model> sweep;
    std::size_t swept = 0;                 // operators in it
    std::vector<CacheMode> modes;          // empty: not said
    std::vector<std::string> significant;  // types of ops to measure; empty: all
    std::optional<double> half_width;      // as a share
    std::optional<double> seconds_per_op;
    std::optional<double> target;  // percent
};
// Throws Error(input) with line and key.
OpPlan read_op_plan(const std::filesystem::path& path);
OpPlan parse_op_plan(const std::string& text, const std::string& file);

}  // namespace trocar
#pragma GCC visibility pop
