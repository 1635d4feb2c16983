#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trocar/tensor.h"

namespace trocar {

// Some places of a dense tensor along one axis, in the order given. The type's elements are whole
// bytes, the axis and the places are the tensor's.
std::vector<std::byte> take_places(Bytes bytes, DType dtype, std::span<const std::int64_t> shape,
                                   std::size_t axis, std::span<const std::int64_t> places);

}  // namespace trocar
