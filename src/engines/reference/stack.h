#pragma once

#include "engines/reference/arrays.h"

namespace trocar::reference {

// Tensors of one shape as one, along a new axis. `declared`: their type, for when there are none.
Value stacked(const std::vector<Value>& items, std::int64_t axis, const Type& declared);

// Tensors as one, along an axis that they have.
Value joined(std::span<const Value> items, std::int64_t along);

}  // namespace trocar::reference
