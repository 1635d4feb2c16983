#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/summary/rows.h"

namespace trocar::summary {

// A row of the tree of modules.
struct Layer {
    std::string label;
    int depth = 0;
    std::uint64_t times = 1;  // equal blocks that this row stands for; `sums` are of all of them
    std::size_t row = OpRow::none;    // its op; none: a module
    std::string type;                 // of the op; of a module that is not opened the ops in it
    std::size_t first = OpRow::none;  // row of the first and last op in it
    std::size_t last = OpRow::none;
    Sums sums;
    std::string pattern;
};

struct TreeOptions {
    int depth = 0;  // how deep modules are opened; 0: as deep as `fit` rows allow
    std::size_t fit = 60;
    bool collapse = true;  // equal neighbours become one row
};

// The ops by module, in the order in which modules begin; bodies are shown below their op. Linear
// in the number of ops.
std::vector<Layer> layer_tree(const Rows& rows, const TreeOptions& options);

// One layer per op, in order, bodies below their op.
std::vector<Layer> layer_list(const Rows& rows);

// Does the file say which modules its ops come from?
bool has_modules(const Rows& rows);

}  // namespace trocar::summary
