#pragma once

#include <vector>

#include "trocar/session.h"

namespace trocar {

// For each tensor of a graph the first one that has the same value for the same reason: an op of
// the same type and attributes on twins. By TensorId. Engines compute such values once.
// `plan` says what is constant; equal constants are twins.
std::vector<TensorId> find_twins(const Graph& graph, const Plan& plan);

}  // namespace trocar
