#include "util/pair_sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "util/corners.h"

namespace trocar {

namespace {

// As in util/number_sums.cpp: vectors by the compilers' own extension, in a function for each
// instruction set. No step is fused, so that all give the same bits.
typedef double DoubleLanes __attribute__((vector_size(pair_lanes * sizeof(double))));
typedef std::int64_t Integers __attribute__((vector_size(pair_lanes * sizeof(double))));

#define TROCAR_KERNEL __attribute__((always_inline)) inline

TROCAR_KERNEL void load(const double* at, DoubleLanes& numbers) {
    std::memcpy(&numbers, at, sizeof(numbers));
}

TROCAR_KERNEL void magnitude(const DoubleLanes& numbers, DoubleLanes& magnitudes) {
    magnitudes = reinterpret_cast<DoubleLanes>(reinterpret_cast<Integers>(numbers) &
                                               std::numeric_limits<std::int64_t>::max());
}

TROCAR_KERNEL double lane_total(const DoubleLanes& lanes) {
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

TROCAR_KERNEL std::uint64_t lane_total(const Integers& lanes) {
    return static_cast<std::uint64_t>((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]));
}

TROCAR_KERNEL double largest(const DoubleLanes& lanes) {
    return std::max(std::max(lanes[0], lanes[1]), std::max(lanes[2], lanes[3]));
}

struct Lanes {
    DoubleLanes off{};
    DoubleLanes rel{};
    DoubleLanes squares{};
    DoubleLanes squares_a{};
    DoubleLanes squares_b{};
    DoubleLanes products{};
    DoubleLanes max_off{};
    DoubleLanes max_rel{};
    DoubleLanes max_a{};
    DoubleLanes max_b{};
    Integers zeros{};
    Integers beyond{};
    Integers perhaps{};
};

TROCAR_KERNEL void raise(DoubleLanes& top, const DoubleLanes& numbers) {
    top = numbers > top ? numbers : top;
}

// Differences above are beyond the tolerance.
struct PairLimits {
    DoubleLanes high;  // for sure
    DoubleLanes low;   // perhaps
};

TROCAR_KERNEL void limits_of(const DoubleLanes& magnitudes, const Bounds& bounds,
                             PairLimits& limits) {
    const DoubleLanes most = DoubleLanes{} + Bounds::limit;
    const DoubleLanes bound = bounds.tolerance().atol + bounds.tolerance().rtol * magnitudes;
    const DoubleLanes high = bound * bounds.above() + bounds.slack();
    const DoubleLanes low = bound * bounds.below() - bounds.slack();
    limits.high = high < most ? high : most;
    limits.low = low < most ? low : most;
}

TROCAR_KERNEL PairSums sums(const double* a_at, const double* b_at, const double* off_at,
                            std::size_t count, double floor, const Bounds& bounds) {
    const DoubleLanes zero{};
    const DoubleLanes floors = zero + floor;
    Lanes lanes;
    for (std::size_t i = 0; i < count; i += pair_lanes) {
        DoubleLanes a;
        DoubleLanes b;
        DoubleLanes off;
        load(a_at + i, a);
        load(b_at + i, b);
        load(off_at + i, off);
        DoubleLanes size_a;
        DoubleLanes size_b;
        magnitude(a, size_a);
        magnitude(b, size_b);
        const DoubleLanes scale = size_a > floors ? size_a : floors;
        const DoubleLanes ratio = off / scale;
        const DoubleLanes rel = off > zero ? ratio : zero;
        PairLimits limits;
        limits_of(size_a, bounds, limits);
        const Integers some = off > zero;
        lanes.off += off;
        lanes.rel += rel;
        lanes.squares += off * off;
        lanes.squares_a += a * a;
        lanes.squares_b += b * b;
        lanes.products += a * b;
        raise(lanes.max_off, off);
        raise(lanes.max_rel, rel);
        raise(lanes.max_a, size_a);
        raise(lanes.max_b, size_b);
        lanes.zeros += some + 1;  // a true lane is -1
        lanes.beyond -= off > limits.high;
        lanes.perhaps -= some & (off > limits.low);
    }
    return {lane_total(lanes.off),       lane_total(lanes.rel),       lane_total(lanes.squares),
            lane_total(lanes.squares_a), lane_total(lanes.squares_b), lane_total(lanes.products),
            largest(lanes.max_off),      largest(lanes.max_rel),      largest(lanes.max_a),
            largest(lanes.max_b),        lane_total(lanes.zeros),     lane_total(lanes.beyond),
            lane_total(lanes.perhaps)};
}

// False when some cannot be told.
TROCAR_KERNEL bool mismatches(const double* a_at, const double* off_at, std::size_t count,
                              const Bounds& bounds, std::uint64_t* bad) {
    const DoubleLanes zero{};
    Integers open{};
    std::size_t i = 0;
    for (; i + pair_lanes <= count; i += pair_lanes) {
        DoubleLanes a;
        DoubleLanes off;
        load(a_at + i, a);
        load(off_at + i, off);
        DoubleLanes size;
        magnitude(a, size);
        PairLimits limits;
        limits_of(size, bounds, limits);
        const Integers beyond = off > limits.high;
        open |= beyond ^ ((off > zero) & (off > limits.low));
        const Integers ones = -beyond;
        std::memcpy(bad + i, &ones, sizeof(ones));
    }
    for (; i < count; ++i) {
        bad[i] = bounds.exceeded(std::abs(a_at[i]), off_at[i]) ? 1 : 0;
    }
    return lane_total(open) == 0;
}

TROCAR_KERNEL bool differences(const double* a_at, const double* b_at, double* off_at,
                               std::size_t count) {
    DoubleLanes nothing{};  // of zeros, but NaN with anything that is not finite
    std::size_t i = 0;
    for (; i + pair_lanes <= count; i += pair_lanes) {
        DoubleLanes a;
        DoubleLanes b;
        load(a_at + i, a);
        load(b_at + i, b);
        DoubleLanes off;
        magnitude(b - a, off);
        std::memcpy(off_at + i, &off, sizeof(off));
        nothing += (a - a) + (b - b);
    }
    double rest = lane_total(nothing);
    for (; i < count; ++i) {
        off_at[i] = std::abs(b_at[i] - a_at[i]);
        rest += (a_at[i] - a_at[i]) + (b_at[i] - b_at[i]);
    }
    return rest == 0;
}

// What compilers make vectors of by themselves.
TROCAR_KERNEL void widen(const std::byte* stored, std::size_t count, double* numbers) {
    for (std::size_t i = 0; i < count; ++i) {
        float number;
        std::memcpy(&number, stored + i * sizeof(number), sizeof(number));
        numbers[i] = number;
    }
}

TROCAR_KERNEL std::int32_t place_of_float(const std::byte* stored, std::size_t i) {
    std::int32_t code;
    std::memcpy(&code, stored + i * sizeof(code), sizeof(code));
    const auto magnitude = code & std::numeric_limits<std::int32_t>::max();
    const auto sign = code >> 31;  // 0 or -1
    return (magnitude ^ sign) - sign;
}

TROCAR_KERNEL void steps(const std::byte* a, const std::byte* b, std::size_t count,
                         std::uint64_t* steps) {
    for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t x = place_of_float(a, i);
        const std::int64_t y = place_of_float(b, i);
        steps[i] = static_cast<std::uint64_t>(x < y ? y - x : x - y);
    }
}

#undef TROCAR_KERNEL

#if defined(__x86_64__)
#define TROCAR_TARGET(set) __attribute__((target(set)))
bool has_wide_pairs() {
    static const bool has = __builtin_cpu_supports("avx2") != 0;
    return has;
}
#else
#define TROCAR_TARGET(set)
bool has_wide_pairs() {
    return false;
}
#endif

TROCAR_TARGET("avx2")
PairSums wide_sums(const double* a, const double* b, const double* off, std::size_t count,
                   double floor, const Bounds& bounds) {
    return sums(a, b, off, count, floor, bounds);
}
TROCAR_TARGET("avx2")
bool wide_mismatches(const double* a, const double* off, std::size_t count, const Bounds& bounds,
                     std::uint64_t* bad) {
    return mismatches(a, off, count, bounds, bad);
}
TROCAR_TARGET("avx2")
void wide_widen(const std::byte* stored, std::size_t count, double* numbers) {
    widen(stored, count, numbers);
}
TROCAR_TARGET("avx2")
void wide_steps(const std::byte* a, const std::byte* b, std::size_t count, std::uint64_t* target) {
    steps(a, b, count, target);
}
TROCAR_TARGET("avx2")
bool wide_differences(const double* a, const double* b, double* off, std::size_t count) {
    return differences(a, b, off, count);
}

}  // namespace

