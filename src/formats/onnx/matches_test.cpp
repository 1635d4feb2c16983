#include "formats/onnx/matches.h"

#include <gtest/gtest.h>

#include "formats/onnx/test_models.h"

namespace trocar::onnx {
namespace {

using namespace std::string_view_literals;

bool match(std::string_view head, const char* path = "file") {
    return matches(std::as_bytes(std::span(head.data(), head.size())), path);
}

TEST(Matches, AModelIsKnownByItsFirstBytes) {
    const auto bytes = test::small_model();
    EXPECT_TRUE(match(bytes));
    EXPECT_TRUE(match(std::string_view(bytes).substr(0, 20)));
    Rope graph_first;
    graph_first.message(schema::model::graph, test::graph({test::text(2, "g")}));
    EXPECT_TRUE(match(graph_first.str()));
}

TEST(Matches, OtherFilesAreNot) {
    EXPECT_FALSE(match(test::tensor("x", DType::f32, {2}, test::raw("abcdefgh")).str(), "x.pb"));
    EXPECT_FALSE(match(test::tensor("x", DType::f32, {}, test::raw("abcd")).str(), "x.pb"));
    EXPECT_FALSE(match("\x1c\0\0\0TFL3\x14\0\x20\0"sv, "m.tflite"));
    EXPECT_FALSE(match("PK\x03\x04\x14\0\0\0\x08\0"sv, "m.onnx"));
    EXPECT_FALSE(match("Build it like so:\n  make\n", "notes.onnx"));
    EXPECT_FALSE(match("\x93NUMPY\x01\0v\0{'descr'"sv));
    EXPECT_FALSE(match(std::string(64, '\xff')));
}

TEST(Matches, AnEmptyFileGoesByItsName) {
    EXPECT_TRUE(match("", "model.onnx"));
    EXPECT_FALSE(match("", "model.bin"));
}

}  // namespace
}  // namespace trocar::onnx
