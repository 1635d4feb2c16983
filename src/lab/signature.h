#pragma once

#include <span>
#include <string>

#include "trocar/parts.h"

namespace trocar::lab {

// What a part computes, as a text: ops with attributes, how they are connected, types of inputs and
// constants, and what constants that are no weights hold. Names and weights do not count.
std::string signature(const Chain& chain, const Part& part, std::span<const Value> inputs);

// An op alone, with all its attributes: "com.microsoft:FusedConv(activation='Relu';group=1)".
std::string op_text(const Op& op);

}  // namespace trocar::lab
