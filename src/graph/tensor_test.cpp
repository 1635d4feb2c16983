#include "trocar/tensor.h"

#include <gtest/gtest.h>

#include "trocar/error.h"
#include "trocar/value.h"

namespace trocar {
namespace {

TEST(DType, NamesReadBack) {
    for (int number = 1; number <= 28; ++number) {
        const auto dtype = static_cast<DType>(number);
        EXPECT_EQ(parse_dtype(name(dtype)), dtype);
    }
    EXPECT_EQ(name(static_cast<DType>(99)), "dtype 99");
    EXPECT_EQ(parse_dtype("float32"), DType::f32);
    EXPECT_EQ(parse_dtype("nothing"), std::nullopt);
}

TEST(DType, PackedTypesRoundUp) {
    EXPECT_EQ(byte_size(DType::i4, 3), 2u);
    EXPECT_EQ(byte_size(DType::u2, 5), 2u);
    EXPECT_EQ(byte_size(DType::f6e2m3, 4), 3u);
    EXPECT_EQ(byte_size(DType::c128, 2), 32u);
    EXPECT_THROW(byte_size(DType::f64, std::size_t{1} << 60), Error);
}

TEST(Shape, CountsAreChecked) {
    EXPECT_EQ(element_count(Shape{}), 1u);
    EXPECT_EQ(element_count(Shape{3, 0, 5}), 0u);
    EXPECT_THROW(element_count(Shape{-1}), Error);
    EXPECT_THROW(element_count(Shape{1LL << 40, 1LL << 40}), Error);
}

TEST(Type, Text) {
    Type type = Type::tensor(DType::f32);
    EXPECT_EQ(type_text(type), "f32");
    type.dims = {{-1, "batch"}, {3, ""}, {-1, ""}};
    EXPECT_EQ(type_text(type), "f32[batch,3,?]");
    EXPECT_EQ(type_text({Type::Kind::sequence, DType::undefined, {}, {type}}),
              "sequence(f32[batch,3,?])");
    EXPECT_EQ(type.shape(), std::nullopt);
}

TEST(Constant, SizeMustFit) {
    const std::vector<float> three{1, 2, 3};
    EXPECT_THROW(Constant::of(DType::f32, {4}, three), Error);
    EXPECT_EQ(Constant::of(DType::f32, {3}, three).stored_bytes(), 12u);
}

TEST(Constant, LazyIsDecodedOnce) {
    int calls = 0;
    const auto constant = Constant::lazy(DType::u8, {2}, [&] {
        ++calls;
        return std::vector<std::byte>(2);
    });
    const auto copy = constant;
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(constant.bytes().size(), 2u);
    EXPECT_EQ(copy.bytes().data(), constant.bytes().data());
    EXPECT_EQ(calls, 1);
}

TEST(Constant, SparseWrittenOut) {
    const auto values = Constant::of<float>(DType::f32, {2}, {5, 7});
    const auto linear = Constant::of<std::int64_t>(DType::i64, {2}, {1, 5});
    const auto pairs = Constant::of<std::int64_t>(DType::i64, {2, 2}, {0, 1, 1, 2});
    const auto i32 = Constant::of<std::int32_t>(DType::i32, {2}, {1, 5});
    const auto i16 = Constant::of<std::int16_t>(DType::i16, {2, 2}, {0, 1, 1, 2});
    const auto i8 = Constant::of<std::int8_t>(DType::i8, {2}, {1, 5});
    for (const auto& indices : {linear, pairs, i32, i16, i8}) {
        const auto value = Value::of(Constant::sparse({2, 3}, values, indices));
        const auto dense = value.as<float>();
        EXPECT_EQ(std::vector<float>(dense.begin(), dense.end()),
                  (std::vector<float>{0, 5, 0, 0, 0, 7}));
    }
    const auto outside = Constant::of<std::int64_t>(DType::i64, {2}, {1, 6});
    EXPECT_THROW(densify(Constant::sparse({2, 3}, values, outside)), Error);
    const auto negative = Constant::of<std::int8_t>(DType::i8, {2}, {1, -1});
    EXPECT_THROW(densify(Constant::sparse({2, 3}, values, negative)), Error);
    EXPECT_THROW(densify(Constant::sparse({1 << 20, 1 << 20}, values, linear), 1 << 20), Error);
    EXPECT_THROW(Constant::sparse({2, 3}, values, values), Error);
}

TEST(Value, BorrowedBytesAreNotWritten) {
    const std::vector<float> data{1, 2};
    auto borrowed = Value::borrow(DType::f32, {2}, std::as_bytes(std::span(data)), nullptr);
    EXPECT_THROW(borrowed.mutable_bytes(), Error);
    auto owned = Value::copy(DType::f32, {2}, borrowed.bytes());
    EXPECT_NO_THROW(owned.mutable_bytes());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(owned.bytes().data()) % 64, 0u);
    EXPECT_EQ(value_text(owned), "f32 2");
}

TEST(Value, ConstantsThatAreNotAlignedAreCopied) {
    const std::vector<std::byte> data(9);
    const auto at = Bytes(data).subspan(1);
    const auto value = Value::of(Constant::view(DType::f32, {2}, at, nullptr));
    EXPECT_NE(value.bytes().data(), at.data());
    EXPECT_EQ(value.as<float>()[1], 0.0F);
}

TEST(Value, TypesOfCollections) {
    const auto one = Value::tensor(DType::i64, {2});
    EXPECT_EQ(type_text(type_of(Value::sequence({one, one}))), "sequence(i64)");
    EXPECT_EQ(value_text(Value::sequence({one})), "sequence of 1");
    EXPECT_EQ(value_text(Value{}), "none");
    EXPECT_THROW(Value::sequence({}).bytes(), Error);
}

}  // namespace
}  // namespace trocar
