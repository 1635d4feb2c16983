#pragma once

#include "engines/reference/arrays.h"

// Indices as gathering and scattering ops give them.
namespace trocar::reference {

// A negative index counts from the end. Throws when it is outside.
std::int64_t place_in(std::int64_t at, std::int64_t size);

// For every index: the element of a tensor of `shape` at the index's own place, but with the
// index itself along the axis.
Indices element_places(const Shape& shape, const Shape& index_shape, std::size_t axis,
                       const Integers& indices);

// Blocks of a tensor, named by tuples of indices: the last dimension of `index_shape`.
struct Blocks {
    Indices starts;
    std::size_t block = 1;  // elements each
    Shape shape;            // of all blocks together
};
Blocks block_places(const Shape& shape, const Shape& index_shape, const Integers& indices,
                    std::int64_t batch_dims);

}  // namespace trocar::reference
