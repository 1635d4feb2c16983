#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "trocar/statistics.h"
#include "trocar/value.h"

namespace trocar {

// How far a number may be from the one it is compared with: |b − a| ≤ atol + rtol·|a|.
struct Tolerance {
    double rtol = 0;
    double atol = 0;
};

// How two tensors of numbers of the same shape differ. `a` is the one to compare with. A complex
// element counts as two numbers.
struct Difference {
    static constexpr double none = std::numeric_limits<double>::quiet_NaN();

    std::size_t count = 0;
    bool same_bits = false;
    std::size_t mismatches = 0;  // numbers beyond the tolerance; NaN and infinities alone included
    std::size_t nan_mismatches = 0;       // NaN in one of the two only
    std::size_t infinity_mismatches = 0;  // infinite, and not the same on both sides

    // Of the numbers that are finite on both sides; NaN without any.
    double max_abs = none;
    double mean_abs = none;
    double max_rel = none;  // relative to |a|, or to a thousandth of its rms where that is more
    std::optional<std::uint64_t> max_ulp;  // steps of the type between the two; of floats
    double sqnr_db = none;  // rms of a over that of the difference; infinite when they are same
    double cosine = none;   // absent when one of them is all zero
    // The number that is furthest off: with NaN and infinities first.
    std::size_t worst = 0;  // place in row-major order
    double worst_a = none;
    double worst_b = none;

    bool within() const { return mismatches == 0; }
};

// Throws Error(usage) unless both have statistics, one type and one shape.
Difference difference(const Value& a, const Value& b, const Tolerance& tolerance = {});

// The index of an element: "3,0,17"; "" for a scalar.
std::string element_index(const Shape& shape, std::size_t place);

}  // namespace trocar
