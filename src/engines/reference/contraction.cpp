// Sums of products: matrices, and einsum for all else.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "engines/reference/call.h"
#include "engines/reference/product.h"

namespace trocar::reference {

namespace {

// Integers are multiplied in double where no sum can leave its exact range.
bool is_exact(const Call& call, std::size_t slot) {
    return is_float(call.dtype(slot)) || bits(call.dtype(slot)) <= 16;
}

// 32- and 64-bit integers: sums wrap around.
void integer_matmul(Call& call) {
    const auto low = [](const Integers& x, int shift) {
        Numbers part;
        for (const auto v : x) {
            part.push_back(static_cast<double>((static_cast<std::uint64_t>(v) >> shift) & 0xffff));
        }
        return part;
    };
    // Digits of 16 bits: their products and sums are exact in double.
    const auto a = call.integers(0);
    const auto b = call.integers(1);
    Shape shape;
    std::vector<std::uint64_t> sums;
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; i + j < 4; ++j) {
            auto part =
                matrix_product(low(a, 16 * i), call.shape(0), low(b, 16 * j), call.shape(1));
            sums.resize(part.numbers.size());
            for (std::size_t k = 0; k < sums.size(); ++k) {
                sums[k] += static_cast<std::uint64_t>(part.numbers[k]) << (16 * (i + j));
            }
            shape = part.shape;
        }
    }
    call.give(0, call.dtype(0), shape, sums);
}

void matmul(Call& call) {
    require(call.dtype(0) == call.dtype(1), "the inputs are of different types");
    if (!is_exact(call, 0)) {
        integer_matmul(call);
        return;
    }
    const auto made =
        matrix_product(call.numbers(0), call.shape(0), call.numbers(1), call.shape(1));
    call.give(0, call.dtype(0), made.shape, made.numbers);
}

// Zero points: one for all, or one per row of the first matrix and column of the second.
void subtract_zero_point(const Call& call, std::size_t slot, Numbers& x, const Shape& shape,
                         bool rows) {
    if (!call.has(slot)) {
        return;
    }
    auto zero_shape = call.shape(slot);
    if (rows && zero_shape.size() == 1 && shape.size() >= 2) {
        zero_shape.push_back(1);
    }
    const auto zero = call.numbers(slot);
    const auto from = spread(zero_shape, shape);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] -= zero[from[i]];
    }
}

void matmul_integer(Call& call) {
    auto a = call.numbers(0);
    auto b = call.numbers(1);
    require(bits(call.dtype(0)) <= 8 && bits(call.dtype(1)) <= 8, "8-bit integers are wanted");
    subtract_zero_point(call, 2, a, call.shape(0), true);
    subtract_zero_point(call, 3, b, call.shape(1), false);
    const auto made = matrix_product(a, call.shape(0), b, call.shape(1));
    call.give(0, DType::i32, made.shape, made.numbers);
}

void gemm(Call& call) {
    const auto dtype = call.dtype(0);
    auto a = call.numbers(0);
    auto b = call.numbers(1);
    auto a_shape = call.shape(0);
    auto b_shape = call.shape(1);
    require(a_shape.size() == 2 && b_shape.size() == 2, "two matrices are wanted");
    if (call.integer("transA", 0) != 0) {
        a = transposed(a, to_size(a_shape[0]), to_size(a_shape[1]));
        std::swap(a_shape[0], a_shape[1]);
    }
    if (call.integer("transB", 0) != 0) {
        b = transposed(b, to_size(b_shape[0]), to_size(b_shape[1]));
        std::swap(b_shape[0], b_shape[1]);
    }
    auto made = matrix_product(a, a_shape, b, b_shape);
    const auto alpha = call.number("alpha", 1);
    for (auto& x : made.numbers) {
        x *= alpha;
    }
    if (call.has(2)) {
        const auto beta = call.number("beta", 1);
        const auto c = call.numbers(2);
        const auto from = spread(call.shape(2), made.shape);
        for (std::size_t i = 0; i < made.numbers.size(); ++i) {
            made.numbers[i] += beta * c[from[i]];
        }
    }
    call.give(0, dtype, made.shape, made.numbers);
}

