#include "util/corners.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "util/exact.h"

namespace trocar {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A double taken apart: its mantissa in [0.5, 1) and its exponent.
struct Parts {
    explicit Parts(double number) { mantissa = std::frexp(number, &exponent); }
    double mantissa = 0;
    int exponent = 0;
};

// The smallest double from 0 on for which `fits`, which must hold for all above too.
template <class Fits>
double smallest(const Fits& fits) {
    std::uint64_t low = 0;
    auto high = std::bit_cast<std::uint64_t>(infinity);
    while (low < high) {
        const auto middle = low + (high - low) / 2;
        if (fits(std::bit_cast<double>(middle))) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return std::bit_cast<double>(low);
}

// Products of such differences lose nothing to the ends of the range of exponents.
bool is_moderate(double number) {
    return number == 0 || (number > 1e-60 && number < 1e60);
}

// The point in the middle against the line from the first to the last, with differences that may
// have been rounded.
bool is_below_exactly(const Corner& first, const Corner& middle, const Corner& last) {
    const auto apart = [](const Corner& from, const Corner& to, double& x, double& y) {
        x = to.magnitude - from.magnitude;
        y = to.off - from.off;
        return to.magnitude - x == from.magnitude && from.magnitude + x == to.magnitude &&
               to.off - y == from.off && from.off + y == to.off;
    };
    double x1 = 0;
    double y1 = 0;
    double x2 = 0;
    double y2 = 0;
    if (is_moderate(last.magnitude) && is_moderate(last.off) && apart(first, middle, x1, y1) &&
        apart(first, last, x2, y2) && is_moderate(x1) && is_moderate(y1) && is_moderate(x2) &&
        is_moderate(y2)) {
        const double left = y1 * x2;
        const double right = y2 * x1;
        return left != right ? left < right : std::fma(y1, x2, -left) <= std::fma(y2, x1, -right);
    }
    const int x_shift = -std::ilogb(last.magnitude);
    const int y_shift = -std::ilogb(last.off);
    const auto scaled = [&](const Corner& point) {
        return Corner{std::ldexp(point.magnitude, x_shift), std::ldexp(point.off, y_shift)};
    };
    const auto p = scaled(first);
    const auto q = scaled(middle);
    const auto r = scaled(last);
    for (const double number : {p.magnitude, q.magnitude, p.off, q.off}) {
        if (number != 0 && number < 1e-100) {
            return false;  // cannot be told: kept, which is never wrong
        }
    }
    ExactSum sum;
    sum.add_product(q.magnitude, r.off);
    sum.add_product(-q.magnitude, p.off);
    sum.add_product(-p.magnitude, r.off);
    sum.add_product(-r.magnitude, q.off);
    sum.add_product(r.magnitude, p.off);
    sum.add_product(p.magnitude, q.off);
    return sum.sign() >= 0;
}

// Is the point in the middle below the line from the first to the last, or on it? They rise in both
// numbers.
bool is_below(const Corner& first, const Corner& middle, const Corner& last) {
    const double left = (middle.off - first.off) * (last.magnitude - first.magnitude);
    const double right = (last.off - first.off) * (middle.magnitude - first.magnitude);
    constexpr double margin = 0x1p-50;
    if (left > 1e-290 && right > 1e-290 && left < 1e290 && right < 1e290) {
        if (left < right * (1 - margin)) {
            return true;
        }
        if (left > right * (1 + margin)) {
            return false;
        }
    }
    return is_below_exactly(first, middle, last);
}

}  // namespace

bool exceeds(double magnitude, double off, const Tolerance& tolerance, double factor) {
    if (off == 0) {
        return false;
    }
    if (std::isinf(off)) {
        return true;
    }
    if (std::isinf(tolerance.atol) || std::isinf(tolerance.rtol)) {
        return factor == 0;
    }
    if (std::isinf(factor)) {
        return tolerance.atol == 0 && (tolerance.rtol == 0 || magnitude == 0);
    }
    // All are divided by the power of two of `off`, which is then about 1: what becomes too small
    // for a double decides nothing.
    const Parts top(off);
    const Parts atol(tolerance.atol);
    const Parts rtol(tolerance.rtol);
    const Parts x(magnitude);
    const Parts f(factor);
    const int fixed = f.exponent + atol.exponent - top.exponent;
    const int scaled = f.exponent + rtol.exponent + x.exponent - top.exponent;
    const bool has_fixed = f.mantissa * atol.mantissa > 0;
    const bool has_scaled = f.mantissa * rtol.mantissa * x.mantissa > 0;
    if ((has_fixed && fixed > 4) || (has_scaled && scaled > 4)) {
        return false;
    }
    ExactSum sum;
    sum.add(top.mantissa);
    if (has_fixed) {
        sum.add_product(-f.mantissa, atol.mantissa, fixed);
    }
    if (has_scaled) {
        const double product = f.mantissa * rtol.mantissa;
        sum.add_product(-product, x.mantissa, scaled);
        sum.add_product(-std::fma(f.mantissa, rtol.mantissa, -product), x.mantissa, scaled);
    }
    return sum.sign() > 0;
}

bool holds(std::span<const Corner> corners, const Tolerance& tolerance) {
    return std::none_of(corners.begin(), corners.end(), [&](const Corner& corner) {
        return exceeds(corner.magnitude, corner.off, tolerance);
    });
}

double needed_factor(std::span<const Corner> corners, const Tolerance& tolerance) {
    return smallest([&](double factor) {
        return std::none_of(corners.begin(), corners.end(), [&](const Corner& corner) {
            return exceeds(corner.magnitude, corner.off, tolerance, factor);
        });
    });
}

double needed_atol(std::span<const Corner> corners, double rtol) {
    return smallest(
        [&](double atol) { return holds(corners, Tolerance{.rtol = rtol, .atol = atol}); });
}

double needed_rtol(std::span<const Corner> corners, double atol) {
    return smallest(
        [&](double rtol) { return holds(corners, Tolerance{.rtol = rtol, .atol = atol}); });
}

CornerSearch::CornerSearch() : floor_(std::size_t{0x7ff} << (52 - shift), 0.0) {}

void CornerSearch::add_candidate(double magnitude, double off) {
    if (is_inside(magnitude, off)) {
        return;
    }
    waiting_.push_back({magnitude, off});
    if (waiting_.size() >= most_waiting) {
        rebuild();
        lay_floor();
    }
}

bool CornerSearch::is_inside(double magnitude, double off) const {
    const auto right = std::upper_bound(
        hull_.begin(), hull_.end(), magnitude,
        [](double number, const Corner& corner) { return number < corner.magnitude; });
    if (right == hull_.begin()) {
        return false;
    }
    const auto left = right - 1;
    if (off <= left->off) {
        return true;
    }
    return right != hull_.end() && magnitude > left->magnitude && off < right->off &&
           is_below(*left, {magnitude, off}, *right);
}

void CornerSearch::rebuild() {
    waiting_.insert(waiting_.end(), hull_.begin(), hull_.end());
    std::sort(waiting_.begin(), waiting_.end(), [](const Corner& p, const Corner& q) {
        return p.magnitude != q.magnitude ? p.magnitude < q.magnitude : p.off > q.off;
    });
    hull_.clear();
    for (const auto& point : waiting_) {
        if (!hull_.empty() && point.off <= hull_.back().off) {
            continue;
        }
        if (std::isinf(point.off)) {
            hull_ = {point};  // no finite tolerance holds for it
            break;
        }
        while (hull_.size() > 1 && is_below(hull_[hull_.size() - 2], hull_.back(), point)) {
            hull_.pop_back();
        }
        hull_.push_back(point);
    }
    waiting_.clear();
}

void CornerSearch::lay_floor() {
    if (std::isinf(hull_.back().off)) {
        // Others that are infinite may still be further to the left.
        std::fill(floor_.begin(), floor_.end(), std::numeric_limits<double>::max());
        return;
    }
    const auto step = [](double magnitude) {
        return static_cast<std::size_t>(std::bit_cast<std::uint64_t>(magnitude) >> shift);
    };
    constexpr double rounding = 1 - 0x1p-40;
    auto at = step(hull_.front().magnitude);
    if (std::bit_cast<double>(std::uint64_t{at} << shift) == hull_.front().magnitude) {
        floor_[at] = hull_.front().off;
    }
    ++at;
    for (std::size_t i = 0; i + 1 < hull_.size(); ++i) {
        const auto& p = hull_[i];
        const auto& q = hull_[i + 1];
        for (; at <= step(q.magnitude) && at < floor_.size(); ++at) {
            const auto low = std::bit_cast<double>(std::uint64_t{at} << shift);
            const double share = (low - p.magnitude) / (q.magnitude - p.magnitude);
            floor_[at] = (p.off + (q.off - p.off) * share) * rounding;
        }
    }
    std::fill(floor_.begin() + static_cast<std::ptrdiff_t>(at), floor_.end(), hull_.back().off);
}

std::vector<Corner> CornerSearch::finish() {
    rebuild();
    return hull_;
}

}  // namespace trocar
