#include "lab/layout.h"

#include <gtest/gtest.h>

#include <numeric>

namespace trocar {
namespace {

// 2x3x4x5 counted through, and the same in another order of axes.
Value counted(const Shape& shape) {
    std::vector<float> numbers(element_count(shape));
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    return Value::copy(DType::f32, shape, std::as_bytes(std::span(numbers)));
}

Value channels_last(const Value& value, const Shape& shape) {
    const auto from = value.shape();
    const auto numbers = value.as<float>();
    std::vector<float> made;
    for (std::int64_t n = 0; n < from[0]; ++n) {
        for (std::int64_t pixel = 0; pixel < from[2] * from[3]; ++pixel) {
            for (std::int64_t c = 0; c < from[1]; ++c) {
                made.push_back(numbers[static_cast<std::size_t>(
                    (n * from[1] + c) * from[2] * from[3] + pixel)]);
            }
        }
    }
    return Value::copy(DType::f32, shape, std::as_bytes(std::span(made)));
}

const Tolerance tight{.rtol = 1e-6, .atol = 0};
constexpr const char* nhwc = "looks like a transposed layout (NHWC): matches after perm [0,2,3,1]";

TEST(Layouts, AreSeenInTheShapeOrInTheOrderOfElements) {
    const auto a = counted({2, 3, 4, 5});
    EXPECT_EQ(lab::layout_hint(a, channels_last(a, {2, 4, 5, 3}), tight), nhwc);
    EXPECT_EQ(lab::layout_hint(a, channels_last(a, {2, 3, 4, 5}), tight), nhwc);
    EXPECT_EQ(lab::layout_hint(a, channels_last(a, {120}), tight), nhwc);
    const auto large = counted({1, 16, 33, 17});
    EXPECT_EQ(lab::layout_hint(large, channels_last(large, {1, 33, 17, 16}), tight), nhwc);
}

TEST(Layouts, ThatDoNotExplainItAreNotNamed) {
    const auto a = counted({2, 3, 4, 5});
    EXPECT_EQ(lab::layout_hint(a, counted({2, 4, 5, 3}), tight), "");
    EXPECT_EQ(lab::layout_hint(a, channels_last(a, {2, 5, 4, 3}), tight), "");
    EXPECT_EQ(lab::layout_hint(a, counted({2, 3, 4, 6}), tight), "");
    EXPECT_EQ(lab::layout_hint(a, a, tight), "");
    EXPECT_EQ(lab::layout_hint(a, Value::tensor(DType::f64, {2, 3, 4, 5}), tight), "");
    EXPECT_EQ(lab::layout_hint(counted({}), counted({}), tight), "");
    EXPECT_EQ(lab::layout_hint(a, counted({6, 20}), tight),
              "the same elements under another shape");
    const auto matrix = counted({2, 2});
    const std::vector<float> turned{1, 3, 2, 4};
    EXPECT_EQ(lab::layout_hint(
                  matrix, Value::copy(DType::f32, {2, 2}, std::as_bytes(std::span(turned))), tight),
              "looks like a transposed layout: matches after perm [1,0]");
}

}  // namespace
}  // namespace trocar
