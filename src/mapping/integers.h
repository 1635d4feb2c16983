#pragma once

#include <cstddef>

#include "mapping/syntax.h"
#include "trocar/graph.h"

namespace trocar::mapping {

// Makes ops between dequantised inputs and a quantised output compute on the integers themselves,
// where they can. Returns how many do. What cannot stays as it is: real numbers between the two.
std::size_t use_integers(Graph& graph, const RuleFile& rules);

}  // namespace trocar::mapping
