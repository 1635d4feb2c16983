#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "trocar/difference.h"

namespace trocar {

// What is added up over pairs of finite numbers a and b, with off = |b − a|.
struct PairSums {
    double off = 0;
    double rel = 0;  // off / max(|a|, floor), 0 where off is 0
    double squares = 0;
    double squares_a = 0;
    double squares_b = 0;
    double products = 0;
    double max_off = 0;
    double max_rel = 0;
    double max_a = 0;
    double max_b = 0;
    std::uint64_t zeros = 0;    // off is 0
    std::uint64_t beyond = 0;   // numbers that are off by more than the tolerance for sure
    std::uint64_t perhaps = 0;  // these and those that rounding leaves open
};

// A tolerance, prepared for many numbers: `exceeds` of util/corners.h, at once where rounding
// cannot matter.
class Bounds {
public:
    // Only an infinite difference is beyond.
    static constexpr double limit = std::numeric_limits<double>::max();

    explicit Bounds(const Tolerance& tolerance);

    bool exceeded(double magnitude, double off) const {
        // std::min gives the limit for NaN too, which infinity times 0 is.
        const double bound = tolerance_.atol + tolerance_.rtol * magnitude;
        if (off > std::min(limit, bound * above_ + slack_)) {
            return true;
        }
        return off > 0 && off > std::min(limit, bound * below_ - slack_) &&
               exceeded_exactly(magnitude, off);
    }

    const Tolerance& tolerance() const { return tolerance_; }
    double above() const { return above_; }
    double below() const { return below_; }
    double slack() const { return slack_; }

private:
    bool exceeded_exactly(double magnitude, double off) const;

    Tolerance tolerance_;
    double above_ = 1;
    double below_ = 1;
    double slack_ = 0;
};

// Numbers come in fours: arrays are filled with zeros up to there.
constexpr std::size_t pair_lanes = 4;

// The same bits whatever the CPU. `count` is a multiple of `pair_lanes`.
PairSums sums_of_pairs(const double* a, const double* b, const double* off, std::size_t count,
                       double floor, const Bounds& bounds);

// Which numbers are off by more than the tolerance: 1 or 0 into `bad`.
void mismatches_of(const double* a, const double* off, std::size_t count, const Bounds& bounds,
                   std::uint64_t* bad);

// Floats as they are stored, as doubles.
void widen_floats(const std::byte* stored, std::size_t count, double* numbers);

// Steps between floats as they are stored: neighbours are one apart, both zeros are one place.
void steps_between_floats(const std::byte* a, const std::byte* b, std::size_t count,
                          std::uint64_t* steps);

// |b − a| into `off`; false when a number is not finite.
bool differences_of(const double* a, const double* b, double* off, std::size_t count);

}  // namespace trocar
