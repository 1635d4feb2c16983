#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trocar/graph.h"

namespace trocar::mapping {

// An op with bodies, whatever dialect wrote it.
struct ControlOp {
    enum class Kind { choice, loop };
    Kind kind = Kind::choice;
    TensorId condition = TensorId::none;  // of a choice: which body; of a loop: begin at all?
    TensorId count = TensorId::none;      // of a loop: rounds at most
    std::vector<TensorId> operands;       // what goes into the bodies by their own inputs
    // The bodies: of a choice two, that of truth first; of a loop one, whose inputs are the number
    // of the round and `operands`, and whose outputs are whether it goes on and `operands` again.
    std::vector<std::shared_ptr<Graph>> bodies;
};

// Nothing for ops that are none, or of a form that is not known.
std::optional<ControlOp> control_op(const Graph& graph, const Op& op, const std::string& dialect);

// A type that a file can state: not one of tensors without an element type.
Type stated(const Type& type);

// Ops of instruments, and those that say where ExecuTorch goes on: they matter though nobody reads
// what they make.
bool has_effects(const Op& op);

// Does a body end in an error, whatever it is given?
bool always_fails(const Graph& body, const std::string& dialect);

}  // namespace trocar::mapping
