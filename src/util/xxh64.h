#pragma once

#include <cstdint>

#include "trocar/tensor.h"

namespace trocar {

// XXH64 with seed 0 (github.com/Cyan4973/xxHash): tells tensors apart at the speed of memory. Not
// for bytes that somebody may want to forge.
std::uint64_t xxh64(Bytes bytes);

}  // namespace trocar
