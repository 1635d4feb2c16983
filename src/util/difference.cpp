#include "trocar/difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "trocar/error.h"
#include "util/elements.h"

namespace trocar {

namespace {

constexpr std::size_t block_numbers = 1024;
constexpr double relative_floor = 1e-3;  // of the rms

// Floats in order as integers: neighbours differ by one.
std::int64_t step_of(Bytes bytes, std::size_t width, std::size_t at) {
    std::uint64_t code = 0;
    std::memcpy(&code, bytes.data() + at * width, width);
    const auto sign = std::uint64_t{1} << (8 * width - 1);
    const auto magnitude = static_cast<std::int64_t>(code & (sign - 1));
    return (code & sign) != 0 ? -magnitude : magnitude;
}

// Bytes of one number of a float type whose codes are in order; 0 for other types.
std::size_t float_width(DType dtype) {
    if (dtype == DType::c64 || dtype == DType::c128) {
        return bits(dtype) / 16;
    }
    return is_float(dtype) && dtype != DType::f8e8m0 && bits(dtype) % 8 == 0 ? bits(dtype) / 8 : 0;
}

// One comparison under way.
class Comparison {
public:
    Comparison(const Value& a, const Value& b, const Tolerance& tolerance)
        : a_(a.bytes()), b_(b.bytes()), dtype_(a.dtype()), tolerance_(tolerance) {
        found_.count = number_count(dtype_, a.element_count());
        const auto rms = statistics(a, {.spread = StatisticsOptions::Spread::none}).rms;
        floor_ = std::isfinite(rms) ? relative_floor * rms : 0;
        width_ = float_width(dtype_);
    }

    Difference run() {
        std::array<double, block_numbers> left;
        std::array<double, block_numbers> right;
        for (std::size_t first = 0; first < found_.count; first += block_numbers) {
            const auto count = std::min(block_numbers, found_.count - first);
            decode(dtype_, a_, first, std::span(left).first(count));
            decode(dtype_, b_, first, std::span(right).first(count));
            for (std::size_t i = 0; i < count; ++i) {
                add(first + i, left[i], right[i]);
            }
        }
        finish();
        return found_;
    }

private:
    void add(std::size_t at, double a, double b) {
        if (std::isfinite(a) && std::isfinite(b)) {
            add_finite(at, a, b);
            return;
        }
        const bool same = a == b || (std::isnan(a) && std::isnan(b));
        if (same) {
            return;
        }
        ++found_.mismatches;
        ++(std::isnan(a) != std::isnan(b) ? found_.nan_mismatches : found_.infinity_mismatches);
        note_worst(at, a, b, std::numeric_limits<double>::infinity());
    }

    void add_finite(std::size_t at, double a, double b) {
        const double off = std::abs(b - a);
        ++finite_;
        sum_ += off;
        squares_ += off * off;
        squares_a_ += a * a;
        squares_b_ += b * b;
        products_ += a * b;
        if (off == 0) {
            return;
        }
        const double scale = std::max(std::abs(a), floor_);
        max_rel_ = std::max(max_rel_, scale > 0 ? off / scale : Difference::none);
        if (off > tolerance_.atol + tolerance_.rtol * std::abs(a)) {
            ++found_.mismatches;
        }
        note_worst(at, a, b, off);
        if (width_ != 0) {
            const auto steps = step_of(b_, width_, at) - step_of(a_, width_, at);
            max_ulp_ = std::max(max_ulp_, static_cast<std::uint64_t>(std::abs(steps)));
        }
    }

    void note_worst(std::size_t at, double a, double b, double off) {
        if (off > worst_off_) {
            worst_off_ = off;
            found_.worst = at;
            found_.worst_a = a;
            found_.worst_b = b;
        }
        if (std::isfinite(off)) {
            max_abs_ = std::max(max_abs_, off);
        }
    }

    void finish() {
        if (width_ != 0) {
            found_.max_ulp = max_ulp_;
        }
        if (finite_ == 0) {
            return;
        }
        found_.max_abs = max_abs_;
        found_.mean_abs = sum_ / static_cast<double>(finite_);
        found_.max_rel = max_rel_;
        found_.sqnr_db = squares_ == 0 ? std::numeric_limits<double>::infinity()
                                       : 10 * std::log10(squares_a_ / squares_);
        if (squares_a_ > 0 && squares_b_ > 0) {
            const double cosine = products_ / std::sqrt(squares_a_) / std::sqrt(squares_b_);
            found_.cosine = std::clamp(cosine, -1.0, 1.0);
        }
    }

    Bytes a_;
    Bytes b_;
    DType dtype_;
    Tolerance tolerance_;
    Difference found_;
    std::size_t width_ = 0;
    double floor_ = 0;
    std::size_t finite_ = 0;
    double sum_ = 0;
    double squares_ = 0;
    double squares_a_ = 0;
    double squares_b_ = 0;
    double products_ = 0;
    double max_abs_ = 0;
    double max_rel_ = 0;
    double worst_off_ = 0;
    std::uint64_t max_ulp_ = 0;
};

}  // namespace

Difference difference(const Value& a, const Value& b, const Tolerance& tolerance) {
    if (!has_statistics(a) || !has_statistics(b) || a.dtype() != b.dtype() ||
        a.shape() != b.shape()) {
        throw Error(Fault::usage, fmt::format("{} and {} cannot be compared number by number",
                                              value_text(a), value_text(b)));
    }
    auto found = Comparison(a, b, tolerance).run();
    found.same_bits = std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
    return found;
}

std::string element_index(const Shape& shape, std::size_t place) {
    std::vector<std::size_t> index(shape.size());
    for (auto axis = shape.size(); axis-- > 0;) {
        const auto length = std::max<std::size_t>(static_cast<std::size_t>(shape[axis]), 1);
        index[axis] = place % length;
        place /= length;
    }
    return fmt::format("{}", fmt::join(index, ","));
}

}  // namespace trocar
