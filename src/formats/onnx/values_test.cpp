#include "formats/onnx/values.h"

#include <gtest/gtest.h>

#include "formats/onnx/test_models.h"

namespace trocar::onnx {
namespace {

NamedValue read_back(const std::string& bytes) {
    const auto owner = std::make_shared<const std::string>(bytes);
    return read_values(std::as_bytes(std::span(*owner)), owner, "value.pb").at(0);
}

NamedValue round(const NamedValue& value) {
    EXPECT_TRUE(holds(value.value));
    return read_back(encode_value(value));
}

Value floats(const Shape& shape, const std::vector<float>& values) {
    return Value::copy(DType::f32, shape, std::as_bytes(std::span(values)));
}

TEST(Values, TensorsOfAllTypes) {
    for (int number = 1; number <= 28; ++number) {
        const auto dtype = static_cast<DType>(number);
        if (dtype == DType::string) {
            continue;
        }
        auto value = Value::tensor(dtype, {5});
        for (auto& byte : value.mutable_bytes()) {
            byte = std::byte{0x11};
        }
        const auto again = round({"x", value});
        EXPECT_EQ(again.name, "x");
        EXPECT_EQ(again.value.dtype(), dtype);
        EXPECT_EQ(again.value.shape(), (Shape{5}));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(again.value.bytes().data()) % 64, 0U);
        EXPECT_TRUE(std::equal(value.bytes().begin(), value.bytes().end(),
                               again.value.bytes().begin(), again.value.bytes().end()));
    }
    EXPECT_EQ(round({"", Value::strings({2}, {"a", ""})}).value.string_values(),
              (std::vector<std::string>{"a", ""}));
    EXPECT_EQ(round({"", floats({0}, {})}).value.shape(), (Shape{0}));
}

TEST(Values, SequencesAndMaps) {
    const auto two = Value::sequence({floats({1}, {1}), floats({2}, {2, 3})});
    EXPECT_EQ(round({"s", two}).value.items().size(), 2U);
    EXPECT_EQ(round({"s", Value::sequence({two, two})}).value.items()[1].items()[1].shape(),
              (Shape{2}));
    EXPECT_EQ(round({"x", Value::sequence({})}).value.kind(), Value::Kind::sequence);
    const std::vector<std::int32_t> keys{-1, 5};
    const auto map = Value::map(Value::copy(DType::i32, {2}, std::as_bytes(std::span(keys))),
                                floats({2}, {1, 2}));
    const auto again = round({"m", map}).value;
    ASSERT_EQ(again.kind(), Value::Kind::map);
    EXPECT_EQ(again.items()[0].as<std::int32_t>()[0], -1);
    EXPECT_EQ(again.items()[1].shape(), (Shape{2}));
    const auto named = Value::map(Value::strings({1}, {"k"}), Value::sequence({two}));
    EXPECT_EQ(round({"", named}).value.items()[0].string_values()[0], "k");
    EXPECT_EQ(round({"n", Value()}).value.kind(), Value::Kind::none);
    EXPECT_EQ(round({"n", Value()}).name, "n");
}

TEST(Values, ANameThatCouldBeDimensionsDoesNotConfuse) {
    EXPECT_EQ(round({"\x01", Value::sequence({floats({1}, {1})})}).value.kind(),
              Value::Kind::sequence);
}

TEST(Values, BrokenFilesAreRefused) {
    for (const auto& bytes :
         {std::string("hello, world"), std::string("\x08\x02\x10\x01\x4a\x01z", 7),
          std::string("\x10\x07\x18\x01", 4), std::string("\x08", 1)}) {
        EXPECT_THROW(read_back(bytes), Error);
    }
}

TEST(Values, FilesAreWrittenAndRead) {
    const test::Folder folder;
    write_value({"x", floats({2}, {1, 2})}, folder / "x.pb");
    const auto values = read_values(folder / "x.pb");
    ASSERT_EQ(values.size(), 1U);
    EXPECT_EQ(values[0].value.as<float>()[1], 2.0F);
}

}  // namespace
}  // namespace trocar::onnx
