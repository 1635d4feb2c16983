#include "tools/run/outputs.h"

#include <gtest/gtest.h>

#include <limits>

#include "util/same_bits.h"

namespace trocar {
namespace {

std::vector<std::string> stems(const std::vector<std::string>& names) {
    std::vector<NamedValue> values;
    for (const auto& name : names) {
        values.push_back({name, Value()});
    }
    return file_stems(values);
}

using Names = std::vector<std::string>;

TEST(FileStems, PlainNamesStay) {
    EXPECT_EQ(stems({"logits", "x.1", "a-b"}), (Names{"logits", "x.1", "a-b"}));
}

TEST(FileStems, NothingLeavesTheFolder) {
    EXPECT_EQ(stems({"../a", "/b/c:0", ".", "..", "-rf", ""}),
              (Names{"_._a", "_b_c_0", "_", "_.", "_rf", "output"}));
}

TEST(FileStems, NoTwoAreTheSame) {
    EXPECT_EQ(stems({"a/b", "a_b", "A_B", "a:b"}), (Names{"a_b", "a_b_2", "A_B_3", "a_b_4"}));
    EXPECT_EQ(stems({"a_2", "a", "A"}), (Names{"a_2", "a", "A_3"}));
}

TEST(FileStems, LongNamesAreCut) {
    const std::string name(1000, 'n');
    const auto made = stems({name, name});
    EXPECT_EQ(made[0].size(), 200u);
    EXPECT_EQ(made[1].size(), 202u);
}

template <class T>
Value tensor(DType dtype, const std::vector<T>& elements) {
    return Value::copy(dtype, {static_cast<std::int64_t>(elements.size())},
                       std::as_bytes(std::span(elements)));
}

TEST(SameBits, ComparesWhatIsInside) {
    const auto a = tensor<float>(DType::f32, {1, 2});
    EXPECT_TRUE(same_bits(a, tensor<float>(DType::f32, {1, 2})));
    EXPECT_FALSE(same_bits(a, tensor<float>(DType::f32, {1, 3})));
    EXPECT_FALSE(same_bits(a, tensor<std::int32_t>(DType::i32, {1, 2})));
    EXPECT_FALSE(same_bits(tensor<float>(DType::f32, {0.0f}), tensor<float>(DType::f32, {-0.0f})));
    EXPECT_TRUE(same_bits(Value::sequence({a}), Value::sequence({a})));
    EXPECT_FALSE(same_bits(Value::sequence({a}), Value::sequence({})));
    EXPECT_TRUE(same_bits(Value::strings({1}, {"a"}), Value::strings({1}, {"a"})));
    EXPECT_FALSE(same_bits(Value::strings({1}, {"a"}), Value::strings({1}, {"b"})));
}

TEST(OutputTable, NumbersAreSummarised) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const auto table = output_table({{"y", tensor<float>(DType::f32, {1, nan, 4})},
                                     {"k", tensor<std::int64_t>(DType::i64, {-3, 8})},
                                     {"s", Value::strings({1}, {"a"})},
                                     {"e", Value::tensor(DType::f32, {0})}},
                                    {});
    ASSERT_EQ(table.rows.size(), 4u);
    const auto& y = table.rows[0].cells;
    EXPECT_EQ(std::get<double>(y[4].value), 4);
    EXPECT_EQ(std::get<double>(y[5].value), 2.5);
    EXPECT_EQ(std::get<std::int64_t>(y[6].value), 1);
    EXPECT_EQ(std::get<std::int64_t>(table.rows[1].cells[3].value), -3);
    EXPECT_EQ(table.rows[2].cells[3].reason, "not numbers");
    EXPECT_EQ(table.rows[3].cells[3].reason, "no finite numbers");
    for (const auto& row : table.rows) {
        EXPECT_EQ(row.cells.size(), table.columns.size());
    }
}

}  // namespace
}  // namespace trocar
