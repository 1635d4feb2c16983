#pragma once

#include "engines/reference/arrays.h"

namespace trocar::reference {

// The softmax, or its logarithm, of the numbers at x[steps[i]], in place.
void softmax_line(double* x, const Indices& steps, bool logarithm);

}  // namespace trocar::reference
