#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engines/torch/bridge/bridge.h"
#include "trocar/graph.h"

namespace trocar::libtorch {

// An argument of an op: what the graph says of it, and where what it does not say comes from.
struct Argument {
    std::string name;
    std::vector<std::int64_t> integers;
    std::vector<double> numbers;
    std::string text;
    // Of each element, the input it is; nothing: a number of these, or None.
    std::vector<std::optional<std::size_t>> inputs;
    bool is_text = false;
};

// Inputs are the arguments that the attribute "inputs" names; without it they are those that the
// schema (nullptr: there is none) has for tensors, and those that nothing else gives, in its order.
// Throws Error(unsupported).
std::vector<Argument> arguments_of(const Op& op, const Bridge& bridge, const BridgeOp* schema);

}  // namespace trocar::libtorch
