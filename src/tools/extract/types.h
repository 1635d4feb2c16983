#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trocar/engine.h"
#include "trocar/inputs.h"
#include "trocar/model.h"

namespace trocar {

// The inputs and outputs of `part` whose element type the file does not declare, inputs first.
std::vector<TensorId> untyped(const Model& part);

// Gives those tensors the types that they have in two runs of `model`, with 1 and with 2 for sizes
// that neither it nor `spec` says. A dimension that differs between them stays open; all do where a
// second run is not possible, or `spec` fixes sizes. Returns a note for the reader. Throws what
// making inputs and running throw.
std::string complete_types(const Model& model, Model& part, const std::vector<TensorId>& tensors,
                           const InputSpec& spec, const std::shared_ptr<Engine>& engine);

}  // namespace trocar
