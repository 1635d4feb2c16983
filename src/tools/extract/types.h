#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trocar/engine.h"
#include "trocar/inputs.h"
#include "trocar/model.h"

namespace trocar {

// The inputs of `part` whose element type the file does not declare.
std::vector<TensorId> untyped_inputs(const Model& part);

// Gives those inputs the types that they have in runs of `model`, on generated inputs as `spec`
// says. A dimension that differs between runs, or that a dynamic input of the model could change,
// stays open. Returns a note for the reader. Throws what making inputs and running throw.
std::string observe_types(const Model& model, Model& part, const std::vector<TensorId>& untyped,
                          const InputSpec& spec, const std::shared_ptr<Engine>& engine);

}  // namespace trocar
