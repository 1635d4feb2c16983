#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trocar/engine.h"
#include "trocar/model.h"
#include "trocar/quality.h"
#include "trocar/selector.h"
#include "trocar/shapes.h"
#include "trocar/tool.h"

#pragma GCC visibility push(default)
namespace trocar {

enum class PruneMethod {
    magnitude,  // the elements of smallest magnitude become 0
    random,     // elements drawn by `seed` do
    pattern,    // of every M neighbours along the axis that is summed over, the N largest stay
    channels,   // whole output channels are removed, with all that belongs to them
};
enum class ChannelRank { l1, l2, random };  // of a channel's weights

struct PruneOptions {
    PruneMethod method = PruneMethod::magnitude;
    double sparsity = 0.5;  // share of the elements or channels to go; not for patterns
    bool global = false;    // one ranking for all ops, not one for each
    std::int64_t pattern_kept = 2;
    std::int64_t pattern_of = 4;
    ChannelRank rank = ChannelRank::l1;
    std::int64_t multiple = 1;  // as many channels stay as a multiple of it says
    std::uint64_t seed = 0;
    std::optional<Selector> at;  // ops whose weights are pruned; absent: all that sum over weights
    Selector keep;               // but not these
};
// "magnitude", "random", "channels", "2:4". Throws Error(usage).
void parse_prune_method(const std::string& text, PruneOptions& options);

// What became of one weight.
struct PrunedWeight {
    OpId op = OpId::none;  // of the model before
    std::string name;      // of the op
    std::string type;
    std::string tensor;  // the constant
    Shape before;
    Shape after;
    std::uint64_t nonzero_before = 0;
    std::uint64_t nonzero_after = 0;
    std::string why;  // nothing was done; empty: something was
};

// Which elements of a constant stay: one byte for each, 0 or 1.
struct Mask {
    std::string tensor;
    Shape shape;
    std::vector<std::uint8_t> kept;
};

struct Pruned {
    Model model;
    std::vector<PrunedWeight> weights;  // in the order of the ops
    std::vector<Mask> masks;            // for the model before: what they leave is what is left
    KeptTensors kept;                   // tensors that have fewer channels now
    Shapes shapes;                      // after
    std::size_t channels_before = 0;    // groups of coupled channels that could be removed
    std::size_t channels_after = 0;
};
// The model is of any dialect with known weights; channels are removed from models of ONNX ops,
// and need `shapes`. What cannot be changed consistently is left alone, with a reason. Throws
// Error(usage) on options that make no sense, Error(unsupported) on other dialects.
Pruned prune(const Model& model, const PruneOptions& options, const Shapes& shapes);

// Masks from a file and into one (.npz or .safetensors, boolean arrays by the names of constants).
// Throw Error(input).
std::vector<Mask> load_masks(const std::filesystem::path& path);
void save_masks(const std::vector<Mask>& masks, const std::filesystem::path& path);
// The model with zeros where masks say. Throws Error(input) on a mask for something that the model
// does not have as a constant of that shape.
Pruned apply_masks(const Model& model, const std::vector<Mask>& masks);
// The same as an instrument: ops read zeros where masks say; the model is not touched.
std::unique_ptr<Tool> mask_tool(const Model& model, std::vector<Mask> masks);

// Stores constants with few elements other than 0 as those alone, where that takes less bytes.
// Returns their number. Throws Error(unsupported) where the format of the model has no such form.
struct SparseStored {
    std::size_t constants = 0;
    std::uint64_t bytes_before = 0;
    std::uint64_t bytes_after = 0;
};
SparseStored store_sparse(Model& model);

}  // namespace trocar
#pragma GCC visibility pop