// --- Einsum -------------------------------------------------------------------------------------

// Names of dimensions: letters, and numbers from the right for those of an ellipsis.
using Subscript = std::vector<int>;

class Equation {
public:
    Equation(const std::string& text, const std::vector<Shape>& shapes) {
        std::string plain;
        std::copy_if(text.begin(), text.end(), std::back_inserter(plain),
                     [](unsigned char c) { return std::isspace(c) == 0; });
        const auto arrow = plain.find("->");
        read_operands(plain.substr(0, arrow), shapes);
        if (arrow != std::string::npos) {
            output_ = read_term(plain.substr(arrow + 2), hidden_);
        } else {
            imply_output();
        }
    }

    // Strides of one operand along dimensions of the given names.
    Integers strides(std::size_t operand, const Subscript& names) const {
        const auto own = strides_of(shapes_[operand]);
        Integers found(names.size(), 0);
        for (std::size_t i = 0; i < names.size(); ++i) {
            for (std::size_t d = 0; d < own.size(); ++d) {
                if (terms_[operand][d] == names[i] && shapes_[operand][d] != 1) {
                    found[i] += own[d];
                }
            }
        }
        return found;
    }

    const Subscript& output() const { return output_; }
    Subscript summed() const {
        Subscript names;
        for (const auto& [name, size] : sizes_) {
            if (std::find(output_.begin(), output_.end(), name) == output_.end()) {
                names.push_back(name);
            }
        }
        return names;
    }
    Shape shape(const Subscript& names) const {
        Shape shape;
        for (const auto name : names) {
            const auto found = sizes_.find(name);
            require(found != sizes_.end(), "the output names a dimension that no input has");
            shape.push_back(found->second);
        }
        return shape;
    }

private:
    // A term with `hidden` dimensions for its ellipsis.
    static Subscript read_term(const std::string& term, std::size_t hidden) {
        Subscript names;
        for (std::size_t i = 0; i < term.size(); ++i) {
            if (term.compare(i, 3, "...") == 0) {
                for (std::size_t h = hidden; h > 0; --h) {
                    names.push_back(-static_cast<int>(h));
                }
                i += 2;
            } else {
                require(std::isalpha(static_cast<unsigned char>(term[i])) != 0,
                        "the equation is not understood");
                names.push_back(term[i]);
            }
        }
        return names;
    }

    void read_operands(const std::string& left, const std::vector<Shape>& shapes) {
        std::size_t start = 0;
        for (const auto& shape : shapes) {
            require(start <= left.size(), "the equation has fewer terms than there are inputs");
            const auto comma = std::min(left.find(',', start), left.size());
            const auto term = left.substr(start, comma - start);
            start = comma + 1;
            const bool ellipsis = term.find("...") != std::string::npos;
            const auto letters = term.size() - (ellipsis ? 3 : 0);
            require(letters <= shape.size(), "a term has more dimensions than its input");
            const auto hidden = ellipsis ? shape.size() - letters : 0;
            hidden_ = std::max(hidden_, hidden);
            auto names = read_term(term, hidden);
            require(names.size() == shape.size(), "a term has another rank than its input");
            for (std::size_t i = 0; i < names.size(); ++i) {
                auto& size = sizes_.try_emplace(names[i], 1).first->second;
                require(size == 1 || shape[i] == 1 || size == shape[i],
                        "a name stands for dimensions of different sizes");
                size = shape[i] == 1 ? size : shape[i];
            }
            counts_.insert(counts_.end(), names.begin(), names.end());
            terms_.push_back(std::move(names));
            shapes_.push_back(shape);
        }
        require(start > left.size(), "the equation has more terms than there are inputs");
    }

