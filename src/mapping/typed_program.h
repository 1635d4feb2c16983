#pragma once

#include <functional>
#include <memory>

#include "trocar/engine.h"

namespace trocar::mapping {

using CompileTyped = std::function<std::unique_ptr<Program>(const Model& model)>;

// A program of a model whose rules must know the types of all tensors, and whose file does not tell
// them. They come from a run: when it is run for the first time with inputs of certain types, an
// engine of the model's own dialect runs it too, and `compile` gets the model with what was seen.
std::unique_ptr<Program> typed_program(const Model& model,
                                       std::function<std::shared_ptr<Engine>()> own_engine,
                                       CompileTyped compile);

// Does a model of the dialect aten leave open what its inputs are: their rank, or an element type
// that was only assumed?
bool has_open_inputs(const Model& model);

// A program of such a model: when it is run for the first time with inputs of certain types,
// `compile` gets the model with these, and with what follows from them for the other tensors. Where
// that is not enough for the rules, `engine` runs it op by op and sees the types.
std::unique_ptr<Program> inferred_program(const Model& model,
                                          std::function<std::shared_ptr<Engine>()> engine,
                                          CompileTyped compile);

}  // namespace trocar::mapping
