#pragma once

#include <cstdint>
#include <optional>

#include "trocar/prune.h"
#include "trocar/report.h"

namespace trocar::prune_tool_parts {

// Parameters of a model: elements that ops read as weights, biases and the like.
struct Totals {
    std::uint64_t parameters = 0;
    std::uint64_t nonzero = 0;
    std::uint64_t bytes = 0;  // as stored
    std::optional<std::uint64_t> macs;
    double macs_nonzero = 0;  // without those whose weight is 0; an estimate for shared weights
};
Totals totals_of(const Model& model, const Shapes& shapes);

// One row for each weight, with what its op makes compared.
Table weight_table(const Model& before, const Pruned& pruned, const Shapes& shapes,
                   const Quality& quality);
// What was left alone, and why; of `channels`, that make outputs.
Table left_table(const Pruned& pruned, bool channels);

}  // namespace trocar::prune_tool_parts
