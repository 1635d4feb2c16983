#pragma once

#include "engines/onnxruntime/values.h"

namespace trocar::ort {

// The C API has no call that makes these: they are the outputs of one-op models.

// An optional of the given type (Type::Kind::optional) that has no value.
Owned empty_optional(const Environment& environment, const Type& type);
// A sequence of tensors without items.
Owned empty_sequence(const Environment& environment, DType dtype);

}  // namespace trocar::ort
