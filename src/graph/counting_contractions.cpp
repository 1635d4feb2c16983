#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graph/counting_rules.h"
#include "trocar/error.h"
#include "util/text.h"

// Convolutions, products of matrices and recurrent layers: the ops whose work is MACs.
namespace trocar::counting {
namespace {

std::span<const std::int64_t> tail(const Shape& shape, std::size_t from) {
    if (shape.size() < from) {
        misfit("an input has too few dimensions");
    }
    return std::span(shape).subspan(from);
}

// Padding counts as if it were data: every output element sums over the whole kernel.
Work convolution(const OpFacts& facts, std::size_t kernel, std::size_t bias) {
    Number out = elements(output(facts, 0));
    return {out * product(tail(input(facts, kernel), 1)), has_input(facts, bias) ? out : Number(0)};
}

Work conv(const OpFacts& facts) {
    return convolution(facts, 1, 2);
}

// Conv with Add and activation in one: one operation per element each.
Work fused_conv(const OpFacts& facts) {
    Work work = convolution(facts, 1, 2);
    Number out = elements(output(facts, 0));
    if (has_input(facts, 3)) {
        work.other += out;
    }
    if (facts.op->attribute("activation") != nullptr) {
        work.other += out;
    }
    return work;
}

// Every input element meets the kernel once.
Work conv_transpose(const OpFacts& facts) {
    return {elements(input(facts, 0)) * product(tail(input(facts, 1), 1)),
            has_input(facts, 2) ? elements(output(facts, 0)) : Number(0)};
}

// Zero points: one subtraction per element of each operand that has one.
Work zero_points(const OpFacts& facts, Work work, std::size_t a_zero, std::size_t b_zero) {
    if (has_input(facts, a_zero)) {
        work.other += elements(input(facts, 0));
    }
    if (has_input(facts, b_zero)) {
        work.other += elements(input(facts, 1));
    }
    return work;
}

Work conv_integer(const OpFacts& facts) {
    return zero_points(facts, convolution(facts, 1, 99), 2, 3);
}

// Requantization: scale, round, add the zero point, saturate.
Work qlinear_conv(const OpFacts& facts) {
    Work work = convolution(facts, 3, 8);
    work.other += elements(output(facts, 0)) * 4;
    return work;
}

// Each kernel position of each input channel is read between four pixels (3 interpolations of 3
// operations), and weighted by the mask where there is one.
Work deform_conv(const OpFacts& facts) {
    Work work = convolution(facts, 1, 3);
    const Shape& kernel = input(facts, 1);
    const Shape& out = output(facts, 0);
    Number samples =
        dim(out, 0) * product(tail(out, 2)) * dim(input(facts, 0), 1) * product(tail(kernel, 2));
    work.other += samples * (has_input(facts, 4) ? 10 : 9);
    return work;
}

// The summed dimension of a matrix product is the last one of its first operand.
Work matmul_at(const OpFacts& facts, std::size_t a, bool transposed = false) {
    const Shape& left = input(facts, a);
    if (left.empty()) {
        misfit("a matrix product of a scalar");
    }
    Number inner = transposed && left.size() >= 2 ? dim(left, left.size() - 2) : last(left);
    return {elements(output(facts, 0)) * inner, 0};
}

Work matmul(const OpFacts& facts) {
    return matmul_at(facts, 0);
}

Work matmul_integer(const OpFacts& facts) {
    return zero_points(facts, matmul_at(facts, 0), 2, 3);
}

Work qlinear_matmul(const OpFacts& facts) {
    Work work = matmul_at(facts, 0);
    work.other += elements(output(facts, 0)) * 4;
    return work;
}

float real(const Op& op, std::string_view name, float otherwise) {
    const Attribute* attribute = op.attribute(name);
    const float* value = attribute ? std::get_if<float>(&attribute->value) : nullptr;
    return value ? *value : otherwise;
}

Work gemm(const OpFacts& facts) {
    const Shape& a = input(facts, 0);
    Number inner = dim(a, facts.op->integer("transA", 0) != 0 ? 0 : 1);
    Number out = elements(output(facts, 0));
    Work work{out * inner, 0};
    if (real(*facts.op, "alpha", 1) != 1) {
        work.other += out;
    }
    if (has_input(facts, 2)) {
        work.other += out;
        if (real(*facts.op, "beta", 1) != 1) {
            work.other += elements(input(facts, 2));
        }
    }
    if (facts.op->attribute("activation") != nullptr) {  // com.microsoft FusedGemm
        work.other += out;
    }
    return work;
}

// QGemm: A, its scale and zero point, B, its scale and zero point, C…
Work qgemm(const OpFacts& facts) {
    Number out = elements(output(facts, 0));
    Number inner = dim(input(facts, 0), facts.op->integer("transA", 0) != 0 ? 0 : 1);
    return {out * inner, out * (has_input(facts, 6) ? 5 : 4)};
}

Work fused_matmul(const OpFacts& facts) {
    Work work = matmul_at(facts, 0, facts.op->integer("transA", 0) != 0);
    if (real(*facts.op, "alpha", 1) != 1) {
        work.other += elements(output(facts, 0));
    }
    return work;
}

// A product whose second operand or result is scaled afterwards: one multiplication per element,
// and one addition where there is a bias.
Work scaled_matmul(const OpFacts& facts) {
    Work work = matmul_at(facts, 0);
    work.other = elements(output(facts, 0)) * 2;
    return work;
}

// The weights are unpacked on the way: subtract the zero point, multiply by the scale.
Work matmul_nbits(const OpFacts& facts) {
    Number k = facts.op->integer("K", 0);
    Number n = facts.op->integer("N", 0);
    if (k.value() == 0 || n.value() == 0) {
        misfit("the attributes K and N are missing");
    }
    Work work{elements(output(facts, 0)) * k, k * n * 2};
    if (has_input(facts, 5)) {
        work.other += elements(output(facts, 0));
    }
    return work;
}

// --- Einsum
// ---------------------------------------------------------------------------------------

// The indices of one operand, those behind "..." numbered from the right as '0', '1'…
std::string indices(std::string_view term, std::size_t rank) {
    std::string letters;
    std::size_t dots = std::string_view::npos;
    for (std::size_t i = 0; i < term.size(); ++i) {
        if (term[i] == '.') {
            if (dots == std::string_view::npos) {
                dots = letters.size();
            }
        } else if (term[i] != ' ') {
            letters += term[i];
        }
    }
    if (dots == std::string_view::npos) {
        if (letters.size() != rank) {
            misfit("the equation does not fit the rank of an input");
        }
        return letters;
    }
    if (letters.size() > rank || rank - letters.size() > 9) {
        misfit("the equation does not fit the rank of an input");
    }
    std::string hidden;
    for (std::size_t i = rank - letters.size(); i > 0; --i) {
        hidden += static_cast<char>('0' + i - 1);
    }
    return letters.insert(dots, hidden);
}

// Contracts the operands one after the other, from the left: each step costs the product of the
// extents of all indices it sees; it is MACs where it sums, plain multiplications where it does
// not.
Work einsum(const OpFacts& facts) {
    std::string equation = facts.op->text("equation", "");
    std::size_t arrow = equation.find("->");
    std::string_view left = std::string_view(equation).substr(0, arrow);
    std::map<char, std::int64_t> extent;
    std::vector<std::string> operands;
    for (std::size_t slot = 0; slot < facts.inputs.size(); ++slot) {
        std::size_t comma = left.find(',');
        const Shape& shape = input(facts, slot);
        operands.push_back(indices(left.substr(0, comma), shape.size()));
        for (std::size_t i = 0; i < shape.size(); ++i) {
            std::int64_t& e = extent.try_emplace(operands.back()[i], shape[i]).first->second;
            e = e == 1 ? shape[i] : e;
        }
        left = comma == std::string_view::npos ? std::string_view() : left.substr(comma + 1);
    }
    if (operands.empty()) {
        misfit("there is no operand");
    }
    std::string result;
    if (arrow != std::string::npos) {
        std::string_view right = std::string_view(equation).substr(arrow + 2);
        result = indices(right, output(facts, 0).size());
    } else {  // implicit: the indices that occur once, and those behind "..."
        std::string all = fmt::format("{}", join(operands, ""));
        for (auto [letter, unused] : extent) {
            if (std::count(all.begin(), all.end(), letter) == 1 ||
                (letter >= '0' && letter <= '9')) {
                result += letter;
            }
        }
    }

    auto volume = [&](const std::string& letters) {
        Number n = 1;
        for (char letter : letters) {
            n *= extent[letter];
        }
        return n;
    };
    auto distinct = [](std::string letters) {
        std::sort(letters.begin(), letters.end());
        letters.erase(std::unique(letters.begin(), letters.end()), letters.end());
        return letters;
    };
    Work work;
    std::string current = distinct(operands[0]);
    for (std::size_t i = 1; i <= operands.size(); ++i) {
        bool single = i == operands.size();
        if (single && i > 1) {
            break;
        }
        std::string seen = single ? current : distinct(current + operands[i]);
        std::string needed = result;
        for (std::size_t later = i + 1; later < operands.size(); ++later) {
            needed += operands[later];
        }
        std::string kept;
        for (char letter : seen) {
            if (needed.find(letter) != std::string::npos) {
                kept += letter;
            }
        }
        bool sums = kept.size() < seen.size();
        if (single) {  // one operand: sums are additions, the rest moves data
            work.other += sums ? volume(seen) - volume(kept) : Number(0);
        } else if (sums) {
            work.macs += volume(seen);
        } else {
            work.other += volume(seen);
        }
        current = kept;
    }
    return work;
}

// --- Recurrent layers
// -----------------------------------------------------------------------------

// Of one step and one hidden unit: gates with a product each, and the operations besides (biases
// and the sum of both products for each gate, activations at 4 for a sigmoid and 1 for tanh, the
// update).
struct Cell {
    int gates;
    int other;
};

Work recurrent(const OpFacts& facts, Cell cell) {
    const Shape& x = input(facts, 0);
    const Shape& w = input(facts, 1);
    const Shape& r = input(facts, 2);
    if (x.size() != 3 || w.size() != 3 || r.size() != 3) {
        misfit("X, W and R must have three dimensions");
    }
    Number steps = Number(x[0]) * x[1];  // sequence × batch, in either layout
    Number hidden = r[2];
    Number units = steps * w[0] * hidden;  // w[0]: directions
    Work work{units * cell.gates * (Number(x[2]) + hidden), units * cell.other};
    if (has_input(facts, 3)) {
        work.other += units * cell.gates * 2;
    }
    if (has_input(facts, 7)) {  // peepholes of LSTM
        work.other += units * 6;
    }
    return work;
}

Work lstm(const OpFacts& facts) {
    return recurrent(facts, {4, 4 + 3 * 4 + 2 + 4});
}
Work gru(const OpFacts& facts) {
    return recurrent(facts, {3, 3 + 2 * 4 + 1 + 5});
}
Work rnn(const OpFacts& facts) {
    return recurrent(facts, {1, 1 + 1});
}

// X [N, features] against coefficients of `classes` rows.
Work linear_model(const OpFacts& facts) {
    const Attribute* a = facts.op->attribute("coefficients");
    const auto* coefficients = a ? std::get_if<std::vector<float>>(&a->value) : nullptr;
    if (coefficients == nullptr) {
        misfit("the attribute coefficients is missing");
    }
    const Shape& x = input(facts, 0);
    Number rows = x.size() < 2 ? Number(1) : dim(x, 0);
    return {rows * Number::of(coefficients->size()), rows};
}

constexpr NamedRule onnx_contractions[] = {
    {"Conv", conv},
    {"ConvInteger", conv_integer},
    {"ConvTranspose", conv_transpose},
    {"DeformConv", deform_conv},
    {"Einsum", einsum},
    {"GRU", gru},
    {"Gemm", gemm},
    {"LSTM", lstm},
    {"MatMul", matmul},
    {"MatMulInteger", matmul_integer},
    {"QLinearConv", qlinear_conv},
    {"QLinearMatMul", qlinear_matmul},
    {"RNN", rnn},
};

constexpr NamedRule microsoft_contractions[] = {
    {"ConvTransposeWithDynamicPads", conv_transpose},
    {"DynamicQuantizeMatMul", scaled_matmul},
    {"FusedConv", fused_conv},
    {"FusedGemm", gemm},
    {"FusedMatMul", fused_matmul},
    {"MatMulInteger16", matmul},
    {"MatMulIntegerToFloat", scaled_matmul},
    {"MatMulNBits", matmul_nbits},
    {"NhwcFusedConv", fused_conv},
    {"QGemm", qgemm},
    {"QLinearConv", qlinear_conv},
    {"TransposeMatMul", fused_matmul},
};

constexpr NamedRule ml_rules[] = {
    {"LinearClassifier", linear_model},
    {"LinearRegressor", linear_model},
};

}  // namespace

std::span<const NamedRule> contraction_rules(std::string_view domain) {
    if (domain.empty()) {
        return onnx_contractions;
    }
    if (domain == "com.microsoft") {
        return microsoft_contractions;
    }
    return domain == "ai.onnx.ml" ? std::span<const NamedRule>(ml_rules)
                                  : std::span<const NamedRule>();
}

}  // namespace trocar::counting
