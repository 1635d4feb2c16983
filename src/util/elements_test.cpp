#include "util/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "util/statistics.h"

namespace trocar {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double through(DType dtype, double number) {
    std::array<std::byte, 16> bytes{};
    encode(dtype, std::span(&number, 1), 0, bytes);
    double back = 0;
    decode(dtype, bytes, 0, std::span(&back, 1));
    return back;
}

std::uint32_t code(DType dtype, double number) {
    std::array<std::byte, 16> bytes{};
    encode(dtype, std::span(&number, 1), 0, bytes);
    return std::to_integer<std::uint32_t>(bytes[0]) | std::to_integer<std::uint32_t>(bytes[1]) << 8;
}

TEST(Elements, EveryCodeOfTheSmallFloatsSurvives) {
    for (const auto dtype :
         {DType::f16, DType::bf16, DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,
          DType::f8e5m2fnuz, DType::f6e2m3, DType::f6e3m2, DType::f4e2m1, DType::f8e8m0}) {
        const auto codes = std::uint32_t{1} << bits(dtype);
        for (std::uint32_t i = 0; i < codes; ++i) {
            const std::array<std::byte, 2> bytes{static_cast<std::byte>(i & 0xff),
                                                 static_cast<std::byte>(i >> 8)};
            double number = 0;
            decode(dtype, bytes, 0, std::span(&number, 1));
            if (!std::isnan(number)) {
                EXPECT_EQ(code(dtype, number), i) << name(dtype) << " " << number;
            } else {
                EXPECT_TRUE(std::isnan(through(dtype, number)));
            }
        }
    }
}

TEST(Elements, LargestNumbersAreThoseOfTheStandards) {
    EXPECT_EQ(range(DType::f16).high, 65504);
    EXPECT_EQ(range(DType::f8e4m3fn).high, 448);
    EXPECT_EQ(range(DType::f8e4m3fnuz).high, 240);
    EXPECT_EQ(range(DType::f8e5m2).high, 57344);
    EXPECT_EQ(range(DType::f8e5m2fnuz).high, 57344);
    EXPECT_EQ(range(DType::f6e2m3).high, 7.5);
    EXPECT_EQ(range(DType::f6e3m2).high, 28);
    EXPECT_EQ(range(DType::f4e2m1).high, 6);
    EXPECT_EQ(range(DType::i4).low, -8);
    EXPECT_EQ(range(DType::u2).high, 3);
}

TEST(Elements, RoundsToNearestAndTiesToEven) {
    EXPECT_EQ(through(DType::f16, 2049), 2048);
    EXPECT_EQ(through(DType::f16, 2051), 2052);
    EXPECT_EQ(through(DType::bf16, 1 + 0x1p-8), 1);
    EXPECT_EQ(through(DType::bf16, 1 + 0x1.8p-8), 1 + 0x1p-7);
    EXPECT_EQ(through(DType::f16, 0x1p-25), 0);          // half of the smallest
    EXPECT_EQ(through(DType::f16, 0x1.8p-25), 0x1p-24);  // above half of it
    EXPECT_EQ(through(DType::f16, 65519.999), 65504);
    EXPECT_EQ(through(DType::f16, 65520), infinite);
    EXPECT_EQ(through(DType::f4e2m1, 2.5), 2);
    EXPECT_EQ(through(DType::i8, 2.5), 2);
}

TEST(Elements, TooLargeSaturatesOrBecomesInfinite) {
    EXPECT_EQ(through(DType::f8e4m3fn, 1e9), 448);
    EXPECT_EQ(through(DType::f8e5m2, 1e9), infinite);
    EXPECT_EQ(through(DType::f4e2m1, -infinite), -6);
    EXPECT_EQ(through(DType::u8, 300), 255);
    EXPECT_EQ(through(DType::i64, 1e30), 9223372036854775807.0);
    EXPECT_EQ(through(DType::u64, -1), 0);
    EXPECT_EQ(through(DType::i4, 100), 7);
    EXPECT_EQ(through(DType::i32, not_a_number), 0);
    EXPECT_TRUE(std::isnan(through(DType::f8e4m3fnuz, not_a_number)));
}

TEST(Elements, PackedElementsKeepTheirNeighbours) {
    for (const auto dtype : {DType::i4, DType::u4, DType::i2, DType::u2, DType::f6e3m2}) {
        std::array<std::byte, 6> bytes{};
        const std::vector<double> numbers{1, 0, 1, 1, 0, 1, 0};
        encode(dtype, numbers, 0, bytes);
        const double one = 1;
        encode(dtype, std::span(&one, 1), 4, bytes);
        std::vector<double> back(7);
        decode(dtype, bytes, 0, back);
        EXPECT_EQ(back, (std::vector<double>{1, 0, 1, 1, 1, 1, 0})) << name(dtype);
    }
}

TEST(Elements, ComplexNumbersCountTwice) {
    EXPECT_EQ(number_count(DType::c64, 2), 4u);
}

TEST(Spread, MedianAndItsDeviation) {
    const auto odd = spread({5, 1, 3});
    EXPECT_EQ(odd.median, 3);
    EXPECT_EQ(odd.deviation, 2);
    EXPECT_EQ(odd.least, 1);
    EXPECT_EQ(odd.greatest, 5);
    EXPECT_EQ(spread({1, 2, 3, 10}).median, 2.5);
    EXPECT_EQ(spread({}).median, 0);
}

}  // namespace
}  // namespace trocar
