#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trocar/tensor.h"

namespace trocar::tensorflow {

// Unpacks a block that Snappy packed. Throws Error(input) when it is broken, or stands for more
// than `most` bytes.
std::vector<std::byte> unpack_snappy(Bytes packed, std::size_t most, const std::string& where);

}  // namespace trocar::tensorflow
