#pragma once

#include <functional>
#include <vector>

#include "tools/summary/scope.h"
#include "trocar/value.h"

namespace trocar::summary {

// What a body's own inputs are for the first time it runs: what the op gives it, the first slices
// of what a Scan goes through. `given` tells the value of a tensor of the graph around. Empty for
// ops whose bodies are run in a way that is not known.
std::vector<Value> first_inputs(const Op& op, const Body& body,
                                const std::function<Value(TensorId)>& given);

}  // namespace trocar::summary
