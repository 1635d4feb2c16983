#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "trocar/error.h"
#include "trocar/statistics.h"
#include "util/elements.h"
#include "util/number_sums.h"

namespace trocar {
namespace {

constexpr double endless = std::numeric_limits<double>::infinity();
constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

const std::vector<DType> float_types{
    DType::f32,    DType::f64,      DType::f16,        DType::bf16,       DType::c64,
    DType::c128,   DType::f8e4m3fn, DType::f8e5m2,     DType::f8e5m2fnuz, DType::f4e2m1,
    DType::f6e2m3, DType::f8e8m0,   DType::f8e4m3fnuz, DType::f6e3m2};
const std::vector<DType> integers{DType::u8,  DType::i8,  DType::u16, DType::i16,     DType::u32,
                                  DType::i32, DType::u64, DType::i64, DType::boolean, DType::u4,
                                  DType::i4,  DType::u2,  DType::i2};

std::vector<DType> all_types() {
    auto types = float_types;
    types.insert(types.end(), integers.begin(), integers.end());
    return types;
}

// Numbers stored as a type, whose rounding they then have.
struct Stored {
    DType dtype;
    std::size_t elements;
    std::vector<std::byte> bytes;

    Stored(DType type, const std::vector<double>& numbers)
        : dtype(type),
          elements(numbers.size() / number_count(type, 1)),
          bytes(byte_size(type, elements)) {
        encode(type, std::span(numbers).first(number_count(type, elements)), 0, bytes);
    }
    std::vector<double> numbers() const {
        std::vector<double> all(number_count(dtype, elements));
        decode(dtype, bytes, 0, all);
        return all;
    }
    Statistics statistics(
        StatisticsOptions::Spread spread = StatisticsOptions::Spread::sampled) const {
        return trocar::statistics(dtype, bytes, elements, {.spread = spread});
    }
    Value value() const { return Value::copy(dtype, {static_cast<std::int64_t>(elements)}, bytes); }
};

// The slow way, with nothing in common with the code under test.
struct Oracle {
    std::vector<double> finite;
    std::size_t nans = 0, positive = 0, negative = 0, zeros = 0;
    long double mean = 0, deviations = 0, absolute = 0, squares = 0;

