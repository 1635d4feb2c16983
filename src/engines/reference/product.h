#pragma once

#include "engines/reference/arrays.h"

namespace trocar::reference {

// c[m, n] += a[m, k] · b[k, n]: rows of a and b lie end to end, those of c `c_stride` apart. Every
// sum runs over k in order.
struct Product {
    std::size_t m = 0;
    std::size_t k = 0;
    std::size_t n = 0;
};
void multiply_add(const Product& size, const double* a, const double* b, double* c,
                  std::size_t c_stride);

Numbers transposed(const Numbers& matrix, std::size_t rows, std::size_t columns);

// The product of tensors as MatMul has it: matrices in the last two dimensions, the others
// broadcast, a vector a matrix for the time being.
struct MatrixProduct {
    Shape shape;
    Numbers numbers;
};
MatrixProduct matrix_product(const Numbers& a, Shape a_shape, const Numbers& b, Shape b_shape);

}  // namespace trocar::reference
