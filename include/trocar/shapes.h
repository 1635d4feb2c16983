#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trocar/counting.h"
#include "trocar/engine.h"
#include "trocar/model.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// The shapes of a graph's tensors, by TensorId, as far as they are known.
using Shapes = std::vector<std::optional<Shape>>;

// The types of all tensors, by TensorId, in a run with these inputs, op by op. Kind unknown: no op
// reads the tensor, or it has no value of its own.
std::vector<Type> observed_types(const Model& model, const std::shared_ptr<Engine>& engine,
                                 const std::vector<NamedValue>& inputs);
Shapes shapes_of(const std::vector<Type>& types);
// As the file declares them; constants have their own.
Shapes declared_shapes(const Graph& graph);

// One op with what is known of its tensors.
OpFacts op_facts(const Model& model, OpId op, const Shapes& shapes);
// Absent: they cannot be counted.
std::optional<std::uint64_t> macs_of(const Model& model, OpId op, const Shapes& shapes);

}  // namespace trocar
#pragma GCC visibility pop
