#include "engines/reference/product.h"

#include <algorithm>
#include <array>

namespace trocar::reference {

namespace {

// Columns at once: four rows of sums fit the first-level cache.
constexpr std::size_t block = 256;
constexpr std::size_t rows_at_once = 4;

// Sums of up to four rows over all k, kept on the stack so that the compiler knows nothing else
// points to them.
template <std::size_t rows>
void add_rows(const Product& size, const double* a, const double* b, std::size_t columns, double* c,
              std::size_t c_stride) {
    std::array<std::array<double, block>, rows> sums{};
    for (std::size_t k = 0; k < size.k; ++k) {
        const double* row = b + k * size.n;
        std::array<double, rows> factor{};
        for (std::size_t r = 0; r < rows; ++r) {
            factor[r] = a[r * size.k + k];
        }
        for (std::size_t i = 0; i < columns; ++i) {
            for (std::size_t r = 0; r < rows; ++r) {
                sums[r][i] += factor[r] * row[i];
            }
        }
    }
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t i = 0; i < columns; ++i) {
            c[r * c_stride + i] += sums[r][i];
        }
    }
}

}  // namespace

void multiply_add(const Product& size, const double* a, const double* b, double* c,
                  std::size_t c_stride) {
    for (std::size_t first = 0; first < size.n; first += block) {
        const auto columns = std::min(block, size.n - first);
        std::size_t row = 0;
        for (; row + rows_at_once <= size.m; row += rows_at_once) {
            add_rows<rows_at_once>(size, a + row * size.k, b + first, columns,
                                   c + row * c_stride + first, c_stride);
        }
        for (; row < size.m; ++row) {
            add_rows<1>(size, a + row * size.k, b + first, columns, c + row * c_stride + first,
                        c_stride);
        }
    }
}

Numbers transposed(const Numbers& matrix, std::size_t rows, std::size_t columns) {
    Numbers result(matrix.size());
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
            result[c * rows + r] = matrix[r * columns + c];
        }
    }
    return result;
}

MatrixProduct matrix_product(const Numbers& a, Shape a_shape, const Numbers& b, Shape b_shape) {
    require(!a_shape.empty() && !b_shape.empty(), "a matrix product of a scalar");
    const bool row = a_shape.size() == 1;
    const bool column = b_shape.size() == 1;
    if (row) {
        a_shape.insert(a_shape.begin(), 1);
    }
    if (column) {
        b_shape.push_back(1);
    }
    const auto m = a_shape[a_shape.size() - 2];
    const auto k = a_shape.back();
    const auto n = b_shape.back();
    require(b_shape[b_shape.size() - 2] == k, "the matrices do not fit together");
    const Shape a_batch(a_shape.begin(), a_shape.end() - 2);
    const Shape b_batch(b_shape.begin(), b_shape.end() - 2);
    const auto batch = broadcast(a_batch, b_batch);
    MatrixProduct result{batch, {}};
    result.shape.insert(result.shape.end(), {m, n});
    result.numbers.assign(count(result.shape), 0.0);
    const auto from_a = spread(a_batch, batch);
    const auto from_b = spread(b_batch, batch);
    const Product size{to_size(m), to_size(k), to_size(n)};
    for (std::size_t i = 0; i < from_a.size(); ++i) {
        multiply_add(size, a.data() + from_a[i] * size.m * size.k,
                     b.data() + from_b[i] * size.k * size.n,
                     result.numbers.data() + i * size.m * size.n, size.n);
    }
    if (column) {
        result.shape.pop_back();
    }
    if (row) {
        result.shape.erase(result.shape.end() - (column ? 1 : 2));
    }
    return result;
}

}  // namespace trocar::reference
