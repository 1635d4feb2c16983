#pragma once

#include <string>

#include "trocar/tensor.h"
#include "util/wire.h"

namespace trocar::tensorflow {

using wire::Fields;
using wire::File;

// TensorFlow's number of an element type; references (over 100) are those they refer to. Types
// that DType has no name for get numbers from 1000 on.
DType dtype_of(std::int64_t number);
// "float32", "resource": TensorFlow's own name; the number for one without a name.
std::string dtype_name(std::int64_t number);

// The dimensions of a shape message, -1 where one is not known; absent: not even the rank is.
std::optional<std::vector<Dim>> read_shape(const File& file, Bytes message);

// A tensor message. Elements that the file holds as raw bytes are views of it; a message with one
// value for many elements is decoded when it is needed.
Constant read_tensor(const std::shared_ptr<const File>& file, Bytes message);

}  // namespace trocar::tensorflow
