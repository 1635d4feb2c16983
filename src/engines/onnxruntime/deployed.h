#pragma once

#include "engines/onnxruntime/program.h"

namespace trocar::ort {

// The graph that the engine makes of a model when it optimises as it does by default. Its constants
// are views of a file that is gone from its folder; the model has no path.
Model deployed_model(const Compiler& compiler, const Model& model);

}  // namespace trocar::ort
