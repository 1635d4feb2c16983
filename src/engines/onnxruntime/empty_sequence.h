#pragma once

#include "engines/onnxruntime/values.h"

namespace trocar::ort {

// A sequence of tensors without items. The C API has no call that makes one: it is the output of a
// model of one op.
Owned make_empty_sequence(const Environment& environment, DType dtype);

}  // namespace trocar::ort
