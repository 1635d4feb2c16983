#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/constant_place.h"
#include "trocar/counting.h"
#include "trocar/model.h"
#include "trocar/prune.h"

namespace trocar::pruning {

// A constant as something reads it.
struct Place : ConstantPlace {
    // How the axes of what is read lie in the constant, where something transposes it; empty: as
    // they are.
    std::vector<std::size_t> axes;

    std::size_t axis(std::size_t read) const { return axes.empty() ? read : axes[read]; }
};

// The constant behind a tensor, through ops that pass it on as it is or transposed. Nothing where
// there is none that is sure to be what is read.
std::optional<Place> constant_behind(const Model& model, TensorId tensor);

// A weight of an op: a constant of floating-point numbers.
struct Weight {
    OpId op = OpId::none;
    std::size_t slot = 0;
    Place place;
    std::optional<WeightAxes> axes;  // of the constant
    std::string why;                 // it cannot be pruned; then `place` means nothing
};
// Those of the ops that `options` choose.
std::vector<Weight> weights_of(const Model& model, const PruneOptions& options);

std::uint64_t nonzero(const Constant& constant);
// With zeros where `kept` is 0.
Constant masked(const Constant& constant, const std::vector<std::uint8_t>& kept);

// Masks of elements, one for each weight; empty: it stays, for a reason that is put there.
std::vector<std::vector<std::uint8_t>> element_masks(const Graph& graph,
                                                     std::vector<Weight>& weights,
                                                     const PruneOptions& options);

// Constants that an op only gives another form (Reshape, Unsqueeze…) are stored in that form, and
// the op goes: what then loses places is the constant itself.
struct Reformed {
    std::string tensor;
    std::string root;  // the constant that the model had
    Shape shape;       // of that one; its elements have the same order
};
std::vector<Reformed> fold_forms(Model& model, Shapes& shapes);

// Removes channels; fills all of `result` but the model before.
void remove_channels(const Model& before, const PruneOptions& options, const Shapes& shapes,
                     Pruned& result);

}  // namespace trocar::pruning
