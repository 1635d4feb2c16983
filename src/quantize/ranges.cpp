#include "quantize/ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace trocar::quantizing {

namespace {

constexpr std::size_t fewest = 128;  // bins that are looked at as a range
constexpr std::size_t stride = 16;
constexpr double codes = 255;  // steps from the smallest integer to the largest

// How wide a range is when it is cut off at a magnitude.
double width(double edge, double low, double high) {
    return std::min(std::max(high, 0.0), edge) + std::min(std::max(-low, 0.0), edge);
}

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
            const auto bin = std::min(bins - 1, static_cast<std::size_t>(place));
            ++counts_[bin];
            negative_[bin] += number < 0 ? 1 : 0;
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

double Histogram::least_divergence(double low, double high) const {
    const double total =
        static_cast<double>(std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0}));
    if (total == 0) {
        return edge_;
    }
    double best = std::numeric_limits<double>::infinity();
    std::size_t kept = bins;
    std::vector<double> p;
    for (std::size_t end = fewest; end <= bins; end += stride) {
        const double edge = edge_ * static_cast<double>(end) / static_cast<double>(bins);
        // Steps between 0 and the edge; with more of them than bins nothing could be told apart.
        const auto steps =
            static_cast<std::size_t>(std::lround(codes * edge / width(edge, low, high)));
        if (steps > end) {
            continue;
        }
        p.assign(counts_.begin(), counts_.begin() + static_cast<std::ptrdiff_t>(end));
        double beyond = 0;
        for (std::size_t i = end; i < bins; ++i) {
            beyond += static_cast<double>(counts_[i]);
        }
        p.back() += beyond;  // what is cut off ends in the last step
        // In steps, spread evenly over those bins of a step that hold anything.
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

std::pair<double, double> Histogram::least_error(double low, double high) const {
    if (!(edge_ > 0)) {
        return {low, high};
    }
    const double bin = edge_ / static_cast<double>(bins);
    // What numbers beyond the first `end` bins of a side lose when they are cut off there.
    const auto losses = [&](bool below) {
        std::vector<double> lost(bins + 1, 0);
        double count = 0;
        double sum = 0;
        double squares = 0;
        for (std::size_t end = bins; end-- > 0;) {
            const auto some =
                static_cast<double>(below ? negative_[end] : counts_[end] - negative_[end]);
            const double number = bin * (static_cast<double>(end) + 0.5);
            count += some;
            sum += some * number;
            squares += some * number * number;
            const double at = bin * static_cast<double>(end);
            lost[end] = squares - 2 * at * sum + at * at * count;
        }
        return lost;
    };
    const auto lost_below = losses(true);
    const auto lost_above = losses(false);
    // Ends that are looked at: the outermost number, and each `stride` bins further in.
    const auto ends = [&](double outermost) {
        std::vector<std::pair<std::size_t, double>> all{{bins, outermost}};
        for (std::size_t end = fewest; end < bins; end += stride) {
            if (bin * static_cast<double>(end) < outermost) {
                all.emplace_back(end, bin * static_cast<double>(end));
            }
        }
        return all;
    };
    const auto total =
        static_cast<double>(std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0}));
    double best = std::numeric_limits<double>::infinity();
    std::pair<double, double> chosen{low, high};
    for (const auto& [below, depth] : ends(std::max(-low, 0.0))) {
        for (const auto& [above, height] : ends(std::max(high, 0.0))) {
            const double step = (depth + height) / codes;
            const double error = lost_below[below] + lost_above[above] + total * step * step / 12;
            if (error < best) {
                best = error;
                chosen = {std::max(low, -depth), std::min(high, height)};
            }
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
