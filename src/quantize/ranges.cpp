#include "quantize/ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace trocar::quantizing {

namespace {

constexpr std::size_t steps = 128;

}  // namespace

void Histogram::add(std::span<const float> numbers) {
    if (!(edge_ > 0)) {
        return;
    }
    const double factor = static_cast<double>(bins) / edge_;
    for (const float number : numbers) {
        if (number == 0) {
            ++zeros_;
            continue;
        }
        const double place = std::abs(static_cast<double>(number)) * factor;
        if (std::isfinite(place)) {
            ++counts_[std::min(bins - 1, static_cast<std::size_t>(place))];
        }
    }
}

double Histogram::percentile(double share) const {
    const auto total = std::accumulate(counts_.begin(), counts_.end(), zeros_);
    const double wanted = share * static_cast<double>(total);
    auto sum = static_cast<double>(zeros_);
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        sum += static_cast<double>(counts_[i]);
        if (sum >= wanted) {
            return edge_ * static_cast<double>(i + 1) / static_cast<double>(bins);
        }
    }
    return edge_;
}

double Histogram::least_divergence() const {
    const double total =
        static_cast<double>(std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0}));
    if (total == 0) {
        return edge_;
    }
    double best = std::numeric_limits<double>::infinity();
    std::size_t kept = bins;
    std::vector<double> p;
    for (std::size_t end = steps; end <= bins; end += 16) {
        p.assign(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(end));
        double beyond = 0;
        for (std::size_t i = end; i < bins; ++i) {
            beyond += static_cast<double>(counts_[i]);
        }
        p.back() += beyond;  // what is cut off ends in the last step
        // In 128 steps, spread evenly over those bins of a step that hold anything.
        double divergence = 0;
        double inside = 0;
        for (std::size_t i = 0; i < end; ++i) {
            inside += static_cast<double>(counts_[i]);
        }
        if (inside == 0) {
            continue;
        }
        for (std::size_t step = 0; step < steps; ++step) {
            const auto from = step * end / steps;
            const auto to = (step + 1) * end / steps;
            double sum = 0;
            std::size_t filled = 0;
            for (auto i = from; i < to; ++i) {
                sum += static_cast<double>(counts_[i]);
                filled += counts_[i] > 0 ? 1 : 0;
            }
            for (auto i = from; i < to; ++i) {
                if (p[i] == 0) {
                    continue;
                }
                const double q = counts_[i] > 0 && filled > 0
                                     ? sum / static_cast<double>(filled) / inside
                                     : 1e-9;
                divergence += p[i] / total * std::log(p[i] / total / q);
            }
        }
        if (divergence < best) {
            best = divergence;
            kept = end;
        }
    }
    return edge_ * static_cast<double>(kept) / static_cast<double>(bins);
}

double Histogram::least_error() const {
    double best = std::numeric_limits<double>::infinity();
    double chosen = edge_;
    for (std::size_t end = steps; end <= bins; end += 16) {
        const double edge = edge_ * static_cast<double>(end) / static_cast<double>(bins);
        const double step = edge / static_cast<double>(steps);
        double error = 0;
        for (std::size_t i = 0; i < bins; ++i) {
            if (counts_[i] == 0) {
                continue;
            }
            const double number =
                edge_ * (static_cast<double>(i) + 0.5) / static_cast<double>(bins);
            // Inside: the error of rounding; beyond: the distance to the edge.
            const double off = number > edge ? number - edge : 0;
            error += static_cast<double>(counts_[i]) * (off > 0 ? off * off : step * step / 12);
        }
        if (error < best) {
            best = error;
            chosen = edge;
        }
    }
    return chosen;
}

Affine affine_int8(double low, double high) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
    Affine made;
    if (!(high > low)) {
        return made;
    }
    made.scale = static_cast<float>((high - low) / 255);
    if (!(made.scale > 0) || !std::isfinite(made.scale)) {
        made.scale = 1;
        return made;
    }
    const double zero = std::nearbyint(-128 - low / static_cast<double>(made.scale));
    made.zero_point = static_cast<std::int32_t>(std::clamp(zero, -128.0, 127.0));
    return made;
}

}  // namespace trocar::quantizing
