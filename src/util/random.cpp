#include "trocar/random.h"

namespace trocar {

namespace {

// The constants of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (SC11).
constexpr std::uint32_t multiplier_0 = 0xd2511f53;
constexpr std::uint32_t multiplier_1 = 0xcd9e8d57;
constexpr std::uint32_t weyl_0 = 0x9e3779b9;
constexpr std::uint32_t weyl_1 = 0xbb67ae85;
constexpr int rounds = 10;

std::uint32_t low(std::uint64_t word) {
    return static_cast<std::uint32_t>(word);
}
std::uint32_t high(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> 32);
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high,
                                    std::uint64_t counter_low) {
    std::array<std::uint32_t, 4> words{low(counter_low), high(counter_low), low(counter_high),
                                       high(counter_high)};
    std::uint32_t key_0 = low(key);
    std::uint32_t key_1 = high(key);
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t product_0 = std::uint64_t{multiplier_0} * words[0];
        const std::uint64_t product_1 = std::uint64_t{multiplier_1} * words[2];
        words = {high(product_1) ^ words[1] ^ key_0, low(product_1),
                 high(product_0) ^ words[3] ^ key_1, low(product_0)};
        key_0 += weyl_0;
        key_1 += weyl_1;
    }
    return words;
}

std::uint64_t stable_hash(const char* text, std::uint64_t length) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (std::uint64_t i = 0; i < length; ++i) {
        hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3;
    }
    // FNV-1a leaves the high bits of short texts alike; these steps spread them over the word.
    hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
    hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
    return hash ^ (hash >> 33);
}

}  // namespace trocar
