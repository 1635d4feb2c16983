#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trocar/model.h"

namespace trocar::mapping {

// An op with bodies, whatever dialect wrote it.
struct ControlOp {
    enum class Kind {
        choice,    // one of two bodies
        counted,   // a body again and again, so many times or while it says so itself
        repeated,  // a body again and again, while another body says so
        called,    // its one body, once
    };
    Kind kind = Kind::choice;
    TensorId condition =
        TensorId::none;               // of a choice: which body; of a counted one: begin at all?
    TensorId count = TensorId::none;  // of a counted one: rounds at most
    std::vector<TensorId> operands;   // what goes into the bodies by their own inputs
    // The bodies. Of a choice two, that of truth first. Of a counted one one, whose inputs are the
    // number of the round and `operands`, and whose outputs are whether it goes on and `operands`
    // again. Of a repeated one two: whether it goes on, and `operands` again.
    std::vector<std::shared_ptr<Graph>> bodies;
    std::vector<bool> kept;  // of a repeated one: operands that are the same in every round
};

// The bodies that ops of a model have: its functions, by name, and graphs of their attributes.
// Whoever maps one maps a copy, so that the same body can stand in several places.
class Bodies {
public:
    explicit Bodies(const std::vector<std::shared_ptr<Function>>& functions);

    const Graph* find(const std::string& name) const;  // nullptr: there is no such function
    // A copy whose tensors and ops have `scope` in front of their names. Throws Declined when all
    // copies together have become too large, as those of functions that name each other would.
    std::shared_ptr<Graph> copy(const Graph& body, const std::string& scope);

private:
    std::unordered_map<std::string, const Graph*> functions_;
    std::size_t left_;  // ops
};

// Nothing for ops that are none, or of a form that is not known. Throws Declined where the op is
// one and its bodies are not there.
std::optional<ControlOp> control_op(const Graph& graph, OpId op, const std::string& dialect,
                                    Bodies& bodies);

// A type that a file can state: not one of tensors without an element type, nor one that only its
// ecosystem knows.
Type stated(const Type& type);

// Does a body end in an error, whatever it is given?
bool always_fails(const Graph& body, const std::string& dialect);

}  // namespace trocar::mapping
