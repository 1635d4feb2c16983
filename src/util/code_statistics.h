#pragma once

#include <cstddef>

#include "trocar/statistics.h"

namespace trocar {

// Types of at most 8 bits: how often each of their codes occurs tells everything about a tensor,
// exactly, whatever its size.
bool counts_codes(DType dtype);

// For types for which `counts_codes`.
Statistics statistics_of_codes(DType dtype, Bytes bytes, std::size_t element_count,
                               bool with_distribution);

}  // namespace trocar
