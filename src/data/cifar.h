#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "trocar/tensor.h"

// CIFAR's binary version: records of a label (CIFAR-100: a coarse and a fine one) and 3072 bytes,
// the red, the green and the blue plane of 32 × 32 pixels.

namespace trocar::data {

constexpr std::size_t cifar_pixels = std::size_t{3} * 32 * 32;

// One record of a file.
struct CifarRecord {
    std::int64_t label = 0;  // the fine one
    Bytes planes;
};
// All records. Throws Error(input) unless the file holds whole ones with labels that are there.
std::vector<CifarRecord> read_cifar(Bytes file, bool hundred, std::string_view where);

}  // namespace trocar::data
