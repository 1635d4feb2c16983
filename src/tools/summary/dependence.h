#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/summary/scope.h"

namespace trocar::summary {

// Which values, not only shapes, of tensors can have a part in any shape of the graph: by TensorId.
// The values of all others may be anything. `constants` as in Plan.
std::vector<bool> values_that_matter(const Graph& graph,
                                     std::span<const Constant* const> constants);

// A text that is equal for ops whose outputs have equal shapes and dtypes: type, attributes, shapes
// and dtypes of inputs, and the constants that steer it. Absent when shapes can depend on more than
// that.
std::optional<std::string> shape_key(const Scope& scope, OpId op,
                                     std::span<const Constant* const> constants);

}  // namespace trocar::summary
