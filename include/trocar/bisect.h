#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trocar/compare.h"
#include "trocar/model.h"
#include "trocar/side.h"

#pragma GCC visibility push(default)
namespace trocar {

struct BisectOptions {
    Judging judging;
    std::function<bool(std::string_view doing, std::size_t done, std::size_t total)> progress = {};
};

// What two sides do differently, and where it begins.
struct Bisection {
    enum class Found {
        nothing,     // all layers and the whole agree
        layer,       // a layer introduces the error when it is fed the reference's values
        fused,       // only ops that are compiled together do: cuts hide it
        accumulated  // no layer does; small errors add up
    };
    Found found = Found::nothing;
    LayerComparison whole;          // the model in one piece
    Comparison layers;              // op by op
    std::vector<std::string> path;  // of bodies that were opened: "If 'x' then_branch"

    // The smallest part that shows it, with what it was given and what came of it.
    Layer culprit;
    LayerComparison difference;
    Model reference_model;
    Model other_model;  // the same, unless another model was compared
    std::vector<NamedValue> inputs;
    std::vector<NamedValue> reference;
    std::vector<NamedValue> other;
    std::vector<std::string> also;  // further layers that introduce errors of their own
    std::vector<std::string> notes;
    std::vector<std::string> sides;  // labels
    bool complete = true;
};

// `other`: the model for the second side; nullptr: the same one.
Bisection bisect(const Model& model, const Model* other, const SideOptions& reference,
                 const SideOptions& second, const std::vector<NamedValue>& inputs,
                 const BisectOptions& options);

// A folder that shows the difference without Trocar: models, inputs, both outputs, a script and a
// text. Throws Error(usage) when the folder has something in it.
void write_reproducer(const Bisection& bisection, const SideOptions& reference,
                      const SideOptions& second, const std::filesystem::path& folder);

// A model with one op, an If, becomes one with the ops of the branch that `inputs` choose. Nothing
// where it is no such model or the condition is not among them.
std::optional<Model> open_branch(const Model& model, const std::vector<NamedValue>& inputs,
                                 std::string& branch);

}  // namespace trocar
#pragma GCC visibility pop
