#pragma once

#include <optional>

#include "trocar/model.h"

namespace trocar {

// Where the value of a constant is kept: in its tensor, or in the attribute of the op Constant that
// writes it.
struct ConstantPlace {
    TensorId tensor = TensorId::none;
    OpId maker = OpId::none;  // of the op Constant
};

bool is_constant_op(const Model& model, const Op& op);

// Nothing where the tensor is computed, or a function's caller gives its value.
std::optional<ConstantPlace> constant_place(const Model& model, TensorId tensor);
const Constant& value_at(const Graph& graph, const ConstantPlace& place);
void set_value(Graph& graph, const ConstantPlace& place, Constant value);

}  // namespace trocar
