#pragma once

#include <array>
#include <cstdint>

#pragma GCC visibility push(default)
namespace trocar {

// Philox 4x32-10: random numbers indexed by what is drawn, so that results do not depend on
// threads, order or resumption. The same key and counter give the same four words, for ever.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high,
                                    std::uint64_t counter_low);

// Uniform in [0, 1) with 24 and 53 bits.
inline float unit_float(std::uint32_t word) {
    return static_cast<float>(word >> 8) * 0x1p-24f;
}
inline double unit_double(std::uint32_t high, std::uint32_t low) {
    return static_cast<double>((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

// A 64-bit hash of a text, for deriving keys; the same everywhere, for ever (FNV-1a, finalised).
std::uint64_t stable_hash(const char* text, std::uint64_t length);

}  // namespace trocar
#pragma GCC visibility pop
