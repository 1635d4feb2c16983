#include "ops/predict_neighbours.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace trocar {
namespace {

constexpr std::size_t most_neighbours = 12;
// As if neighbours were this much farther from themselves: evens out noise of those side by side.
constexpr double nugget = 0.02;

// The log, continued below 1 by the line it touches there.
double log_ratio(double value) {
    return value >= 1 ? std::log(value) : value - 1;
}

template <class Values>
double length(const Values& a, const Values& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return std::sqrt(sum);
}

std::string group_of(const OpFeatures& features) {
    std::string text = features.type + '\n' + features.attributes + '\n' + features.dtype;
    std::vector<std::string> names;
    for (const auto& [name, value] : features.numbers) {
        names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
        text += '\n' + name;
    }
    return text;
}

// Gaussian elimination with pivots; the last column is the right side. False when singular.
bool solve(std::vector<std::vector<double>>& rows) {
    std::size_t n = rows.size();
    for (std::size_t i = 0; i < n; ++i) {
        std::size_t pivot = i;
        for (std::size_t below = i + 1; below < n; ++below) {
            if (std::abs(rows[below][i]) > std::abs(rows[pivot][i])) {
                pivot = below;
            }
        }
        if (std::abs(rows[pivot][i]) < 1e-12) {
            return false;
        }
        std::swap(rows[i], rows[pivot]);
        for (std::size_t other = 0; other < n; ++other) {
            if (other == i) {
                continue;
            }
            double factor = rows[other][i] / rows[i][i];
            for (std::size_t column = i; column <= n; ++column) {
                rows[other][column] -= factor * rows[i][column];
            }
        }
    }
    for (std::size_t i = 0; i < n; ++i) {
        rows[i][n] /= rows[i][i];
    }
    return true;
}

}  // namespace

OpNeighbours::OpNeighbours(const std::vector<OpSample>& samples) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
        texts_.emplace(samples[i].features.attributes, texts_.size());
        texts_.emplace(samples[i].features.dtype, texts_.size());
        points_.push_back(point(samples[i].features));
        groups_[group_of(samples[i].features)].push_back(i);
        types_[samples[i].features.type].push_back(i);
    }
    std::vector<double> gaps;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (types_[samples[i].features.type].size() > 1) {
            gaps.push_back(nearest(samples[i].features, i));
        }
    }
    if (gaps.empty()) {
        return;
    }
    std::nth_element(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2),
                     gaps.end());
    // A grid of samples side by side does not make its neighbourhood a strange place.
    unit_ = std::max(gaps[gaps.size() / 2], 0.1);
}

OpNeighbours::Point OpNeighbours::point(const OpFeatures& features) const {
    Point result;
    result.totals = {std::log1p(features.macs), std::log1p(features.input_bytes),
                     std::log1p(features.weight_bytes), std::log1p(features.output_bytes)};
    auto text = [&](const std::string& of) {
        auto found = texts_.find(of);
        return found == texts_.end() ? none : found->second;
    };
    result.attributes = text(features.attributes);
    result.dtype = text(features.dtype);
    std::vector<std::pair<std::string, double>> numbers = features.numbers;
    std::sort(numbers.begin(), numbers.end());
    for (const auto& [name, value] : numbers) {
        result.sizes.push_back(log_ratio(value));
    }
    if (numbers.empty()) {
        result.sizes.assign(result.totals.begin(), result.totals.end());
    }
    return result;
}

// Ordinary kriging with a linear variogram: no parameters to learn, exact at the samples, and in
// one dimension the line between the two next to it.
std::optional<OpNeighbours::Weights> OpNeighbours::around(const OpFeatures& features,
                                                          std::size_t skip) const {
    auto group = groups_.find(group_of(features));
    if (group == groups_.end()) {
        return std::nullopt;
    }
    Point at = point(features);
    std::vector<std::pair<double, std::size_t>> near;
    for (std::size_t i : group->second) {
        if (i != skip) {
            near.emplace_back(length(at.sizes, points_[i].sizes), i);
        }
    }
    if (near.empty()) {
        return std::nullopt;
    }
    std::size_t count = std::min(near.size(), most_neighbours);
    std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end());
    near.resize(count);

    std::vector<std::vector<double>> rows(count + 1, std::vector<double>(count + 2, 1.0));
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < count; ++k) {
            rows[i][k] = i == k
                             ? -nugget
                             : length(points_[near[i].second].sizes, points_[near[k].second].sizes);
        }
        rows[i][count + 1] = near[i].first;
    }
    rows[count][count] = 0;
    if (!solve(rows)) {
        return std::nullopt;
    }

    Weights result;
    double variance = rows[count][count + 1];
    std::vector<double> centre(at.sizes.size(), 0.0);
    for (std::size_t i = 0; i < count; ++i) {
        double weight = rows[i][count + 1];
        result.samples.emplace_back(near[i].second, weight);
        variance += weight * near[i].first;
        for (std::size_t k = 0; k < centre.size(); ++k) {
            centre[k] += weight * points_[near[i].second].sizes[k];
        }
    }
    // Inside of the hull, the weights bring the neighbours to where the operator is.
    if (length(centre, at.sizes) > 0.1 + 0.35 * near[0].first) {
        return std::nullopt;
    }
    result.width = std::sqrt(std::max(variance, 0.0));
    return result;
}

double OpNeighbours::apart(const Point& at, std::size_t sample) const {
    const Point& other = points_[sample];
    constexpr double other_text = 0.7;  // as much as twice the size
    return length(at.totals, other.totals) + (at.attributes == other.attributes ? 0 : other_text) +
           (at.dtype == other.dtype ? 0 : other_text);
}

double OpNeighbours::nearest(const OpFeatures& features, std::size_t skip) const {
    Point at = point(features);
    double least = std::numeric_limits<double>::infinity();
    if (const auto* same = of_type(features)) {
        for (std::size_t i : *same) {
            if (i != skip) {
                least = std::min(least, apart(at, i));
            }
        }
    }
    if (std::isfinite(least)) {
        return least;
    }
    for (std::size_t i = 0; i < points_.size(); ++i) {
        if (i != skip) {
            least = std::min(least, apart(at, i));
        }
    }
    // Another type is far, whatever its sizes.
    return std::isfinite(least) ? least + 10 * unit_ : 10 * unit_;
}

double OpNeighbours::distance(const OpFeatures& features, std::size_t skip) const {
    return nearest(features, skip) / unit_;
}

const std::vector<std::size_t>* OpNeighbours::of_type(const OpFeatures& features) const {
    auto found = types_.find(features.type);
    return found == types_.end() ? nullptr : &found->second;
}

double OpNeighbours::gap(std::size_t one, std::size_t other) const {
    return apart(points_[one], other) / unit_;
}

}  // namespace trocar
