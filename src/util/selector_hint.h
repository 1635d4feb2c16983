#pragma once

#include <string>
#include <string_view>

#include "trocar/model.h"
#include "trocar/selector.h"

namespace trocar {

// Does the selector choose an op of the model or of a body in it?
bool selects_anything(const Graph& graph, const Selector& selector);

// What somebody may have meant by a selector that chooses nothing: the nearest types, names,
// modules and tensors of the model, and the types that there are.
std::string selector_hint(const Graph& graph, std::string_view text);

}  // namespace trocar
