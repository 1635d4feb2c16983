#pragma once

#include <cstdint>

#include "trocar/tensor.h"

namespace trocar {

// The CRC-32 of ZIP archives, of bytes that follow those whose CRC is `before`.
std::uint32_t crc32(Bytes bytes, std::uint32_t before = 0);

}  // namespace trocar
