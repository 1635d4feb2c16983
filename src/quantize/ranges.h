#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace trocar::quantizing {

// Magnitudes of numbers, counted in equal bins from 0 to `edge`. Zeros are counted apart: they are
// never rounded.
class Histogram {
public:
    static constexpr std::size_t bins = 2048;

    Histogram() = default;
    explicit Histogram(double edge) : edge_(edge), counts_(bins, 0), negative_(bins, 0) {}
    void add(std::span<const float> numbers);

    // The magnitude that this share of the numbers does not exceed.
    double percentile(double share) const;
    // The edge for which the distribution in the steps of 8 bits is nearest to the whole one, for
    // numbers from `low` to `high`: what lies on one side of 0 alone has steps of half the size.
    double least_divergence(double low, double high) const;
    // The range within `low` and `high` for which numbers in those steps have the smallest mean
    // squared error; both ends are looked for.
    std::pair<double, double> least_error(double low, double high) const;

private:
    double edge_ = 0;
    std::uint64_t zeros_ = 0;
    std::vector<std::uint64_t> counts_;
    std::vector<std::uint64_t> negative_;  // among them
};

// Scale and zero point for 8-bit integers: 0 is always one of the numbers.
struct Affine {
    float scale = 1;
    std::int32_t zero_point = 0;
};
Affine affine_int8(double low, double high);

}  // namespace trocar::quantizing
