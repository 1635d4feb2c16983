#pragma once

#include <functional>
#include <string>

#include "trocar/model.h"

namespace trocar::lab {

// A part of a model as the bytes of a file of the format `name`, mapped to that format's dialect
// where it has another. Where rules must know types that the part does not tell, `observe` gives it
// back with them. Throws Error(unsupported) when an op cannot be said so.
std::string encode_part(const Model& part, const std::string& name,
                        const std::function<Model(const Model&)>& observe);

}  // namespace trocar::lab
