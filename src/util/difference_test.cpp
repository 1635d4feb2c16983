#include "trocar/difference.h"

#include <gtest/gtest.h>

#include <bit>
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

Value float_value(const std::vector<float>& numbers) {
    return Value::copy(DType::f32, {static_cast<std::int64_t>(numbers.size())},
                       std::as_bytes(std::span(numbers)));
}

Value stored(DType dtype, const std::vector<double>& numbers) {
    auto value = Value::tensor(dtype, {static_cast<std::int64_t>(numbers.size())});
    encode(dtype, numbers, 0, value.mutable_bytes());
    return value;
}

TEST(Difference, NoneBetweenTheSame) {
    const auto a = float_value({1, -2, nan, inf, 0});
    const auto found = difference(a, a);
    EXPECT_TRUE(found.same_bits);
    EXPECT_TRUE(found.within());
    EXPECT_EQ(found.max_abs, 0);
    EXPECT_EQ(found.max_ulp, 0u);
    EXPECT_TRUE(std::isinf(found.sqnr_db));
    EXPECT_DOUBLE_EQ(found.cosine, 1);
}

TEST(Difference, WorstNumberAndItsPlace) {
    const auto found =
        difference(float_value({1, 2, 4, 8}), float_value({1, 2.5, 4, 7}), {.atol = 0.5});
    EXPECT_FALSE(found.same_bits);
    EXPECT_EQ(found.mismatches, 1u);
    EXPECT_EQ(found.worst, 3u);
    EXPECT_EQ(found.worst_a, 8);
    EXPECT_EQ(found.worst_b, 7);
    EXPECT_EQ(found.max_abs, 1);
    EXPECT_EQ(found.mean_abs, 0.375);
    EXPECT_EQ(found.max_rel, 0.25);
    EXPECT_NEAR(found.sqnr_db, 10 * std::log10(85 / 1.25), 1e-12);
    EXPECT_TRUE(difference(float_value({8}), float_value({7}), {.rtol = 0.125}).within());
}

TEST(Difference, RelativeErrorHasAFloor) {
    const auto found = difference(float_value({1000, 0}), float_value({1000, 1e-6F}));
    EXPECT_NEAR(found.max_rel, 1e-6 / (1e-3 * 1000 / std::sqrt(2)), 1e-12);
}

