#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trocar/intervals.h"

namespace trocar {

// Statistics of repeated measurements that assume nothing of how they are distributed.

// The value below which a share `q` of the samples lies, interpolated. 0 for no samples.
double quantile(std::vector<double> samples, double q);

// Holds the true median with a probability of at least 95 %, by order statistics. With fewer than
// 6 samples no interval does: it is then that of all samples.
Interval median_interval(std::vector<double> samples);

// Holds the median of as many samples taken at another time with a probability of about 95 %. The
// samples are in the order in which they were taken: what is taken one after the other is alike, so
// stretches of the time are compared, not samples. With fewer than 6 it is that of all samples.
Interval rerun_interval(std::span<const double> samples);

// The first sample of the steady state: where a slower beginning is parted from the rest with the
// least absolute deviation from the two medians. 0: there is no such beginning. At most half of
// the samples are taken for one.
std::size_t steady_start(std::span<const double> samples);

// The indices of the middle half of the samples, by size; of all when there are fewer than 4. In
// order.
std::vector<std::size_t> middle_half(std::span<const double> samples);

// How likely two sets of samples would differ at least as much if they were of one distribution:
// Mann-Whitney's U, two-sided, normal approximation with ties. 1 when either is empty.
double same_distribution(std::span<const double> a, std::span<const double> b);

}  // namespace trocar
