#pragma once

#include "mapping/syntax.h"
#include "trocar/graph.h"

namespace trocar::mapping {

// Takes activations into the ops before them, where nobody else reads what lies between.
void fuse_activations(Graph& graph, const Fused& fused);

}  // namespace trocar::mapping
