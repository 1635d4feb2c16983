#include <gtest/gtest.h>

#include <cstring>

#include "formats/onnx/tensor_proto.h"
#include "formats/onnx/test_models.h"

namespace trocar::onnx {
namespace {

using namespace schema;
using test::failure;

// A model whose only content is an initializer "w".
std::string with(Rope tensor) {
    return test::model(test::graph({test::message(graph::initializer, std::move(tensor))}));
}

Constant constant_of(Rope tensor) {
    const auto model = test::read(with(std::move(tensor)));
    return *model.graph.tensor(*model.graph.find_tensor("w")).constant;
}

template <class T>
std::vector<T> elements(const Constant& constant) {
    std::vector<T> values(constant.bytes().size() / sizeof(T));
    std::memcpy(values.data(), constant.bytes().data(), constant.bytes().size());
    return values;
}

Rope varints(Number number, const std::vector<std::int64_t>& values, bool packed) {
    Rope out;
    if (!packed) {
        for (const auto value : values) {
            out.integer(number, value);
        }
        return out;
    }
    // A varint is what an integer field is after its one-byte tag.
    std::string all;
    for (const auto value : values) {
        Rope one;
        one.integer(1, value);
        all += one.str().substr(1);
    }
    out.text(number, all);
    return out;
}

TEST(TensorProto, RawDataIsAView) {
    const auto owner = std::make_shared<const std::string>(
        with(test::tensor("w", DType::f32, {2}, test::raw("abcdefgh"))));
    const auto model = read_onnx(std::as_bytes(std::span(*owner)), owner, "");
    const auto bytes = model.graph.tensor(*model.graph.find_tensor("w")).constant->bytes();
    EXPECT_EQ(reinterpret_cast<const char*>(bytes.data()), owner->data() + owner->find("abcdefgh"));
}

TEST(TensorProto, IntegersArePackedOrNot) {
    for (const bool packed : {true, false}) {
        EXPECT_EQ(elements<std::int64_t>(constant_of(test::tensor(
                      "w", DType::i64, {3}, varints(tensor::int64_data, {-1, 0, 300}, packed)))),
                  (std::vector<std::int64_t>{-1, 0, 300}));
        EXPECT_EQ(elements<std::int32_t>(constant_of(test::tensor(
                      "w", DType::i32, {2}, varints(tensor::int32_data, {-7, 7}, packed)))),
                  (std::vector<std::int32_t>{-7, 7}));
        EXPECT_EQ(elements<std::uint32_t>(constant_of(test::tensor(
                      "w", DType::u32, {1}, varints(tensor::uint64_data, {4000000000}, packed)))),
                  (std::vector<std::uint32_t>{4000000000U}));
    }
}

TEST(TensorProto, SmallTypesAreHeldInInt32) {
    const auto bytes_of = [](DType dtype, const Shape& shape,
                             const std::vector<std::int64_t>& entries) {
        return elements<std::uint8_t>(constant_of(
            test::tensor("w", dtype, shape, varints(tensor::int32_data, entries, true))));
    };
    using Raw = std::vector<std::uint8_t>;
    EXPECT_EQ(bytes_of(DType::boolean, {2}, {1, 0}), (Raw{1, 0}));
    EXPECT_EQ(bytes_of(DType::i8, {2}, {-1, 2}), (Raw{255, 2}));
    EXPECT_EQ(bytes_of(DType::f16, {1}, {0x3c00}), (Raw{0x00, 0x3c}));
    EXPECT_EQ(bytes_of(DType::bf16, {1}, {0x3f80}), (Raw{0x80, 0x3f}));
    EXPECT_EQ(bytes_of(DType::f8e4m3fn, {1}, {0x38}), (Raw{0x38}));
    EXPECT_EQ(bytes_of(DType::i4, {3}, {0x21, 0x03}), (Raw{0x21, 0x03}));
    EXPECT_EQ(bytes_of(DType::u2, {5}, {0xe4, 0x01}), (Raw{0xe4, 0x01}));
    // Four 6-bit elements in three bytes, the first in the low bits; stored one per entry.
    EXPECT_EQ(bytes_of(DType::f6e2m3, {4}, {1, 2, 3, 4}), (Raw{0x81, 0x30, 0x10}));
    EXPECT_EQ(bytes_of(DType::f6e3m2, {1}, {63}), (Raw{63}));
}

TEST(TensorProto, FloatsMayBeStoredOneByOne) {
    Rope reals;
    reals.real(tensor::float_data, 1.0F);
    reals.real(tensor::float_data, 2.0F);
    EXPECT_EQ(elements<float>(constant_of(test::tensor("w", DType::f32, {2}, reals))),
              (std::vector<float>{1.0F, 2.0F}));
    EXPECT_EQ(elements<float>(constant_of(test::tensor("w", DType::c64, {1}, reals))),
              (std::vector<float>{1.0F, 2.0F}));
}

TEST(TensorProto, StringsAndUnknownTypesAreKept) {
    const auto texts = constant_of(test::tensor(
        "w", DType::string, {2},
        test::join({test::text(tensor::string_data, "a"), test::text(tensor::string_data, "")})));
    EXPECT_EQ(texts.string_values(), (std::vector<std::string>{"a", ""}));
    const auto unknown =
        constant_of(test::tensor("w", static_cast<DType>(99), {7}, test::raw("???")));
    EXPECT_EQ(name(unknown.dtype()), "dtype 99");
    EXPECT_EQ(unknown.bytes().size(), 3U);
}

TEST(TensorProto, DataOfTheWrongSizeIsRefused) {
    EXPECT_EQ(failure(with(test::tensor("w", DType::f32, {3}, test::raw("abcdefgh")))),
              "'bad.onnx' is not a valid ONNX file: at byte 6: tensor 'w': f32 3 takes 12 bytes, "
              "but 8 are there");
    EXPECT_NE(failure(with(test::tensor("w", DType::f32, {2}, {}))), "");
    EXPECT_NE(failure(with(test::tensor("w", DType::f32, {-1}, test::raw("abcd")))), "");
    EXPECT_NE(failure(with(test::tensor("w", DType::string, {2}, test::text(6, "one")))), "");
}

TEST(TensorProto, HugeShapesAllocateNothing) {
    const std::int64_t huge = std::int64_t{1} << 62;
    EXPECT_NE(failure(with(test::tensor("w", DType::f32, {huge, huge}, test::raw("abcd")))), "");
    EXPECT_NE(failure(with(test::tensor("w", DType::i64, {huge}, test::integer(7, 1)))), "");
    EXPECT_NE(failure(with(test::tensor("w", DType::i64, {1 << 30}, test::integer(7, 1)))), "");
    EXPECT_NE(failure(with(test::tensor("w", DType::string, {huge}, test::text(6, "a")))), "");
}

TEST(TensorProto, TooFewOrTooManyNumbersAreFoundWhenDecoded) {
    // Two numbers in four bytes: only counting them tells that they are not three.
    const auto few = constant_of(
        test::tensor("w", DType::i64, {3}, varints(tensor::int64_data, {300, 300}, true)));
    EXPECT_THROW(few.bytes(), Error);
    const auto many =
        constant_of(test::tensor("w", DType::i64, {1}, varints(tensor::int64_data, {1, 2}, true)));
    EXPECT_THROW(many.bytes(), Error);
}

TEST(TensorProto, SparseTensorsHaveValuesAndIndices) {
    const auto sparse_model = [](std::vector<Rope> fields) {
        return test::model(
            test::graph({test::message(graph::sparse_initializer, test::join(std::move(fields)))}));
    };
    const auto values = [] {
        return test::message(sparse::values, test::tensor("s", DType::f32, {1}, test::raw("abcd")));
    };
    const auto indices = test::message(
        sparse::indices, test::tensor("", DType::i64, {1}, test::integer(tensor::int64_data, 3)));
    const auto model = test::read(sparse_model(
        {values(), indices, test::integer(sparse::dims, 2), test::integer(sparse::dims, 2)}));
    const auto& constant = *model.graph.tensor(*model.graph.find_tensor("s")).constant;
    EXPECT_TRUE(constant.is_sparse());
    EXPECT_EQ(constant.shape(), (Shape{2, 2}));
    EXPECT_EQ(elements<std::int64_t>(constant.indices()), (std::vector<std::int64_t>{3}));
    EXPECT_NE(failure(sparse_model({values(), values(), indices})), "");
    EXPECT_NE(failure(sparse_model({indices})), "");
}

}  // namespace
}  // namespace trocar::onnx
