#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trocar/compare.h"

namespace trocar::lab {

// A hint as the end of a sentence; nothing where there is none.
std::string further(const std::string& hint);

// Adds the comparison of a value, or of each item of a sequence, under the name of the whole with
// its number. `tolerance` is asked for tensors of numbers.
void compare_value(std::vector<TensorComparison>& tensors, const std::string& name, const Value& a,
                   const Value& b, const std::function<Tolerance(const Value&)>& tolerance);

// Does a transposed layout explain why outputs were refused? The first hint there is.
std::string refusal_hint(std::span<const Value> reference, std::span<const Value> refused,
                         const std::function<Tolerance(std::size_t)>& tolerance);

}  // namespace trocar::lab
