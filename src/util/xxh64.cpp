#include "util/xxh64.h"

#include <array>
#include <bit>
#include <cstring>

namespace trocar {

namespace {

constexpr std::uint64_t prime1 = 0x9e3779b185ebca87;
constexpr std::uint64_t prime2 = 0xc2b2ae3d27d4eb4f;
constexpr std::uint64_t prime3 = 0x165667b19e3779f9;
constexpr std::uint64_t prime4 = 0x85ebca77c2b2ae63;
constexpr std::uint64_t prime5 = 0x27d4eb2f165667c5;

template <class T>
T read(const std::byte* at) {
    T number;
    std::memcpy(&number, at, sizeof(T));
    return number;
}

std::uint64_t mix(std::uint64_t lane, std::uint64_t word) {
    return std::rotl(lane + word * prime2, 31) * prime1;
}

// Four lanes that do not wait for one another.
std::uint64_t mix_stripes(const std::byte*& at, std::size_t stripes) {
    std::array<std::uint64_t, 4> lanes{prime1 + prime2, prime2, 0, 0 - prime1};
    for (; stripes > 0; --stripes) {
        for (auto& lane : lanes) {
            lane = mix(lane, read<std::uint64_t>(at));
            at += 8;
        }
    }
    auto hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
                std::rotl(lanes[3], 18);
    for (const auto lane : lanes) {
        hash = (hash ^ mix(0, lane)) * prime1 + prime4;
    }
    return hash;
}

}  // namespace

std::uint64_t xxh64(Bytes bytes) {
    const auto* at = bytes.data();
    auto left = bytes.size();
    auto hash = prime5;
    if (left >= 32) {
        hash = mix_stripes(at, left / 32);
        left %= 32;
    }
    hash += bytes.size();
    for (; left >= 8; left -= 8, at += 8) {
        hash = std::rotl(hash ^ mix(0, read<std::uint64_t>(at)), 27) * prime1 + prime4;
    }
    if (left >= 4) {
        hash = std::rotl(hash ^ read<std::uint32_t>(at) * prime1, 23) * prime2 + prime3;
        at += 4;
        left -= 4;
    }
    for (; left > 0; --left, ++at) {
        hash = std::rotl(hash ^ std::to_integer<std::uint64_t>(*at) * prime5, 11) * prime1;
    }
    hash = (hash ^ hash >> 33) * prime2;
    hash = (hash ^ hash >> 29) * prime3;
    return hash ^ hash >> 32;
}

}  // namespace trocar
