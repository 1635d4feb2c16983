#pragma once

#include "trocar/difference.h"
#include "util/tensor_pair.h"

namespace trocar {

// What a Difference says of channels and of rows. All else that it has must be known.

void find_worst_channel(const TensorPair& pair, const Shape& shape, const Tolerance& tolerance,
                        Difference& found);

void compare_rows(const TensorPair& pair, const Shape& shape, std::size_t top_k, Difference& found);

}  // namespace trocar
