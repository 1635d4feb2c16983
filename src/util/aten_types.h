#pragma once

#include "trocar/graph.h"

namespace trocar {

// Fills in types of a graph of the dialect aten that its file does not tell, as far as ops settle
// them: element types, ranks, and sizes. What is declared stays. Inputs without an element type
// get that of the weights they meet, else f32; their metadata say so.
void infer_aten_types(Graph& graph);

// Is the element type of this input one that nothing settles, f32 for want of a better one?
bool has_assumed_type(const Tensor& tensor);

}  // namespace trocar
