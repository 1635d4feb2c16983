#pragma once

#include <vector>

namespace trocar {

// How measured samples spread. All zero for no samples.
struct Spread {
    double median = 0;
    double deviation = 0;  // median absolute deviation from the median
    double least = 0;
    double greatest = 0;
};

Spread spread(std::vector<double> samples);

}  // namespace trocar
