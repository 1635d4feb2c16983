#pragma once

#include <span>
#include <string>
#include <vector>

#include "trocar/model.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// The constants of a model's graph under the names of their tensors, those that an op Constant
// writes among them; sparse ones are made dense. Values borrow the model's bytes. Constants of
// subgraphs and functions are not among them.
std::vector<NamedValue> weights(const Model& model);

// Puts values in the place of the constants of their names; all others stay. Throws Error(input)
// where the model has no such constant, or one of another type or shape, and then changes nothing.
void set_weights(Model& model, std::span<const NamedValue> values);

}  // namespace trocar
#pragma GCC visibility pop
