#pragma once

#include <cstddef>
#include <limits>
#include <span>

namespace trocar {

// What one pass over finite numbers gives.
struct NumberSums {
    std::size_t count = 0;
    std::size_t zeros = 0;
    std::size_t denormals = 0;
    double min = std::numeric_limits<double>::infinity();
    double max = -std::numeric_limits<double>::infinity();
    double sum = 0;
    double sum_abs = 0;
    double sum_squares = 0;
    double squared_deviations = 0;  // from the mean of these numbers
    bool finite = true;             // false: the rest means nothing
};

// `smallest_normal`: numbers below it in magnitude are denormals of the type they were stored as.
// Uses the CPU's vectors; the additions are made in the same order with all of them.
enum class Vectors { best, portable };
NumberSums sums_of(std::span<const float> numbers, float smallest_normal,
                   Vectors vectors = Vectors::best);
NumberSums sums_of(std::span<const double> numbers, double smallest_normal,
                   Vectors vectors = Vectors::best);

// The largest magnitude; not finite when one of the numbers is not.
float largest_magnitude(std::span<const float> numbers);
double largest_magnitude(std::span<const double> numbers);

}  // namespace trocar
