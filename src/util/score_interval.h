#pragma once

#include "trocar/intervals.h"

namespace trocar {

// The quantile of a standard normal number for two-sided `confidence`: 1.96 for 0.95. Throws
// Error(usage) unless it lies between 0 and 1.
double two_sided(double confidence);

// Wilson's interval for a rate known from `trials`, which may be fractional or infinite; `z` is the
// quantile. [0, 1] without trials.
Interval score_interval(double rate, double trials, double z);

// Trials with replacement that say as much as these do without.
double corrected_trials(double trials, double sampled, double population);

}  // namespace trocar
