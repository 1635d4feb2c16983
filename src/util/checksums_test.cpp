#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string_view>

#include "util/crc32.h"
#include "util/xxh64.h"

namespace trocar {
namespace {

Bytes bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Xxh64, KnownAnswers) {
    EXPECT_EQ(fmt::format("{:016x}", xxh64(bytes(""))), "ef46db3751d8e999");
    EXPECT_EQ(fmt::format("{:016x}", xxh64(bytes("a"))), "d24ec4f1a98c6e5b");
    EXPECT_EQ(fmt::format("{:016x}", xxh64(bytes("abc"))), "44bc2cf5ad770999");
    EXPECT_EQ(
        fmt::format("{:016x}", xxh64(bytes("Call me Ishmael. Some years ago--never mind how long "
                                           "precisely-"))),
        "02a2e85470d6fd96");
}

TEST(Crc32, KnownAnswers) {
    EXPECT_EQ(crc32(bytes("")), 0u);
    EXPECT_EQ(crc32(bytes("123456789")), 0xcbf43926u);
    EXPECT_EQ(crc32(bytes("The quick brown fox jumps over the lazy dog")), 0x414fa339u);
}

TEST(Crc32, PiecesGiveTheSameAsTheWhole) {
    const std::string_view text = "The quick brown fox jumps over the lazy dog";
    for (std::size_t at = 0; at <= text.size(); ++at) {
        EXPECT_EQ(crc32(bytes(text.substr(at)), crc32(bytes(text.substr(0, at)))), 0x414fa339u);
    }
}

}  // namespace
}  // namespace trocar
