#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "trocar/dtype.h"
#include "trocar/tensor.h"

namespace trocar {

// Elements of dense tensors as numbers. A complex element counts as two: its real and its imaginary
// part, in this order. 64-bit integers beyond 2^53 are rounded.

// Can `decode` and `encode` work on this type? Not on strings, undefined and unknown types.
bool is_numeric(DType dtype);

// How many numbers `count` elements are: twice as many for complex types.
std::size_t number_count(DType dtype, std::size_t count);

// Numbers `first`, `first` + 1… of `bytes` into `numbers`. The bytes must hold them.
void decode(DType dtype, Bytes bytes, std::size_t first, std::span<double> numbers);

// The opposite: rounded to nearest, ties to even. What is too large for the type becomes infinity
// where it has one and its largest number otherwise; integers are clamped, NaN becomes 0 there.
void encode(DType dtype, std::span<const double> numbers, std::size_t first,
            std::span<std::byte> bytes);

// All numbers of a constant, one that is sparse written out; and a constant of numbers.
std::vector<double> numbers_of(const Constant& constant);
Constant constant_of_numbers(DType dtype, const Shape& shape, std::span<const double> numbers);

// The smallest and the largest finite number of the type.
struct Range {
    double low = 0;
    double high = 0;
};
Range range(DType dtype);

// What is smaller in magnitude, but not 0, is a denormal number of the type; 0 for types without.
double smallest_normal(DType dtype);

}  // namespace trocar
