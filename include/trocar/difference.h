#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trocar/statistics.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// How far a number may be from the one it is compared with: |b − a| ≤ atol + rtol·|a|. Neither is
// negative or NaN; infinity allows all finite numbers.
struct Tolerance {
    double rtol = 0;
    double atol = 0;
};

// One of the numbers that decide whether a tolerance holds for a whole tensor.
struct Corner {
    double magnitude = 0;  // |a|
    double off = 0;        // |b − a|, never 0
    bool operator==(const Corner&) const = default;
};

// One channel of a tensor: of the second axis from rank 3 on, else of the last one.
struct ChannelDifference {
    std::size_t axis = 0;
    std::size_t index = 0;
    double max_abs = 0;  // of its finite numbers; NaN without any
    double share = 0;    // of all mismatches of the tensor; NaN without any
    bool operator==(const ChannelDifference&) const;  // NaN is equal to NaN
};

// How two tensors of numbers of the same shape differ. `a` is the one to compare with. A complex
// element counts as two numbers. |b − a| is what is nearest to it as a double, also of 64-bit
// integers. docs/difference.md has the formulas.
struct Difference {
    static constexpr double none = std::numeric_limits<double>::quiet_NaN();

    std::size_t count = 0;
    std::size_t finite = 0;  // finite on both sides
    bool same_bits = false;
    std::size_t mismatches = 0;  // numbers beyond the tolerance; NaN and infinities alone included
    std::size_t nan_mismatches = 0;       // NaN in one of the two only
    std::size_t infinity_mismatches = 0;  // infinite, and not the same on both sides
    // Where the first of these are: the element's place in row-major order.
    std::optional<std::size_t> first_nan;
    std::optional<std::size_t> first_infinity;

    // Of the numbers that are finite on both sides; NaN without any.
    double max_abs = none;
    double mean_abs = none;
    double max_rel = none;   // relative to |a|, or to a thousandth of its rms where that is more;
    double mean_rel = none;  // infinite where both are 0 and the difference is not
    std::optional<std::uint64_t> max_ulp;  // steps of the type between the two; of floats
    double mse = none;
    double rmse = none;
    double normalized_l2 = none;  // ‖b − a‖ / ‖a‖; infinite when only a is all zero
    double sqnr_db = none;  // rms of a over that of the difference; infinite when they are same
    double psnr_db = none;  // the same with the largest |a| in the place of the rms of a
    double cosine = none;   // absent when one of them is all zero
    // The number that is furthest off: with NaN and infinities first, and the first one of several.
    std::size_t worst = 0;  // the element's place in row-major order
    double worst_a = none;  // both NaN when none is off
    double worst_b = none;

    // All from here on is left out unless DifferenceOptions::detail.

    // Of rank ⌈n/2⌉ and ⌈0.99·n⌉ among the n finite ones, the smallest first; exact.
    double p50_abs = none;
    double p99_abs = none;
    std::optional<std::uint64_t> p99_ulp;

    // The channel with the most mismatches, among such the one that is furthest off, and the first
    // of these. Absent without an axis, and when no number is off.
    std::optional<ChannelDifference> worst_channel;

    // How many |b − a| are 0 (bin 0), below 2^-63 (bin 1), at least 2^(i - 65) and less than twice
    // that (bin i), at least 2^31 (the last bin).
    static constexpr std::size_t histogram_bins = 97;
    std::array<std::uint64_t, histogram_bins> histogram{};
    static double histogram_low(std::size_t bin);  // where a bin begins; 0 for bins 0 and 1

    // Over the rows along the last axis; the first of equal numbers counts as larger, NaN as
    // smaller than all. NaN without rows, and for complex types.
    double argmax_agreement = none;  // share of the rows whose largest number is in the same place
    double top_overlap = none;       // mean share of the top_k places that are in both
    std::size_t top_k = 0;           // how many these are: at most the length of a row

    // Whatever the tolerance: it holds for all finite numbers if and only if it holds for these.
    // Rising in both; empty when no finite number is off.
    std::vector<Corner> corners;

    bool within() const { return mismatches == 0; }
    bool operator==(const Difference&) const;  // NaN is equal to NaN
};

struct DifferenceOptions {
    Tolerance tolerance;
    bool detail = true;
    std::size_t top_k = 5;
};

// Throws Error(usage) unless both have statistics, one type and one shape. The same bits whatever
// the machine's vector instructions are; memory does not grow with the tensors.
Difference difference(const Value& a, const Value& b, const DifferenceOptions& options);
// The same without detail.
Difference difference(const Value& a, const Value& b, const Tolerance& tolerance = {});

// Does |b − a| ≤ atol + rtol·|a| hold for all finite numbers? In exact arithmetic, as are those
// below: what they return is the smallest double that does, and infinity where none does.
bool holds(std::span<const Corner> corners, const Tolerance& tolerance);
// f of |b − a| ≤ f·(atol + rtol·|a|): at most 1 if and only if the tolerance holds.
double needed_factor(std::span<const Corner> corners, const Tolerance& tolerance);
double needed_atol(std::span<const Corner> corners, double rtol);
double needed_rtol(std::span<const Corner> corners, double atol);

// One line of JSON that has all of a Difference, and back. NaN and infinities are strings. Throws
// Error(input) when the text is no such line.
std::string to_json(const Difference& difference);
Difference difference_from_json(std::string_view text);

// The index of an element: "3,0,17"; "" for a scalar.
std::string element_index(const Shape& shape, std::size_t place);

}  // namespace trocar
#pragma GCC visibility pop
