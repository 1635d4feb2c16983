#include "trocar/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "inject/bits.h"
#include "inject/footprint.h"
#include "inject/geometry.h"
#include "inject/universe.h"
#include "trocar/error.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;

TEST(FaultText, ReadsBack) {
    for (const auto* line :
         {"conv1.weight [3,0,1,1] flip 30", "conv1.weight>/conv1/Conv [3,0,1,1] stuck0 0,3,23-30",
          "'odd name''s' [*] stuck1 31", "x>#12 [#17,#40] set -1.5", "x [0,2:4,::2] add 0.25",
          "x [:,1:] multiply 2", "w.values [3] flip 1", "'a b'.indices [7] flip 0",
          "x [*] random -1 1 key 99", "x [*] noise 0.1 key 3", "x [*] gain 0.1 key 3",
          "x [*] rate 1e-06 0-31 key 12", "x [0] custom mine key 4", "x [0] flip 1 transient 5",
          "x [0] flip 1 every 3 from 1", "a [0] flip 1 + b [1] set 0"}) {
        EXPECT_EQ(line, text(parse_faults(line)));
    }
    EXPECT_EQ("x [0] set 0", text(parse_faults("x [0] zero")));
    EXPECT_EQ(hash(parse_faults("x [ 0 ] flip 1")), hash(parse_faults("x [0]  flip 1")));
}

TEST(FaultText, SaysWhereItIsWrong) {
    for (const auto* line : {"", "x", "x [", "x [0", "x [0] flop 1", "x [0] flip", "x [0] flip 64",
                             "x [0] flip 3-1", "x [0] set", "x [0] flip 1 x", "x [0,#1] flip 1",
                             "'x [0] flip 1", "x [0] flip 1 +", "x [0] flip 1 every 0"}) {
        EXPECT_THROW(parse_faults(line), Error) << line;
    }
}

TEST(Elements, ArePlaces) {
    EXPECT_THAT(places(parse_faults("x [1,2] zero")[0].elements, {2, 3}), ElementsAre(5));
    EXPECT_THAT(places(parse_faults("x [:,::2] zero")[0].elements, {2, 3}),
                ElementsAre(0, 2, 3, 5));
    EXPECT_THAT(places(parse_faults("x [1] zero")[0].elements, {2, 3}), ElementsAre(3, 4, 5));
    EXPECT_THAT(places(parse_faults("x [*] zero")[0].elements, {}), ElementsAre(0));
    EXPECT_THROW(places(parse_faults("x [2] zero")[0].elements, {2, 3}), Error);
    EXPECT_THROW(places(parse_faults("x [#6] zero")[0].elements, {2, 3}), Error);
    EXPECT_THROW(places(parse_faults("x [0,0,0] zero")[0].elements, {2, 3}), Error);
}

float changed(float value, const Effect& effect) {
    std::array<std::byte, 4> bytes{};
    std::memcpy(bytes.data(), &value, 4);
    apply(effect, DType::f32, bytes, 0, 0);
    std::memcpy(&value, bytes.data(), 4);
    return value;
}

TEST(Effects, ChangeStoredBits) {
    EXPECT_EQ(-1.0F, changed(1.0F, {.mask = 1U << 31}));
    EXPECT_TRUE(std::isinf(changed(1.0F, {.mask = 1U << 30})));
    EXPECT_EQ(1.0F, changed(1.0F, {.kind = Effect::Kind::stuck0, .mask = 1U << 31}));
    EXPECT_EQ(-1.0F, changed(1.0F, {.kind = Effect::Kind::stuck1, .mask = 1U << 31}));
    EXPECT_EQ(3.5F, changed(1.0F, {.kind = Effect::Kind::add, .a = 2.5}));
    EXPECT_EQ(-2.0F, changed(1.0F, {.kind = Effect::Kind::multiply, .a = -2}));
    EXPECT_EQ(7.0F, changed(1.0F, {.kind = Effect::Kind::set, .a = 7}));
    EXPECT_THROW(changed(1.0F, {.mask = std::uint64_t{1} << 32}), Error);
}

// Elements below 8 bits: only the one that is meant changes.
TEST(Effects, KnowPackedElements) {
    for (const auto dtype : {DType::i4, DType::u4, DType::i2, DType::f6e2m3}) {
        const auto width = bits(dtype);
        std::vector<std::byte> bytes(12, std::byte{0xa5});
        for (std::size_t element = 0; element < 96 / width; ++element) {
            for (std::size_t bit = 0; bit < width; ++bit) {
                auto other = bytes;
                apply({.mask = std::uint64_t{1} << bit}, dtype, other, element, element);
                std::size_t differing = 0;
                for (std::size_t i = 0; i < bytes.size(); ++i) {
                    differing += static_cast<std::size_t>(
                        std::popcount(std::to_integer<unsigned>(bytes[i] ^ other[i])));
                }
                EXPECT_EQ(1U, differing);
                EXPECT_EQ(load_bits(dtype, bytes, element) ^ (1U << bit),
                          load_bits(dtype, other, element));
            }
        }
    }
}

