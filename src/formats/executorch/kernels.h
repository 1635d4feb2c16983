#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trocar::executorch {

extern const char* const kernel_table;

// An argument of a kernel, or one that is its result.
struct Parameter {
    std::string name;
    char kind = 't';  // as kernel_table.cpp has them, in small letters
    bool list = false;
    bool optional = false;
    bool changed = false;                  // in place
    std::optional<std::string> otherwise;  // what it is when nobody says: "1", "[0,0]", "none"
};

// How a file calls an op: all arguments in order, then the results.
struct Kernel {
    std::string domain;    // "" is that of ATen
    std::string type;      // "add"
    std::string in_file;   // overload there: "out"
    std::string overload;  // of the op that makes its result: "Tensor"
    std::vector<Parameter> arguments;
    std::vector<Parameter> results;

    // Files name results that are tensors a second time, as what the call returns: one as itself,
    // several as a list.
    bool returns() const;
    std::string name_in_file() const;  // "aten::add"
};

// `name` is that in a file, "aten::add". nullptr: not known.
const Kernel* find_kernel(std::string_view name, std::string_view overload_in_file);
// The kernel that computes an op of a graph.
const Kernel* kernel_for(std::string_view domain, std::string_view type, std::string_view overload);

}  // namespace trocar::executorch
