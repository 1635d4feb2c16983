#pragma once

#include "trocar/deployed.h"

namespace trocar {

// An engine may write the graph that it made of a model in another order, and with other names, in
// every process: where it walks sets of addresses, and where it counts what it names. These two
// make order and names a function of the model and of the structure of what was made.

// Rebuilds the graph of `made`, and the bodies in it: ops as near to the model's order as their
// inputs allow, ties broken by structure; handles, uses and attributes in that order.
void order_canonically(const Model& source, Model& made);

// Renames what has a name of the engine's making: tensors after those of the model whose values
// they hold ("conv1.weight (blocked)"), ops by counting in order ("ReorderOutput 2"). Needs
// sources, tensors and layouts.
void name_canonically(const Model& source, Deployed& deployed);

}  // namespace trocar
