#include "util/number_sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace trocar {

namespace {

// Vectors by the compilers' own extension: what the CPU has no registers for is taken apart, so
// that the code below serves all CPUs and gives the same bits on all.
constexpr std::size_t vector_bytes = 32;
template <class T>
struct Vector {
    typedef T Of __attribute__((vector_size(vector_bytes)));
};
using Doubles = Vector<double>::Of;
using DoubleBits = Vector<std::int64_t>::Of;
constexpr std::size_t double_lanes = vector_bytes / sizeof(double);

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
template <class T>
constexpr BitsOf<T> magnitude_mask = std::numeric_limits<BitsOf<T>>::max();

// Inlined into a function per instruction set, which decides what it is compiled to.
#define TROCAR_KERNEL __attribute__((always_inline)) inline

template <class V>
TROCAR_KERNEL void load(const void* at, V& vector) {
    std::memcpy(&vector, at, sizeof(V));
}

// By reference: vectors as results have no fixed place while a CPU without them is compiled for.
TROCAR_KERNEL void widen(const float* at, Doubles& numbers) {
    // Written out: g++ 12 then finds the one instruction for it, unlike by __builtin_convertvector.
    numbers = Doubles{at[0], at[1], at[2], at[3]};
}
TROCAR_KERNEL void widen(const double* at, Doubles& numbers) {
    load(at, numbers);
}

TROCAR_KERNEL double total(const Doubles& lanes) {
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

// Sums of four numbers each, side by side: chains of additions that do not wait for one another.
struct WideSums {
    Doubles sum{};
    Doubles absolute{};
    Doubles squares{};

    TROCAR_KERNEL void add(const Doubles& numbers) {
        sum += numbers;
        absolute += reinterpret_cast<Doubles>(reinterpret_cast<DoubleBits>(numbers) &
                                              magnitude_mask<double>);
        squares += numbers * numbers;
    }
};

template <class T>
struct Extremes {
    using V = typename Vector<T>::Of;
    using B = typename Vector<BitsOf<T>>::Of;
    V low = V{} + std::numeric_limits<T>::infinity();
    V high = V{} - std::numeric_limits<T>::infinity();
    B zeros{};
    B tiny{};  // zeros and denormals

    TROCAR_KERNEL void add(const T* at, BitsOf<T> normal_bits) {
        V numbers;
        B magnitudes;
        load(at, numbers);
        load(at, magnitudes);
        magnitudes &= magnitude_mask<T>;
        low = numbers < low ? numbers : low;
        high = numbers > high ? numbers : high;
        zeros -= magnitudes == 0;  // a true lane is -1
        tiny -= magnitudes < normal_bits;
    }
};

template <class T>
TROCAR_KERNEL void add_one(NumberSums& sums, T number, T smallest_normal) {
    const double wide = number;
    sums.min = std::min(sums.min, wide);
    sums.max = std::max(sums.max, wide);
    sums.zeros += number == 0 ? 1 : 0;
    sums.denormals += number != 0 && std::abs(number) < smallest_normal ? 1 : 0;
    sums.sum += wide;
    sums.sum_abs += std::abs(wide);
    sums.sum_squares += wide * wide;
}

template <class T>
TROCAR_KERNEL NumberSums pass(const T* at, std::size_t count, T smallest_normal) {
    constexpr std::size_t lanes = vector_bytes / sizeof(T);
    constexpr std::size_t step = 2 * double_lanes;
    const auto normal_bits = std::bit_cast<BitsOf<T>>(smallest_normal);
    Extremes<T> extremes;
    WideSums first;
    WideSums second;
    std::size_t done = 0;
    for (; done + step <= count; done += step) {
        for (std::size_t i = 0; i < step; i += lanes) {
            extremes.add(at + done + i, normal_bits);
        }
        Doubles numbers;
        widen(at + done, numbers);
        first.add(numbers);
        widen(at + done + double_lanes, numbers);
        second.add(numbers);
    }
    NumberSums sums;
    sums.count = count;
    sums.sum = total(first.sum + second.sum);
    sums.sum_abs = total(first.absolute + second.absolute);
    sums.sum_squares = total(first.squares + second.squares);
    for (std::size_t i = 0; i < lanes; ++i) {
        sums.min = std::min<double>(sums.min, extremes.low[i]);
        sums.max = std::max<double>(sums.max, extremes.high[i]);
        sums.zeros += static_cast<std::size_t>(extremes.zeros[i]);
        sums.denormals += static_cast<std::size_t>(extremes.tiny[i] - extremes.zeros[i]);
    }
    for (; done < count; ++done) {
        add_one(sums, at[done], smallest_normal);
    }
    // Neither goes away in a sum. Doubles may also be too large to be added: then the long way.
    sums.finite = std::isfinite(sums.sum_abs);
    return sums;
}

template <class T>
TROCAR_KERNEL double deviations(const T* at, std::size_t count, double centre) {
    WideSums sums;
    std::size_t done = 0;
    for (; done + double_lanes <= count; done += double_lanes) {
        Doubles numbers;
        widen(at + done, numbers);
        sums.add(numbers - centre);
    }
    double sum = total(sums.sum);
    double squares = total(sums.squares);
    for (; done < count; ++done) {
        const double off = static_cast<double>(at[done]) - centre;
        sum += off;
        squares += off * off;
    }
    return std::max(0.0, squares - sum * sum / static_cast<double>(count));
}

template <class T>
TROCAR_KERNEL T magnitude_pass(const T* at, std::size_t count) {
    using B = typename Vector<BitsOf<T>>::Of;
    constexpr std::size_t lanes = vector_bytes / sizeof(T);
    std::array<B, 4> tops{};
    std::size_t done = 0;
    for (; done + tops.size() * lanes <= count; done += tops.size() * lanes) {
        for (std::size_t i = 0; i < tops.size(); ++i) {
            B magnitudes;
            load(at + done + i * lanes, magnitudes);
            magnitudes &= magnitude_mask<T>;
            tops[i] = magnitudes > tops[i] ? magnitudes : tops[i];
        }
    }
    BitsOf<T> top = 0;
    for (const auto& vector : tops) {
        for (std::size_t i = 0; i < lanes; ++i) {
            top = std::max<BitsOf<T>>(top, vector[i]);
        }
    }
    for (; done < count; ++done) {
        top = std::max(top, std::bit_cast<BitsOf<T>>(at[done]) & magnitude_mask<T>);
    }
    return std::bit_cast<T>(top);
}

#undef TROCAR_KERNEL

#if defined(__x86_64__)
#define TROCAR_TARGET(set) __attribute__((target(set)))
bool has_wide() {
    static const bool has =
        __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    return has;
}
#else
#define TROCAR_TARGET(set)
bool has_wide() {
    return false;
}
#endif

// Squares of floats are exact as doubles: multiplied and added in one step they give the same bits
// as in two. For all else a fused step, which rounds once and not twice, must be kept away.
TROCAR_TARGET("avx2,fma")
NumberSums wide_pass(const float* at, std::size_t count, float smallest_normal) {
    return pass(at, count, smallest_normal);
}
TROCAR_TARGET("avx2")
NumberSums wide_pass(const double* at, std::size_t count, double smallest_normal) {
    return pass(at, count, smallest_normal);
}
template <class T>
NumberSums plain_pass(const T* at, std::size_t count, T smallest_normal) {
    return pass(at, count, smallest_normal);
}
template <class T>
TROCAR_TARGET("avx2")
double wide_deviations(const T* at, std::size_t count, double centre) {
    return deviations(at, count, centre);
}
template <class T>
double plain_deviations(const T* at, std::size_t count, double centre) {
    return deviations(at, count, centre);
}
template <class T>
TROCAR_TARGET("avx2")
T wide_magnitude(const T* at, std::size_t count) {
    return magnitude_pass(at, count);
}
template <class T>
T plain_magnitude(const T* at, std::size_t count) {
    return magnitude_pass(at, count);
}

template <class T>
NumberSums sums(std::span<const T> numbers, T smallest_normal, Vectors vectors) {
    const bool wide = vectors == Vectors::best && has_wide();
    const auto count = numbers.size();
    auto sums = wide ? wide_pass(numbers.data(), count, smallest_normal)
                     : plain_pass(numbers.data(), count, smallest_normal);
    if (!sums.finite || sums.min == sums.max || count == 0) {
        return sums;
    }
    const double mean = sums.sum / static_cast<double>(count);
    sums.squared_deviations = sums.sum_squares - sums.sum * mean;
    // What is left of a difference of nearly equal sums has few digits: then from the mean.
    constexpr double few_digits = 1e-4;
    if (sums.squared_deviations < few_digits * sums.sum_squares) {
        sums.squared_deviations = wide ? wide_deviations(numbers.data(), count, mean)
                                       : plain_deviations(numbers.data(), count, mean);
    }
    return sums;
}

template <class T>
T magnitude(std::span<const T> numbers) {
    return has_wide() ? wide_magnitude(numbers.data(), numbers.size())
                      : plain_magnitude(numbers.data(), numbers.size());
}

}  // namespace

NumberSums sums_of(std::span<const float> numbers, float smallest_normal, Vectors vectors) {
    return sums(numbers, smallest_normal, vectors);
}

NumberSums sums_of(std::span<const double> numbers, double smallest_normal, Vectors vectors) {
    return sums(numbers, smallest_normal, vectors);
}

float largest_magnitude(std::span<const float> numbers) {
    return magnitude(numbers);
}

double largest_magnitude(std::span<const double> numbers) {
    return magnitude(numbers);
}

}  // namespace trocar
