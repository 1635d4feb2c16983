#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/graph.h"

// What ops of the dialect aten make of types: a part of aten_types.cpp.
namespace trocar::aten {

using Dims = std::optional<std::vector<Dim>>;

// What an op is asked about while its outputs get types.
struct Look {
    Graph& graph;
    const Op& op;

    bool has(std::size_t slot) const {
        return slot < op.inputs.size() && op.inputs[slot] != TensorId::none;
    }
    Type type(std::size_t slot) const {
        return has(slot) ? graph.tensor(op.inputs[slot]).type : Type();
    }
    DType dtype(std::size_t slot) const { return type(slot).dtype; }
    Dims dims(std::size_t slot) const { return type(slot).dims; }
    // The input that stands for an argument; nothing where it is none.
    std::optional<std::size_t> slot(std::string_view argument) const {
        const auto* names = op.attribute("inputs");
        const auto* all =
            names == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&names->value);
        for (std::size_t i = 0; all != nullptr && i < all->size(); ++i) {
            if ((*all)[i] == argument) {
                return i;
            }
        }
        return std::nullopt;
    }
    std::int64_t axis(std::int64_t otherwise, std::size_t rank) const {
        const auto at = op.integer("dim", otherwise);
        return at < 0 ? at + static_cast<std::int64_t>(rank) : at;
    }
};

using Types = std::vector<Type>;
using TypeRule = Types (*)(const Look&);

// Types of the outputs of an op of this name, without the mark of ops in place; nullptr: not known.
TypeRule type_rule(std::string_view name);
// Has its output the element type of its first input?
bool keeps_element_type(std::string_view name);

Type tensor(DType dtype, Dims dims);
// torch's promotion of element types: a tensor without dimensions gives way within its kind.
DType promoted(DType a, bool a_scalar, DType b, bool b_scalar);
Dims unknown_dims(std::size_t rank);

// --- aten_shapes.cpp: ops that move elements.
Types viewed(const Look& look);
Types expanded(const Look& look);
Types flattened(const Look& look);
Types permuted(const Look& look);
Types swapped(const Look& look);
Types unsqueezed(const Look& look);
Types squeezed(const Look& look);
Types joined(const Look& look);
Types parts(const Look& look);
Types sliced(const Look& look);
Types selected(const Look& look);
Types picked(const Look& look);
Types gathered(const Look& look);
Types padded(const Look& look);
Types resized(const Look& look);
Dims stated(const Op& op, const char* name);

}  // namespace trocar::aten
