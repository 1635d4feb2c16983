#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "trocar/fault.h"

namespace trocar {

// The bits of one stored element.
std::uint64_t load_bits(DType dtype, std::span<const std::byte> tensor, std::size_t stored);
void store_bits(DType dtype, std::span<std::byte> tensor, std::size_t stored, std::uint64_t word);

// Which bits a rate inverts among those of `count` elements: element and bit, ascending. Takes time
// in the number of these, not of elements.
std::vector<std::pair<std::uint64_t, unsigned>> rate_flips(const Effect& effect,
                                                           std::uint64_t count);

}  // namespace trocar
