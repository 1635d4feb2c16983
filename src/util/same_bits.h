#pragma once

#include <vector>

#include "trocar/value.h"

namespace trocar {

// The same kind, type, shape and bits, of what is in a sequence or a map too. False where the bits
// cannot be seen from here.
bool same_bits(const Value& a, const Value& b);
// The same names with the same bits, in the same order.
bool same_bits(const std::vector<NamedValue>& a, const std::vector<NamedValue>& b);

}  // namespace trocar