    explicit Oracle(const std::vector<double>& numbers) {
        for (const double number : numbers) {
            nans += std::isnan(number) ? 1 : 0;
            positive += number == endless ? 1 : 0;
            negative += number == -endless ? 1 : 0;
            zeros += number == 0 ? 1 : 0;
            if (std::isfinite(number)) {
                finite.push_back(number);
            }
        }
        for (const long double number : finite) {
            mean += number / static_cast<long double>(finite.size());
            absolute += std::abs(number);
            squares += number * number;
        }
        for (const long double number : finite) {
            deviations += (number - mean) * (number - mean);
        }
        std::sort(finite.begin(), finite.end());
    }
    double quantile(double share) const {
        const auto place = std::ceil(share * static_cast<double>(finite.size()));
        return finite[static_cast<std::size_t>(std::max(place, 1.0)) - 1];
    }
};

void expect_near(double got, long double wanted, double scale, const char* what) {
    EXPECT_LE(std::abs(got - static_cast<double>(wanted)), 1e-12 * scale)
        << what << " " << got << ", wanted " << static_cast<double>(wanted);
}

void expect_agreement(const Stored& stored) {
    SCOPED_TRACE(name(stored.dtype) + " of " + std::to_string(stored.elements));
    const auto numbers = stored.numbers();
    const Oracle oracle(numbers);
    const auto found = stored.statistics(StatisticsOptions::Spread::exact);
    EXPECT_EQ(found.count, numbers.size());
    EXPECT_EQ(found.nans, oracle.nans);
    EXPECT_EQ(found.positive_infinities, oracle.positive);
    EXPECT_EQ(found.negative_infinities, oracle.negative);
    EXPECT_EQ(found.zeros, oracle.zeros);
    EXPECT_EQ(count_bad(stored.value()), found.bad());
    if (oracle.finite.empty()) {
        for (const double number : {found.min, found.max, found.max_abs, found.mean, found.std,
                                    found.rms, found.l1, found.l2, max_abs(stored.value())}) {
            EXPECT_TRUE(std::isnan(number));
        }
        EXPECT_FALSE(found.distribution);
        return;
    }
    const auto count = static_cast<long double>(oracle.finite.size());
    EXPECT_EQ(found.min, oracle.finite.front());
    EXPECT_EQ(found.max, oracle.finite.back());
    EXPECT_EQ(found.max_abs, std::max(std::abs(found.min), std::abs(found.max)));
    EXPECT_EQ(max_abs(stored.value()), found.max_abs);
    expect_near(found.mean, oracle.mean, found.max_abs, "mean");
    expect_near(found.std, std::sqrt(oracle.deviations / count), found.max_abs, "std");
    expect_near(found.rms, std::sqrt(oracle.squares / count), found.rms, "rms");
    expect_near(found.l1, oracle.absolute, found.l1, "l1");
    expect_near(found.l2, std::sqrt(oracle.squares), found.l2, "l2");
    ASSERT_TRUE(found.distribution);
    EXPECT_EQ(found.distribution->numbers, oracle.finite.size());
    EXPECT_EQ(found.distribution->p1, oracle.quantile(0.01));
    EXPECT_EQ(found.distribution->p50, oracle.quantile(0.5));
    EXPECT_EQ(found.distribution->p99, oracle.quantile(0.99));
}

std::vector<double> drawn(std::size_t count, std::uint64_t seed,
                          const std::function<double(std::mt19937_64&)>& draw) {
    std::mt19937_64 random(seed);
    std::vector<double> numbers(count);
    std::generate(numbers.begin(), numbers.end(), [&] { return draw(random); });
    return numbers;
}

double normal(std::mt19937_64& random) {
    return std::normal_distribution<double>(0, 3)(random);
}

// Of every order of magnitude, with zeros, and with what is no number in between.
double odd(std::mt19937_64& random) {
    switch (random() % 16) {
        case 0:
            return undefined;
        case 1:
            return endless;
        case 2:
            return -endless;
        case 3:
        case 4:
            return 0;
        case 5:
            return -0.0;
        default:
            return std::ldexp(normal(random), static_cast<int>(random() % 300) - 150);
    }
}

TEST(TensorStatistics, AgreeWithTheSlowWayForAllTypesAndSizes) {
    for (const auto dtype : all_types()) {
        // Around the lengths of vectors and blocks.
        for (const std::size_t count :
             {0, 1, 2, 3, 7, 8, 9, 15, 31, 64, 1000, 2047, 2048, 2049, 4099, 10'001}) {
            expect_agreement({dtype, drawn(2 * count, count, normal)});
            expect_agreement({dtype, drawn(2 * count, count, odd)});
        }
    }
}

TEST(TensorStatistics, NothingButNaN) {
    for (const auto dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3fn}) {
        expect_agreement({dtype, std::vector<double>(5000, undefined)});
    }
}

TEST(TensorStatistics, DenormalsAreThoseOfTheType) {
    for (const auto dtype : float_types) {
        const double limit = smallest_normal(dtype);
        if (dtype == DType::f8e8m0) {
            EXPECT_EQ(limit, 0);
            continue;
        }
        std::vector<double> numbers(100, limit);
        numbers[3] = limit / 2;
        numbers[97] = -limit / 2;
        numbers[50] = 0;
        const auto found = Stored(dtype, numbers).statistics();
        EXPECT_EQ(found.denormals, 2u) << name(dtype);
        EXPECT_EQ(found.zeros, 1u) << name(dtype);
        EXPECT_EQ(found.min, -limit / 2) << name(dtype);
    }
    EXPECT_EQ(Stored(DType::i32, {0, 1, 2}).statistics().denormals, 0u);
}

// Numbers with a large mean and a small spread lose all digits of the deviation when it is taken
// from sums of squares.
TEST(TensorStatistics, SmallDeviationsFromALargeMeanKeepTheirDigits) {
    const auto numbers = drawn(100'000, 1, [](std::mt19937_64& random) {
        return 1e6 + std::uniform_real_distribution<double>(-1, 1)(random);
    });
    for (const auto dtype : {DType::f32, DType::f64}) {
        const Stored stored(dtype, numbers);
        const Oracle oracle(stored.numbers());
        const auto wanted = std::sqrt(oracle.deviations / 100'000.0L);
        EXPECT_NEAR(stored.statistics().std, static_cast<double>(wanted), 1e-9) << name(dtype);
    }
    EXPECT_EQ(Stored(DType::f32, std::vector<double>(9999, 0.1)).statistics().std, 0);
}

TEST(TensorStatistics, SquaresThatFitNoDouble) {
    expect_agreement({DType::f64, {1e300, -1e300, 3e299, 0}});
    expect_agreement({DType::f64, {1e-300, 2e-300, 4e-310, 0}});
    EXPECT_EQ(Stored(DType::f64, {1e308, 1e308}).statistics().l1, endless);
}

TEST(TensorStatistics, BytesNeedNotBeAligned) {
    const Stored stored(DType::f32, drawn(3000, 5, normal));
    std::vector<std::byte> shifted(stored.bytes.size() + 1);
    std::copy(stored.bytes.begin(), stored.bytes.end(), shifted.begin() + 1);
    const auto found = statistics(DType::f32, Bytes(shifted).subspan(1), 3000);
    EXPECT_EQ(found.mean, stored.statistics().mean);
    EXPECT_EQ(found.std, stored.statistics().std);
}

TEST(TensorStatistics, LargeTensorsAreSampledForTheirSpread) {
    const Stored stored(DType::f32, drawn(1'000'000, 3, normal));
    const auto found = stored.statistics();
    ASSERT_TRUE(found.distribution);
    EXPECT_EQ(found.distribution->numbers, 1024u);
    const auto exact = stored.statistics(StatisticsOptions::Spread::exact);
    EXPECT_EQ(exact.distribution->numbers, 1'000'000u);
    EXPECT_NEAR(found.distribution->p50, exact.distribution->p50, 0.3);
    EXPECT_NEAR(found.distribution->p1, exact.distribution->p1, 1);
    EXPECT_NEAR(found.distribution->p99, exact.distribution->p99, 1);
    EXPECT_NEAR(found.distribution->entropy_bits, exact.distribution->entropy_bits, 0.2);
    EXPECT_FALSE(stored.statistics(StatisticsOptions::Spread::none).distribution);
    EXPECT_EQ(stored.statistics().distribution->p1, found.distribution->p1);
}

TEST(TensorStatistics, DoNotDependOnTheNumberOfThreads) {
    for (const auto& numbers : {drawn(300'001, 3, normal), drawn(300'001, 3, odd)}) {
        const Stored stored(DType::f32, numbers);
        const auto one = statistics(DType::f32, stored.bytes, 300'001);
        for (const int threads : {2, 3, 7}) {
            const auto more = statistics(DType::f32, stored.bytes, 300'001, {.threads = threads});
            EXPECT_EQ(more.mean, one.mean);
            EXPECT_EQ(more.std, one.std);
            EXPECT_EQ(more.l1, one.l1);
            EXPECT_EQ(more.bad(), one.bad());
            EXPECT_EQ(more.distribution->p99, one.distribution->p99);
        }
    }
}

TEST(NumberSums, AreTheSameWithAllVectors) {
    const auto doubles = drawn(4097, 9, normal);
    const std::vector<float> singles(doubles.begin(), doubles.end());
    const auto expect_same = [](const NumberSums& a, const NumberSums& b) {
        EXPECT_EQ(a.sum, b.sum);
        EXPECT_EQ(a.sum_abs, b.sum_abs);
        EXPECT_EQ(a.sum_squares, b.sum_squares);
        EXPECT_EQ(a.squared_deviations, b.squared_deviations);
    };
    expect_same(sums_of(singles, 0), sums_of(singles, 0, Vectors::portable));
    expect_same(sums_of(doubles, 0), sums_of(doubles, 0, Vectors::portable));
}

TEST(TensorStatistics, EntropyIsThatOfTheBins) {
    std::vector<double> even(2560);
    for (std::size_t i = 0; i < even.size(); ++i) {
        even[i] = static_cast<double>(i);
    }
    const auto spread =
        *Stored(DType::f32, even).statistics(StatisticsOptions::Spread::exact).distribution;
    EXPECT_NEAR(spread.entropy_bits, 8, 1e-3);
    EXPECT_EQ(spread.histogram[0], 40u);
    EXPECT_EQ(spread.histogram[63], 40u);
    EXPECT_EQ(Stored(DType::f32, {7, 7, 7}).statistics().distribution->entropy_bits, 0);
    EXPECT_EQ(Stored(DType::i8, {0, 1, 0, 1}).statistics().distribution->entropy_bits, 1);
    EXPECT_EQ(Stored(DType::f64, {-1e308, 1e308}).statistics().distribution->entropy_bits, 1);
}

TEST(TensorStatistics, OnlyNumbersHaveThem) {
    EXPECT_FALSE(has_statistics(Value::strings({1}, {"a"})));
    EXPECT_FALSE(has_statistics(Value()));
    EXPECT_THROW(statistics(Value::strings({1}, {"a"})), Error);
    EXPECT_TRUE(has_statistics(Value::tensor(DType::boolean, {0})));
}

}  // namespace
}  // namespace trocar
