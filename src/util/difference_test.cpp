#include "trocar/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "trocar/error.h"
#include "util/elements.h"

namespace trocar {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Value floats(const std::vector<float>& numbers) {
    return Value::copy(DType::f32, {static_cast<std::int64_t>(numbers.size())},
                       std::as_bytes(std::span(numbers)));
}

Value stored(DType dtype, const std::vector<double>& numbers) {
    auto value = Value::tensor(dtype, {static_cast<std::int64_t>(numbers.size())});
    encode(dtype, numbers, 0, value.mutable_bytes());
    return value;
}

TEST(Difference, NoneBetweenTheSame) {
    const auto a = floats({1, -2, nan, inf, 0});
    const auto found = difference(a, a);
    EXPECT_TRUE(found.same_bits);
    EXPECT_TRUE(found.within());
    EXPECT_EQ(found.max_abs, 0);
    EXPECT_EQ(found.max_ulp, 0u);
    EXPECT_TRUE(std::isinf(found.sqnr_db));
    EXPECT_DOUBLE_EQ(found.cosine, 1);
}

TEST(Difference, WorstNumberAndItsPlace) {
    const auto found = difference(floats({1, 2, 4, 8}), floats({1, 2.5, 4, 7}), {.atol = 0.5});
    EXPECT_FALSE(found.same_bits);
    EXPECT_EQ(found.mismatches, 1u);
    EXPECT_EQ(found.worst, 3u);
    EXPECT_EQ(found.worst_a, 8);
    EXPECT_EQ(found.worst_b, 7);
    EXPECT_EQ(found.max_abs, 1);
    EXPECT_EQ(found.mean_abs, 0.375);
    EXPECT_EQ(found.max_rel, 0.25);
    EXPECT_NEAR(found.sqnr_db, 10 * std::log10(85 / 1.25), 1e-12);
    EXPECT_TRUE(difference(floats({8}), floats({7}), {.rtol = 0.125}).within());
}

TEST(Difference, RelativeErrorHasAFloor) {
    const auto found = difference(floats({1000, 0}), floats({1000, 1e-6F}));
    EXPECT_NEAR(found.max_rel, 1e-6 / (1e-3 * 1000 / std::sqrt(2)), 1e-12);
}

TEST(Difference, NaNAndInfinitiesMustBeInTheSamePlaces) {
    const auto found =
        difference(floats({nan, 1, inf, -inf, nan}), floats({nan, nan, inf, inf, 5}), {.atol = 99});
    EXPECT_EQ(found.nan_mismatches, 2u);
    EXPECT_EQ(found.infinity_mismatches, 1u);
    EXPECT_EQ(found.mismatches, 3u);
    EXPECT_EQ(found.worst, 1u);
}

TEST(Difference, UlpsCountStepsOfTheType) {
    const auto ulp = [](DType dtype, double a, double b) {
        return difference(stored(dtype, {a}), stored(dtype, {b})).max_ulp;
    };
    EXPECT_EQ(ulp(DType::f32, 1, 1 + 0x1p-23), 1u);
    EXPECT_EQ(ulp(DType::f32, -0x1p-149, 0x1p-149), 2u);
    EXPECT_EQ(ulp(DType::f64, 2, 2 + 0x1p-51), 1u);
    EXPECT_EQ(ulp(DType::f16, 1, 1 + 0x1p-9), 2u);
    EXPECT_EQ(ulp(DType::bf16, 1, 2), 128u);
    EXPECT_EQ(ulp(DType::f8e4m3fn, 1, 2), 8u);
    EXPECT_EQ(ulp(DType::i32, 1, 2), std::nullopt);
}

TEST(Difference, MinusZeroIsZero) {
    const auto found = difference(floats({0.0F}), floats({-0.0F}));
    EXPECT_FALSE(found.same_bits);
    EXPECT_TRUE(found.within());
}

TEST(Difference, AgreesWithTheSlowWayOnAllTypes) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    for (const auto dtype : {DType::f32, DType::f16, DType::bf16, DType::i8, DType::u16, DType::i64,
                             DType::f8e5m2, DType::boolean, DType::i4}) {
        std::vector<double> left(5001);
        std::vector<double> right(5001);
        for (std::size_t i = 0; i < left.size(); ++i) {
            left[i] = 4 * normal(random);
            right[i] = left[i] + normal(random);
        }
        const auto a = stored(dtype, left);
        const auto b = stored(dtype, right);
        decode(dtype, a.bytes(), 0, left);
        decode(dtype, b.bytes(), 0, right);
        const auto found = difference(a, b, {.rtol = 0.1, .atol = 0.2});
        std::size_t mismatches = 0;
        double worst = 0;
        for (std::size_t i = 0; i < left.size(); ++i) {
            const double off = std::abs(right[i] - left[i]);
            mismatches += off > 0.2 + 0.1 * std::abs(left[i]) ? 1 : 0;
            worst = std::max(worst, off);
        }
        EXPECT_EQ(found.mismatches, mismatches) << name(dtype);
        EXPECT_EQ(found.max_abs, worst) << name(dtype);
    }
}

TEST(Difference, OnlyBetweenTensorsOfOneKind) {
    EXPECT_THROW(difference(floats({1}), floats({1, 2})), Error);
    EXPECT_THROW(difference(floats({1}), stored(DType::i32, {1})), Error);
    EXPECT_EQ(element_index({2, 3, 4}, 23), "1,2,3");
    EXPECT_EQ(element_index({}, 0), "");
}

}  // namespace
}  // namespace trocar