TEST(Effects, RateInvertsThatShareOfBits) {
    const Effect effect{.kind = Effect::Kind::rate, .mask = 0xffffffff, .a = 1e-3, .key = 5};
    const auto flips = rate_flips(effect, 100000);
    EXPECT_NEAR(3200, static_cast<double>(flips.size()), 5 * std::sqrt(3200.0));
    for (std::size_t i = 1; i < flips.size(); ++i) {
        EXPECT_LT(flips[i - 1], flips[i]);
    }
    EXPECT_EQ(flips, rate_flips(effect, 100000));
    EXPECT_EQ(96U, rate_flips({.kind = Effect::Kind::rate, .mask = 0xffffffff, .a = 1}, 3).size());
    EXPECT_TRUE(rate_flips({.kind = Effect::Kind::rate, .mask = 0xff, .a = 0}, 3).empty());
}

TEST(Bits, HaveNames) {
    EXPECT_EQ(0x80000000U, parse_bits("sign", DType::f32));
    EXPECT_EQ(0x7f800000U, parse_bits("exponent", DType::f32));
    EXPECT_EQ(0x007fffffU, parse_bits("mantissa", DType::f32));
    EXPECT_EQ(0x7c00U, parse_bits("exponent", DType::f16));
    EXPECT_EQ(0x80U, parse_bits("sign", DType::i8));
    EXPECT_EQ(0xfU, parse_bits("all", DType::i4));
    EXPECT_EQ("0,3,23-30", bits_text(parse_bits("0,3,23-30", DType::f32)));
    EXPECT_THROW(parse_bits("exponent", DType::i8), Error);
    EXPECT_THROW(parse_bits("8", DType::i8), Error);
}

TEST(Permutation, HasEachNumberOnce) {
    for (const std::uint64_t count : {1, 2, 3, 5, 64, 1000}) {
        std::vector<bool> seen(count);
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto to = inject::permuted(i, count, 42);
            ASSERT_LT(to, count);
            EXPECT_FALSE(seen[to]);
            seen[to] = true;
        }
    }
}

// Against a direct look at every window.
TEST(Footprint, ReachesEveryOutputThatSeesAChange) {
    for (const std::int64_t stride : {1, 2}) {
        for (const std::int64_t dilation : {1, 2}) {
            for (const std::int64_t pad : {0, 1, 2}) {
                inject::Footprint f;
                f.kind = inject::Footprint::Kind::window;
                f.kernel_height = 3;
                f.kernel_width = 2;
                f.stride_height = f.stride_width = stride;
                f.dilation_height = f.dilation_width = dilation;
                f.pad_top = f.pad_left = pad;
                const auto in = inject::geometry(DType::f32, {2, 3, 9, 8}, {}, true);
                const auto rows = (9 + 2 * pad - 2 * dilation - 1) / stride + 1;
                const auto columns = (8 + 2 * pad - dilation - 1) / stride + 1;
                const auto out = inject::geometry(DType::f32, {2, 5, rows, columns}, {}, true);
                for (std::int32_t dirty = 0; dirty < in.positions(); ++dirty) {
                    std::vector<std::int32_t> expected;
                    for (std::int32_t o = 0; o < out.positions(); ++o) {
                        const bool sees = o / out.inner() == dirty / in.inner();
                        bool hit = false;
                        for (int ky = 0; ky < 3; ++ky) {
                            for (int kx = 0; kx < 2; ++kx) {
                                const auto y =
                                    o % out.inner() / columns * stride - pad + ky * dilation;
                                const auto x = o % columns * stride - pad + kx * dilation;
                                hit = hit || (y == dirty % in.inner() / 8 && x == dirty % 8);
                            }
                        }
                        if (sees && hit) {
                            expected.push_back(o);
                        }
                    }
                    const auto found = inject::reached(f, in, out, {dirty});
                    // Between the taps of a dilated window it may say too much, never too little.
                    ASSERT_TRUE(std::includes(found.begin(), found.end(), expected.begin(),
                                              expected.end()));
                    ASSERT_TRUE(dilation > 1 || found == expected);
                }
            }
        }
    }
}

}  // namespace
}  // namespace trocar
