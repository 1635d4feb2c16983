#pragma once

#include <string>

#include "trocar/counting.h"

namespace trocar::summary {

// The attributes of an op in short: "k3×3 s2 p1 g32" for what slides a window, "axis=1 keepdims=0"
// otherwise. Values that mean nothing special (stride 1, no padding, one group) are left out.
std::string attribute_text(const OpFacts& facts);

}  // namespace trocar::summary
