#pragma once

#include <cstddef>
#include <vector>

#include "trocar/value.h"

namespace trocar {

// What a tensor's numbers are like. Least, greatest and mean are those of the finite numbers, and
// NaN when there are none. A complex element counts as two numbers.
struct NumberSummary {
    std::size_t count = 0;
    std::size_t nans = 0;
    std::size_t infinities = 0;
    double least = 0;
    double greatest = 0;
    double mean = 0;
};

// Of dense bytes of a type for which `is_numeric`.
NumberSummary summarize_numbers(DType dtype, Bytes bytes, std::size_t element_count);

// How measured samples spread. All zero for no samples.
struct Spread {
    double median = 0;
    double deviation = 0;  // median absolute deviation from the median
    double least = 0;
    double greatest = 0;
};

Spread spread(std::vector<double> samples);

}  // namespace trocar
