#include "formats/onnx/wire.h"

#include <gtest/gtest.h>

#include "formats/onnx/rope.h"
#include "trocar/error.h"

namespace trocar::onnx {
namespace {

File file_of(std::string_view text) {
    return {"f.onnx", std::as_bytes(std::span(text.data(), text.size())), nullptr, {}, false};
}

// Walks all fields; the sentence of the error, if any.
std::string walk(std::string_view text) {
    const auto file = file_of(text);
    try {
        for (Fields at(file, file.bytes); at.next();) {
        }
    } catch (const Error& e) {
        return e.what();
    }
    return {};
}

using namespace std::string_view_literals;

TEST(Wire, ReadsWhatTheRopeWrote) {
    Rope rope;
    rope.integer(1, -1);
    rope.integer(2, 300);
    rope.real(3, 1.5F);
    rope.text(4, "text");
    const auto bytes = rope.str();
    const auto file = file_of(bytes);
    Fields at(file, file.bytes);
    ASSERT_TRUE(at.next());
    EXPECT_EQ(at.integer(), -1);
    ASSERT_TRUE(at.next());
    EXPECT_EQ(at.integer(), 300);
    ASSERT_TRUE(at.next());
    EXPECT_EQ(at.real(), 1.5F);
    ASSERT_TRUE(at.next());
    EXPECT_EQ(at.number(), 4U);
    EXPECT_EQ(at.text(), "text");
    EXPECT_FALSE(at.next());
}

TEST(Wire, AFieldPastTheEndIsRefusedWithItsPlace) {
    EXPECT_EQ(walk("\x08\x01\x12\x05hi"sv),
              "'f.onnx' is not a valid ONNX file: at byte 2: field 2 of 5 bytes runs past the end "
              "of its message, 2 remain");
    // A length near 2^64 must not wrap around.
    EXPECT_NE(walk("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01hi"sv), "");
}

TEST(Wire, BrokenNumbersAndTagsAreRefused) {
    EXPECT_NE(walk("\x08\xff"sv), "");
    EXPECT_NE(walk("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv), "");
    EXPECT_NE(walk("\x00\x01"sv), "");
    EXPECT_NE(walk("\x0e\x01"sv), "");
    EXPECT_NE(walk("\x0c"sv), "");
    EXPECT_NE(walk("\x0d\x01\x02"sv), "");
}

TEST(Wire, GroupsAreSkippedWhole) {
    const auto file = file_of("\x0b\x10\x05\x13\x14\x0c\x18\x07"sv);
    Fields at(file, file.bytes);
    ASSERT_TRUE(at.next());
    EXPECT_EQ(at.whole().size(), 6U);
    ASSERT_TRUE(at.next());
    EXPECT_EQ(at.integer(), 7);
    EXPECT_NE(walk("\x0b\x10\x05"sv), "");
    EXPECT_NE(walk("\x0b\x14"sv), "");
    EXPECT_NE(walk(std::string(1000, '\x0b')), "");
}

TEST(Wire, AWrongWireTypeIsRefused) {
    const auto file = file_of("\x08\x01"sv);
    Fields at(file, file.bytes);
    ASSERT_TRUE(at.next());
    EXPECT_THROW(at.text(), Error);
    EXPECT_THROW(at.real(), Error);
}

TEST(Rewrite, KeepsWhatIsNotMentioned) {
    const auto base =
        "\x0a\x01"
        "a"
        "\x78\x05\x12\x01"
        "b"
        "\x0a\x01"
        "c"sv;
    const auto bytes = std::as_bytes(std::span(base.data(), base.size()));
    Rewrite same(bytes);
    same.texts(1, {"a", "c"});
    same.text(2, "b");
    EXPECT_TRUE(same.finish().is(bytes));
    Rewrite more(bytes);
    more.texts(1, {"a", "x", "y"});
    EXPECT_EQ(more.finish().str(),
              "\x0a\x01"
              "a"
              "\x78\x05\x12\x01"
              "b"
              "\x0a\x01"
              "x"
              "\x0a\x01"
              "y"sv);
    Rewrite fewer(bytes);
    fewer.texts(1, {"c"});
    fewer.text(2, "");
    fewer.integer(3, 9);
    EXPECT_EQ(fewer.finish().str(),
              "\x0a\x01"
              "c"
              "\x78\x05\x18\x09"sv);
}

TEST(Rewrite, OfAFieldWrittenTwiceTheLastOneCounts) {
    const auto base =
        "\x12\x01"
        "a"
        "\x12\x01"
        "b"sv;
    const auto bytes = std::as_bytes(std::span(base.data(), base.size()));
    Rewrite same(bytes);
    same.text(2, "b");
    EXPECT_TRUE(same.finish().is(bytes));
    Rewrite other(bytes);
    other.text(2, "a");
    EXPECT_EQ(other.finish().str(),
              "\x12\x01"
              "a"sv);
}

}  // namespace
}  // namespace trocar::onnx
