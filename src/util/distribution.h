#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trocar/statistics.h"

namespace trocar {

// Of all `numbers`, which are finite and between `min` and `max`; at least one.
Distribution distribution_of(std::span<const double> numbers, double min, double max);

struct WeightedNumber {
    double number;
    std::uint64_t weight;
};

// The same of numbers that occur more than once; in ascending order, finite, at least one.
Distribution distribution_of(std::span<const WeightedNumber> numbers);

}  // namespace trocar
