#include "util/sha256.h"

#include <gtest/gtest.h>

#include "trocar/error.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

Bytes bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::string sha256(std::string_view text, Sha256::Using what = Sha256::Using::best) {
    Sha256 hash(what);
    hash.add(bytes_of(text));
    return hash.hex();
}

// The examples of FIPS 180-4.
TEST(Sha256, GivesThePublishedDigests) {
    EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256(std::string(1000000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheBytesComeIn) {
    std::string text;
    for (int i = 0; i < 1000; ++i) {
        text += static_cast<char>(i * 7);
    }
    for (const std::size_t length : {0, 1, 55, 56, 63, 64, 65, 119, 128, 1000}) {
        const auto whole = std::string_view(text).substr(0, length);
        for (const std::size_t piece : {1, 3, 63, 64, 65, 200}) {
            Sha256 hash;
            for (std::size_t at = 0; at < length; at += piece) {
                hash.add(bytes_of(whole.substr(at, piece)));
            }
            EXPECT_EQ(hash.hex(), sha256(whole)) << length << " in pieces of " << piece;
        }
    }
}

TEST(Sha256, IsTheSameWithoutTheInstructionsOfTheCpu) {
    for (std::size_t length = 0; length < 300; ++length) {
        const std::string text(length, static_cast<char>(length));
        EXPECT_EQ(sha256(text, Sha256::Using::portable), sha256(text));
    }
    EXPECT_EQ(sha256("abc", Sha256::Using::portable),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, ReadsFiles) {
    const TestFolder scratch;
    const auto path = scratch / "some.bin";
    write_file(path, "abc");
    EXPECT_EQ(sha256_of_file(path), sha256("abc"));
    std::filesystem::remove(path);
    EXPECT_THROW(sha256_of_file(path), Error);
    EXPECT_THROW(sha256_of_file(testing::TempDir()), Error);
}

}  // namespace
}  // namespace trocar
