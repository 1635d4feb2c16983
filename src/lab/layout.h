#pragma once

#include <string>

#include "trocar/difference.h"
#include "trocar/value.h"

namespace trocar::lab {

// Do the elements that were found, in the order in which they stand in memory, agree with those of
// the reference in another order of its axes? "looks like a transposed layout (NHWC): matches after
// perm [0,2,3,1]", where perm is that of a Transpose of the reference; empty when there is none.
std::string layout_hint(const Value& reference, const Value& found, const Tolerance& tolerance);

}  // namespace trocar::lab