PairSums sums_of_pairs(const double* a, const double* b, const double* off, std::size_t count,
                       double floor, const Bounds& bounds) {
    return has_wide_pairs() ? wide_sums(a, b, off, count, floor, bounds)
                            : sums(a, b, off, count, floor, bounds);
}

void mismatches_of(const double* a, const double* off, std::size_t count, const Bounds& bounds,
                   std::uint64_t* bad) {
    if (has_wide_pairs() ? wide_mismatches(a, off, count, bounds, bad)
                         : mismatches(a, off, count, bounds, bad)) {
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        bad[i] = bounds.exceeded(std::abs(a[i]), off[i]) ? 1 : 0;
    }
}

void widen_floats(const std::byte* stored, std::size_t count, double* numbers) {
    has_wide_pairs() ? wide_widen(stored, count, numbers) : widen(stored, count, numbers);
}

void steps_between_floats(const std::byte* a, const std::byte* b, std::size_t count,
                          std::uint64_t* target) {
    has_wide_pairs() ? wide_steps(a, b, count, target) : steps(a, b, count, target);
}

bool differences_of(const double* a, const double* b, double* off, std::size_t count) {
    return has_wide_pairs() ? wide_differences(a, b, off, count) : differences(a, b, off, count);
}

Bounds::Bounds(const Tolerance& tolerance) : tolerance_(tolerance) {
    // Without rtol the bound is not rounded.
    if (tolerance.rtol != 0) {
        above_ = 1 + 0x1p-50;
        below_ = 1 - 0x1p-50;
        slack_ = 0x1p-1060;
    }
}

bool Bounds::exceeded_exactly(double magnitude, double off) const {
    return exceeds(magnitude, off, tolerance_);
}

}  // namespace trocar