TEST(Difference, NaNAndInfinitiesMustBeInTheSamePlaces) {
    const auto found = difference(float_value({nan, 1, inf, -inf, nan}),
                                  float_value({nan, nan, inf, inf, 5}), {.atol = 99});
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
    const auto found = difference(float_value({0.0F}), float_value({-0.0F}));
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

TEST(Difference, IntegersBeyondDoublesAreNotTheSame) {
    constexpr std::int64_t edge = std::int64_t{1} << 53;
    const std::vector<std::int64_t> left = {edge, -edge};
    const std::vector<std::int64_t> right = {edge + 1, -edge};
    const auto found = difference(Value::copy(DType::i64, {2}, std::as_bytes(std::span(left))),
                                  Value::copy(DType::i64, {2}, std::as_bytes(std::span(right))));
    EXPECT_EQ(found.mismatches, 1u);
    EXPECT_EQ(found.max_abs, 1);
}

TEST(Difference, StepsBetweenTheEndsOfDoublesDoNotOverflow) {
    const double top = std::numeric_limits<double>::max();
    const auto found = difference(stored(DType::f64, {-top}), stored(DType::f64, {top}));
    EXPECT_EQ(found.max_ulp, 2 * std::bit_cast<std::uint64_t>(top));
    EXPECT_TRUE(std::isinf(found.max_abs));
    EXPECT_FALSE(found.within());
}

TEST(Difference, SquaresBeyondDoublesAreStillCompared) {
    const auto found = difference(stored(DType::f64, {1e300, 0}), stored(DType::f64, {1.5e300, 0}));
    EXPECT_NEAR(found.sqnr_db, 20 * std::log10(2), 1e-9);
    EXPECT_NEAR(found.rmse / 1e300, 0.5 / std::sqrt(2), 1e-12);
    EXPECT_NEAR(found.cosine, 1, 1e-12);
}

TEST(Difference, NothingIsRelativeToZeros) {
    const auto found = difference(float_value({0, 0}), float_value({0, 1}));
    EXPECT_TRUE(std::isinf(found.max_rel));
    EXPECT_TRUE(std::isinf(found.normalized_l2));
    EXPECT_TRUE(std::isnan(found.cosine));
}

TEST(Difference, DetailOfAnEmptyTensorIsAbsent) {
    const auto found = difference(float_value({}), float_value({}), DifferenceOptions{});
    EXPECT_TRUE(found.same_bits);
    EXPECT_TRUE(found.within());
    EXPECT_TRUE(std::isnan(found.p50_abs));
    EXPECT_FALSE(found.worst_channel);
    EXPECT_FALSE(found.max_ulp);
    EXPECT_TRUE(found.corners.empty());
}

TEST(Difference, RanksOfManyAreFoundInSteps) {
    // All in one bin, and more than are kept at a time.
    constexpr std::size_t count = 200'000;
    std::vector<double> left(count, 1);
    std::vector<double> right(count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto shuffled = i * 77'773 % count;
        right[i] = 1.5 + static_cast<double>(shuffled) * 0x1p-30;
    }
    const auto found =
        difference(stored(DType::f64, left), stored(DType::f64, right), DifferenceOptions{});
    EXPECT_EQ(found.p50_abs, 0.5 + (count / 2 - 1) * 0x1p-30);
    EXPECT_EQ(found.p99_abs, 0.5 + (count / 100 * 99 - 1) * 0x1p-30);
    EXPECT_EQ(found.p99_ulp, (std::uint64_t{1} << 51) + (count / 100 * 99 - 1) * (1ULL << 22));
    EXPECT_EQ(found.histogram[64], count);
    EXPECT_EQ(Difference::histogram_low(64), 0.5);
}

TEST(Difference, TheWorstChannelHasTheMostMismatches) {
    const std::vector<float> left(12, 1);
    auto right = left;
    right[1] = 9;             // channel 0, of 2x3x2
    right[8] = right[9] = 2;  // channel 1
    const auto value = [](const std::vector<float>& numbers) {
        return Value::copy(DType::f32, {2, 3, 2}, std::as_bytes(std::span(numbers)));
    };
    const auto found = difference(value(left), value(right), DifferenceOptions{});
    ASSERT_TRUE(found.worst_channel);
    EXPECT_EQ(found.worst_channel->axis, 1u);
    EXPECT_EQ(found.worst_channel->index, 1u);
    EXPECT_EQ(found.worst_channel->max_abs, 1);
    EXPECT_DOUBLE_EQ(found.worst_channel->share, 2.0 / 3);
}

TEST(Difference, CornersDecideLaterTolerances) {
    const auto found = difference(float_value({0, 1, 2, 4, 100}), float_value({0.5F, 2, 3, 6, 101}),
                                  DifferenceOptions{});
    const std::vector<Corner> corners = {{0, 0.5}, {1, 1}, {4, 2}};
    EXPECT_EQ(found.corners, corners);
    EXPECT_TRUE(holds(corners, {.rtol = 0.5, .atol = 0.5}));
    EXPECT_FALSE(holds(corners, {.rtol = 0.5, .atol = 0.49}));
    EXPECT_EQ(needed_factor(corners, {.rtol = 0.5, .atol = 0.5}), 1);
    EXPECT_EQ(needed_factor(corners, {.rtol = 0.25, .atol = 0.25}), 2);
    EXPECT_EQ(needed_factor({}, {}), 0);
    EXPECT_TRUE(std::isinf(needed_factor(corners, {.rtol = 1})));
    EXPECT_EQ(needed_atol(corners, 0.25), 1);
    EXPECT_EQ(needed_rtol(corners, 1), 0.25);
    EXPECT_TRUE(std::isinf(needed_rtol(corners, 0.25)));
}

TEST(Difference, OneUlpBeyondTheToleranceIsFound) {
    // 0.1 is above a tenth: 0.3, as three times that, is rounded down.
    const auto a = stored(DType::f64, {3});
    const auto found = difference(a, stored(DType::f64, {3 + 0.30000000000000004}),
                                  DifferenceOptions{.tolerance = {.rtol = 0.1}});
    EXPECT_EQ(found.within(), needed_factor(found.corners, {.rtol = 0.1}) <= 1);
    EXPECT_EQ(found.within(), holds(found.corners, {.rtol = 0.1}));
}

TEST(Difference, JsonSaysAll) {
    const auto found =
        difference(float_value({nan, 1, inf, -0.0F, 3}), float_value({2, 1.5F, inf, 1e-30F, 3}),
                   DifferenceOptions{.tolerance = {.atol = 0.25}});
    EXPECT_EQ(difference_from_json(to_json(found)), found);
    EXPECT_EQ(difference_from_json(to_json(Difference{})), Difference{});
    EXPECT_THROW(difference_from_json("{}"), Error);
    EXPECT_THROW(difference_from_json("[1"), Error);
    auto text = to_json(found);
    text.replace(text.find("\"count\":5"), 9, "\"count\":-1");
    EXPECT_THROW(difference_from_json(text), Error);
}

TEST(Difference, OnlyBetweenTensorsOfOneKind) {
    EXPECT_THROW(difference(float_value({1}), float_value({1, 2})), Error);
    EXPECT_THROW(difference(float_value({1}), stored(DType::i32, {1})), Error);
    EXPECT_EQ(element_index({2, 3, 4}, 23), "1,2,3");
    EXPECT_EQ(element_index({}, 0), "");
}

}  // namespace
}  // namespace trocar
