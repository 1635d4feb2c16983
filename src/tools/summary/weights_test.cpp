#include "tools/summary/weights.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trocar::summary {
namespace {

Zeros scanned(const Constant& c, std::optional<WeightAxes> axes = {}, std::uint64_t code = 0,
              DType as = DType::undefined) {
    ScanJob job;
    job.constant = &c;
    job.axes = axes;
    job.zero_code = code;
    job.as = as;
    return scan(job);
}

// A weight [outputs, inputs] whose element at (o, i) is zero where `zero` says so.
template <class Zero>
Constant matrix(std::int64_t outputs, std::int64_t inputs, Zero zero) {
    std::vector<float> values;
    for (std::int64_t o = 0; o < outputs; ++o) {
        for (std::int64_t i = 0; i < inputs; ++i) {
            values.push_back(zero(o, i) ? 0.0F : 1.0F);
        }
    }
    return Constant::of(DType::f32, {outputs, inputs}, values);
}

constexpr WeightAxes rows{0, 1};     // outputs × inputs
constexpr WeightAxes columns{1, 0};  // inputs × outputs

TEST(Weights, PlusAndMinusZeroAreZeros) {
    auto c = Constant::of(DType::f32, {5}, std::vector<float>{0.0F, -0.0F, 1e-45F, NAN, 2.0F});
    EXPECT_EQ(scanned(c).zeros, 2U);
    EXPECT_EQ(scanned(c).elements, 5U);
}

TEST(Weights, EveryWidthIsCountedOverManyRuns) {
    std::size_t n = 100'003;
    std::vector<std::uint8_t> bytes(n * 8);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = i % 24 < 16 ? 0 : 7;
    }
    for (DType dtype : {DType::i8, DType::f16, DType::bf16, DType::f32, DType::f64, DType::i64}) {
        std::size_t width = bits(dtype) / 8;
        std::uint64_t expected = 0;
        for (std::size_t i = 0; i < n; ++i) {
            bool zero = true;
            for (std::size_t b = 0; b < width; ++b) {
                zero = zero && bytes[i * width + b] == 0;
            }
            expected += zero ? 1 : 0;
        }
        auto c = Constant::copy(dtype, {static_cast<std::int64_t>(n)},
                                std::as_bytes(std::span(bytes)).first(n * width));
        EXPECT_EQ(scanned(c).zeros, expected) << name(dtype);
    }
}

TEST(Weights, PackedElementsAreCountedOneByOne) {
    // 5 elements of 4 bits in 3 bytes: 0 1 0 0 0, and a lane that is none.
    auto c = Constant::of(DType::u4, {5}, std::vector<std::uint8_t>{0x10, 0x00, 0xF0});
    EXPECT_EQ(scanned(c).zeros, 4U);
    auto two = Constant::of(DType::u2, {4}, std::vector<std::uint8_t>{0b01'00'10'00});
    EXPECT_EQ(scanned(two).zeros, 2U);
    auto fp4 = Constant::of(DType::f4e2m1, {2}, std::vector<std::uint8_t>{0x80});
    EXPECT_EQ(scanned(fp4).zeros, 2U);
}

TEST(Weights, AZeroPointIsWhatZeroLooksLike) {
    auto c = Constant::of(DType::u8, {4}, std::vector<std::uint8_t>{128, 0, 128, 1});
    EXPECT_EQ(scanned(c, {}, 128).zeros, 2U);
    auto packed = Constant::of(DType::u8, {2}, std::vector<std::uint8_t>{0x88, 0x08});
    EXPECT_EQ(scanned(packed, {}, 8, DType::u4).zeros, 3U);
    EXPECT_EQ(scanned(packed, {}, 8, DType::u4).elements, 4U);
}

TEST(Weights, SparseConstantsSayThemselves) {
    auto values = Constant::of(DType::f32, {2}, std::vector<float>{1, 2});
    auto indices = Constant::of(DType::i64, {2}, std::vector<std::int64_t>{0, 7});
    Zeros z = scanned(Constant::sparse({4, 5}, values, indices));
    EXPECT_EQ(z.zeros, 18U);
    EXPECT_EQ(z.pattern, "COO");
}

TEST(Weights, FewZerosAreDense) {
    EXPECT_EQ(
        scanned(matrix(20, 20, [](auto o, auto i) { return o == 3 && i == 4; }), rows).pattern,
        "dense");
    EXPECT_EQ(scanned(matrix(4, 4, [](auto, auto) { return true; }), rows).pattern, "all zero");
}

TEST(Weights, WholeChannelsAreFoundAlongEitherAxis) {
    auto first = matrix(8, 16, [](auto o, auto) { return o == 2; });
    EXPECT_EQ(scanned(first, rows).pattern, "12.5 % of output channels");
    EXPECT_EQ(scanned(first, columns).pattern, "12.5 % of input channels");
}

TEST(Weights, TwoOfFourAlongTheSummedAxis) {
    auto two_four = [](std::int64_t o, std::int64_t i) { return (i + o) % 4 < 2; };
    EXPECT_EQ(scanned(matrix(8, 16, two_four), rows).pattern, "2:4");
    // The same weight stored the other way round.
    auto turned = matrix(16, 8, [&](auto i, auto o) { return two_four(o, i); });
    EXPECT_EQ(scanned(turned, columns).pattern, "2:4");
    EXPECT_EQ(scanned(matrix(8, 16, [](auto o, auto i) { return (i + o) % 4 != 0; }), rows).pattern,
              "1:4");
    EXPECT_EQ(scanned(matrix(8, 16, [](auto o, auto i) { return (i + o) % 2 == 0; }), rows).pattern,
              "1:2");
}

TEST(Weights, GroupsRunOverInputChannelsOfAConvolution) {
    std::vector<float> values(8 * 4 * 9);
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::size_t channel = i / 9 % 4;
        values[i] = (channel + i % 9) % 4 < 2 ? 0.0F : 1.0F;
    }
    EXPECT_EQ(scanned(Constant::of(DType::f32, {8, 4, 3, 3}, values), rows).pattern, "2:4");
}

TEST(Weights, BlocksAndNoStructure) {
    auto blocks = matrix(8, 64, [](auto o, auto i) { return (i / 16 + o) % 4 == 1; });
    EXPECT_EQ(scanned(blocks, rows).pattern, "1×16 blocks");
    auto scattered = matrix(8, 64, [](auto o, auto i) { return (i * 7 + o * 3) % 11 < 3; });
    EXPECT_EQ(scanned(scattered, rows).pattern, "unstructured");
}

TEST(Weights, ManyThreadsGiveTheSame) {
    std::vector<Constant> constants;
    for (int i = 0; i < 50; ++i) {
        constants.push_back(
            matrix(4, 10 + i, [&](auto o, auto j) { return (o + j + i) % 3 == 0; }));
    }
    std::vector<ScanJob> jobs(constants.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        jobs[i].constant = &constants[i];
    }
    auto one = scan_all(jobs, 1);
    auto many = scan_all(jobs, 4);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        EXPECT_EQ(one[i].zeros, many[i].zeros);
        EXPECT_EQ(one[i].zeros, scan(jobs[i]).zeros);
    }
}

}  // namespace
}  // namespace trocar::summary
