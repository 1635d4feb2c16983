#pragma once

#include "engines/reference/arrays.h"

namespace trocar::reference {

struct CastRules {
    bool saturate = true;           // small floats: what is too large becomes the largest number
    std::string round_mode = "up";  // to f8e8m0: up, down or nearest
};

Value cast(const Value& value, DType to, const CastRules& rules = {});

// Numbers as elements of a small float type, rounded to nearest. For other types: as write().
Value write_small(DType dtype, const Shape& shape, Numbers numbers, const CastRules& rules);

}  // namespace trocar::reference
