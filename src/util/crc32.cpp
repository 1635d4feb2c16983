#include "util/crc32.h"

#include <array>
#include <bit>
#include <cstring>

namespace trocar {

namespace {

constexpr std::size_t slice = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, slice>;

// tables[k][b]: what byte b does to the CRC when k more bytes follow it. Eight bytes are then eight
// look-ups that do not wait for one another.
constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        auto crc = byte;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
        }
        tables[0][byte] = crc;
    }
    for (std::size_t k = 1; k < slice; ++k) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const auto crc = tables[k - 1][byte];
            tables[k][byte] = crc >> 8 ^ tables[0][crc & 0xff];
        }
    }
    return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

std::uint32_t crc32(Bytes bytes, std::uint32_t before) {
    auto crc = ~before;
    const auto* at = bytes.data();
    auto left = bytes.size();
    for (; left >= slice; left -= slice, at += slice) {
        std::uint64_t word = 0;
        std::memcpy(&word, at, slice);
        word ^= crc;
        crc = 0;
        for (std::size_t i = 0; i < slice; ++i) {
            crc ^= tables[slice - 1 - i][word >> (8 * i) & 0xff];
        }
    }
    for (; left > 0; --left, ++at) {
        crc = crc >> 8 ^ tables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xff];
    }
    return ~crc;
}

}  // namespace trocar
