#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trocar/compare.h"

namespace trocar::lab {

// Adds the comparison of a value, or of each item of a sequence, under the name of the whole with
// its number. `tolerance` is asked for tensors of numbers.
void compare_value(std::vector<TensorComparison>& tensors, const std::string& name, const Value& a,
                   const Value& b, const std::function<Tolerance(const Value&)>& tolerance);

}  // namespace trocar::lab
