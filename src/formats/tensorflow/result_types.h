#pragma once

#include "trocar/graph.h"

namespace trocar::tensorflow {

// The element type of a result of an op, as its attributes and what is known of its type tell it;
// undefined where they do not. Types of attributes are texts by TensorFlow's names.
DType result_type(const OpSpec& spec, std::size_t slot);

}  // namespace trocar::tensorflow
