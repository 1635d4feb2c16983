#pragma once

#include <cstdint>

#include "trocar/model.h"

namespace trocar::quantizing {

// Raises the version of the ONNX operators that a model is written in, 7 or newer, to `to`, 21 at
// most, and rewrites the ops that are written in another way there. Does nothing where the model
// has that version already. Throws Error(unsupported) on an op whose meaning changed in between.
void raise_opset(Model& model, std::int64_t to);

}  // namespace trocar::quantizing