    // Hidden dimensions first, then the letters that occur once.
    void imply_output() {
        for (const auto& [name, size] : sizes_) {
            if (name < 0 || std::count(counts_.begin(), counts_.end(), name) == 1) {
                output_.push_back(name);
            }
        }
    }

    std::vector<Subscript> terms_;
    std::vector<Shape> shapes_;
    std::map<int, std::int64_t> sizes_;
    std::vector<int> counts_;
    std::size_t hidden_ = 0;
    Subscript output_;
};

void einsum(Call& call) {
    std::vector<Shape> shapes;
    for (std::size_t i = 0; i < call.input_count(); ++i) {
        shapes.push_back(call.shape(i));
    }
    const Equation equation(call.text("equation", ""), shapes);
    const auto shape = equation.shape(equation.output());
    const auto summed = equation.summed();
    const auto inner = equation.shape(summed);
    std::vector<Indices> outer_places;
    std::vector<Indices> inner_places;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        outer_places.push_back(strided(shape, equation.strides(i, equation.output())));
        inner_places.push_back(strided(inner, equation.strides(i, summed)));
    }
    with_number(call.dtype(0), [&](auto zero) {
        using T = decltype(zero);
        using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
        std::vector<std::vector<T>> x;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            require(call.dtype(i) == call.dtype(0), "the inputs are of different types");
            x.push_back(read<T>(call.tensor(i)));
        }
        std::vector<Wide> made(count(shape), 0);
        for (std::size_t o = 0; o < made.size(); ++o) {
            for (std::size_t s = 0; s < count(inner); ++s) {
                Wide product = 1;
                for (std::size_t i = 0; i < x.size(); ++i) {
                    product *= static_cast<Wide>(x[i][outer_places[i][o] + inner_places[i][s]]);
                }
                made[o] += product;
            }
        }
        call.give(0, call.dtype(0), shape, made);
    });
}

// --- Det ----------------------------------------------------------------------------------------

double determinant(Numbers matrix, std::size_t n) {
    double result = 1;
    for (std::size_t i = 0; i < n; ++i) {
        std::size_t best = i;
        for (std::size_t r = i; r < n; ++r) {
            best = std::abs(matrix[r * n + i]) > std::abs(matrix[best * n + i]) ? r : best;
        }
        const double pivot = matrix[best * n + i];
        if (pivot == 0) {
            return 0;
        }
        if (best != i) {
            std::swap_ranges(matrix.begin() + to_integer(i * n),
                             matrix.begin() + to_integer((i + 1) * n),
                             matrix.begin() + to_integer(best * n));
            result = -result;
        }
        result *= pivot;
        for (std::size_t r = i + 1; r < n; ++r) {
            const double factor = matrix[r * n + i] / pivot;
            for (std::size_t c = i; c < n; ++c) {
                matrix[r * n + c] -= factor * matrix[i * n + c];
            }
        }
    }
    return result;
}

void det(Call& call) {
    const auto shape = call.shape(0);
    require(shape.size() >= 2 && shape.back() == shape[shape.size() - 2],
            "square matrices are wanted");
    const auto n = to_size(shape.back());
    const auto x = call.numbers(0);
    const Shape batch(shape.begin(), shape.end() - 2);
    Numbers made;
    for (std::size_t i = 0; i < count(batch); ++i) {
        const auto start = x.begin() + to_integer(i * n * n);
        made.push_back(determinant(Numbers(start, start + to_integer(n * n)), n));
    }
    call.give(0, call.dtype(0), batch, made);
}

}  // namespace

std::span<const Entry> contraction_ops() {
    static constexpr Entry ops[]{
        {"Det", det},
        {"Einsum", einsum},
        {"Gemm", gemm},
        {"MatMul", matmul},
        {"MatMulInteger", matmul_integer},
    };
    return ops;
}

}  // namespace trocar::reference
