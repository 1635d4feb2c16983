#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "trocar/difference.h"

namespace trocar {

// Is `off` > `factor`·(atol + rtol·`magnitude`)? In exact arithmetic.
bool exceeds(double magnitude, double off, const Tolerance& tolerance, double factor = 1);

// Finds the corners of many numbers that come one after the other: those of the upper hull of the
// points (|a|, |b − a|) that no other point to the left is above of.
class CornerSearch {
public:
    CornerSearch();

    // Finite and not negative; `off` may be infinite.
    void add(double magnitude, double off) {
        if (off > floor_[std::bit_cast<std::uint64_t>(magnitude) >> shift]) {
            add_candidate(magnitude, off);
        }
    }

    std::vector<Corner> finish();

private:
    static constexpr int shift = 49;  // leaves the exponent and three bits of the mantissa
    static constexpr std::size_t most_waiting = 256;

    void add_candidate(double magnitude, double off);
    bool is_inside(double magnitude, double off) const;
    void rebuild();
    void lay_floor();

    std::vector<double> floor_;  // by magnitude: points up to here are no corners
    std::vector<Corner> hull_;
    std::vector<Corner> waiting_;
};

}  // namespace trocar
