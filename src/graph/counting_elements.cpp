#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/counting_rules.h"

// Ops whose work goes with the number of elements: arithmetic, activations, normalizations,
// pooling, reductions, interpolation. None of it is MACs.
namespace trocar::counting {
namespace {

using Of = ElementCost::Of;

// The number is that of elementary operations per element: additions, multiplications, divisions,
// comparisons, roundings, and functions such as exp, log, sqrt, sin, tanh and erf are one each.
constexpr ElementCost onnx_costs[] = {
    {"Abs", 1},
    {"Acos", 1},
    {"Acosh", 1},
    {"Add", 1},
    {"And", 1},
    {"ArgMax", 1, Of::input},
    {"ArgMin", 1, Of::input},
    {"Asin", 1},
    {"Asinh", 1},
    {"Atan", 1},
    {"Atanh", 1},
    {"BitShift", 1},
    {"BitwiseAnd", 1},
    {"BitwiseNot", 1},
    {"BitwiseOr", 1},
    {"BitwiseXor", 1},
    {"BlackmanWindow", 6},
    {"Ceil", 1},
    {"Celu", 5},
    {"Clip", 2},
    {"Cos", 1},
    {"Cosh", 1},
    {"CumProd", 1},
    {"CumSum", 1},
    {"DequantizeLinear", 2},
    {"Div", 1},
    {"DynamicQuantizeLinear", 6},  // minimum, maximum, then as QuantizeLinear
    {"Elu", 4},
    {"Equal", 1},
    {"Erf", 1},
    {"Exp", 1},
    {"Floor", 1},
    {"Greater", 1},
    {"GreaterOrEqual", 1},
    {"HammingWindow", 4},
    {"HannWindow", 4},
    {"HardSigmoid", 4},
    {"HardSwish", 5},
    {"Hardmax", 1},
    {"IsInf", 1},
    {"IsNaN", 1},
    {"LeakyRelu", 2},
    {"Less", 1},
    {"LessOrEqual", 1},
    {"Log", 1},
    {"LogSoftmax", 5},
    {"LpNormalization", 3},
    {"MeanVarianceNormalization", 5},
    {"Mish", 5},
    {"Mod", 1},
    {"Mul", 1},
    {"Neg", 1},
    {"NegativeLogLikelihoodLoss", 1},
    {"Not", 1},
    {"Or", 1},
    {"PRelu", 2},
    {"Pow", 1},
    {"QuantizeLinear", 4},  // scale, round, add the zero point, saturate
    {"Reciprocal", 1},
    {"Relu", 1},
    {"RotaryEmbedding", 3},
    {"Round", 1},
    {"Selu", 5},
    {"Shrink", 3},
    {"Sigmoid", 4},
    {"Sign", 1},
    {"Sin", 1},
    {"Sinh", 1},
    {"Softmax", 5},
    {"SoftmaxCrossEntropyLoss", 6, Of::input},
    {"Softplus", 3},
    {"Softsign", 3},
    {"Sqrt", 1},
    {"Sub", 1},
    {"Swish", 5},
    {"Tan", 1},
    {"Tanh", 1},
    {"ThresholdedRelu", 1},
    {"Xor", 1},
};

constexpr ElementCost microsoft_costs[] = {
    {"BiasAdd", 2},  // bias and skip
    {"BiasGelu", 6},
    {"BiasSoftmax", 6},
    {"ComplexMul", 3},  // six operations per complex element, which is two numbers
    {"ComplexMulConj", 3},
    {"DequantizeLinear", 2},
    {"FastGelu", 10},
    {"GatherBlockQuantized", 2},
    {"Gelu", 5},
    {"QLinearAdd", 9},  // two operands to reals, the operation, back
    {"QLinearLeakyRelu", 8},
    {"QLinearMul", 9},
    {"QLinearSigmoid", 10},
    {"QLinearSoftmax", 11},
    {"QuantizeLinear", 4},
    {"QuickGelu", 6},
    {"RotaryEmbedding", 3},
    {"SkipLayerNormalization", 8},
    {"SkipSimplifiedLayerNormalization", 5},
};

constexpr ElementCost ml_costs[] = {
    {"Binarizer", 1}, {"Imputer", 1}, {"Normalizer", 3}, {"Scaler", 2}};

// --- Rules that need more than a number
// -------------------------------------------------------------

Work per_element(Number elements_of, int cost) {
    return {0, elements_of * cost};
}

std::size_t input_count(const OpFacts& facts) {
    std::size_t count = 0;
    for (const TensorFacts& t : facts.inputs) {
        count += t.present ? 1 : 0;
    }
    return count;
}

Work variadic(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * (Number::of(input_count(facts)) - 1)};
}
Work variadic_mean(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * Number::of(input_count(facts))};
}

// Exact: x/√2, erf, +1, two products. With tanh: the cube, a weighted sum and the rest.
Work gelu(const OpFacts& facts) {
    return per_element(elements(output(facts, 0)),
                       facts.op->text("approximate", "none") == "tanh" ? 9 : 5);
}

// Inference folds scale and variance into one factor and one offset per channel; training works
// out mean and variance as well.
Work batch_normalization(const OpFacts& facts) {
    const Shape& x = input(facts, 0);
    if (facts.op->integer("training_mode", 0) != 0) {
        return per_element(elements(x), 7);
    }
    return {0, elements(x) * 2 + elements(input(facts, 1)) * 5};
}

// Mean, difference, square, its mean, factor: 5; scale and bias where there are any.
Work normalization(const OpFacts& facts) {
    int cost = 5 + (has_input(facts, 1) ? 1 : 0) + (has_input(facts, 2) ? 1 : 0);
    return per_element(elements(input(facts, 0)), cost);
}

Work rms_normalization(const OpFacts& facts) {
    return per_element(elements(input(facts, 0)), has_input(facts, 1) ? 4 : 3);
}

// A sum of squares over `size` channels, then bias, factor, power and quotient.
Work local_response(const OpFacts& facts) {
    Number size = facts.op->integer("size", 1);
    return {0, elements(input(facts, 0)) * (size * 2 + 4)};
}

Number window(const OpFacts& facts) {
    std::vector<std::int64_t> kernel = facts.op->integers("kernel_shape");
    if (kernel.empty()) {
        misfit("the attribute kernel_shape is missing");
    }
    return product(kernel);
}

Work max_pool(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * (window(facts) - 1)};
}
Work average_pool(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * window(facts)};
}
Work lp_pool(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * (window(facts) * 2 + 1)};
}
Work qlinear_average_pool(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * (window(facts) + 4)};
}
Work global_max_pool(const OpFacts& facts) {
    return {0, elements(input(facts, 0)) - elements(output(facts, 0))};
}
Work global_average_pool(const OpFacts& facts) {
    return {0, elements(input(facts, 0))};
}
Work global_lp_pool(const OpFacts& facts) {
    return {0, elements(input(facts, 0)) * 2 + elements(output(facts, 0))};
}
Work qlinear_global_average_pool(const OpFacts& facts) {
    return {0, elements(input(facts, 0)) + elements(output(facts, 0)) * 4};
}

// `each` per input element, `end` per output element.
template <int each, int end>
Work reduction(const OpFacts& facts) {
    return {0, elements(input(facts, 0)) * each + elements(output(facts, 0)) * end};
}

// Selection with a heap: log2(k) comparisons for each input element.
Work top_k(const OpFacts& facts) {
    const Shape& values = output(facts, 0);
    std::int64_t axis = facts.op->integer("axis", -1);
    auto rank = static_cast<std::int64_t>(values.size());
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank) {
        misfit("the axis is outside the shape");
    }
    auto k = static_cast<std::uint64_t>(values[static_cast<std::size_t>(axis)]);
    return {0, elements(input(facts, 0)) * std::bit_width(k)};
}

// Interpolation along n dimensions: linear does 2ⁿ − 1 interpolations of 3 operations, cubic sums
// 4ⁿ weighted neighbours.
Number interpolation(const std::string& mode, std::size_t dims) {
    if (dims > 8) {
        misfit("interpolation over more than 8 dimensions");
    }
    if (mode == "linear" || mode == "bilinear") {
        return ((Number(std::int64_t{1} << dims)) - 1) * 3;
    }
    return mode == "cubic" || mode == "bicubic" ? Number(std::int64_t{2} << (2 * dims)) : Number(0);
}

Work resize(const OpFacts& facts) {
    const Shape& from = input(facts, 0);
    const Shape& to = output(facts, 0);
    std::size_t scaled = 0;
    for (std::size_t i = 0; i < from.size() && i < to.size(); ++i) {
        scaled += from[i] != to[i] ? 1 : 0;
    }
    return {0, elements(to) * interpolation(facts.op->text("mode", "nearest"), scaled)};
}

Work grid_sample(const OpFacts& facts) {
    const Shape& out = output(facts, 0);
    std::size_t spatial = out.size() < 2 ? 0 : out.size() - 2;
    Number coordinates = elements(input(facts, 1)) * 3;
    return {0,
            elements(out) * interpolation(facts.op->text("mode", "linear"), spatial) + coordinates};
}

Work affine_grid(const OpFacts& facts) {
    const Shape& out = output(facts, 0);
    return {0, elements(out) * last(out) * 2};
}

// sampling_ratio² samples per output element, each between four pixels.
Work roi_align(const OpFacts& facts) {
    Number ratio = facts.op->integer("sampling_ratio", 0);
    if (ratio.value() == 0) {
        misfit("the number of samples depends on the regions");
    }
    return {0, elements(output(facts, 0)) * ratio * ratio * 10};
}

// The usual 5 N log2 N of a fast transform.
Number fast_transform(std::int64_t length) {
    if (length < 2) {
        return 0;
    }
    auto n = static_cast<double>(length);
    return static_cast<std::int64_t>(std::llround(5 * n * std::log2(n)));
}

Work dft(const OpFacts& facts) {
    const Shape& x = input(facts, 0);
    const Shape& out = output(facts, 0);
    std::int64_t length = 0;
    for (std::size_t i = 0; i + 1 < out.size(); ++i) {  // the axis is the long one that may differ
        length = std::max({length, out[i], i < x.size() ? x[i] : 0});
    }
    Number all = elements(out);
    if (length == 0 || all.value() == 0) {
        return {};
    }
    Number lines = all.value() / last(out).value() / length;
    return {0, lines * fast_transform(length)};
}

// Output: [batch, frames, bins, 2].
Work stft(const OpFacts& facts) {
    const Shape& out = output(facts, 0);
    Number bins = dim(out, 2);
    bool onesided = facts.op->integer("onesided", 1) != 0;
    std::int64_t length = onesided ? (bins.value() - 1) * 2 : bins.value();
    Number frames = dim(out, 0) * dim(out, 1);
    Work work{0, frames * fast_transform(length)};
    if (has_input(facts, 2)) {
        work.other += frames * std::max<std::int64_t>(length, 0);
    }
    return work;
}

Work determinant(const OpFacts& facts) {
    const Shape& x = input(facts, 0);
    Number n = last(x);
    return {0, elements(x) * n * 2 + elements(x)};
}

// Scatter adds (or multiplies, or compares) once per update where it reduces.
Work scatter(const OpFacts& facts) {
    bool reduces = facts.op->text("reduction", "none") != "none";
    return {0, reduces ? elements(input(facts, 2)) : Number(0)};
}

Work col2im(const OpFacts& facts) {
    return {0, elements(input(facts, 0))};
}

// Word, position and segment are added, then normalized.
Work embed_layer_normalization(const OpFacts& facts) {
    return per_element(elements(output(facts, 0)), 9);
}

constexpr NamedRule onnx_rules[] = {
    {"AffineGrid", affine_grid},
    {"AveragePool", average_pool},
    {"BatchNormalization", batch_normalization},
    {"Col2Im", col2im},
    {"DFT", dft},
    {"Det", determinant},
    {"Gelu", gelu},
    {"GlobalAveragePool", global_average_pool},
    {"GlobalLpPool", global_lp_pool},
    {"GlobalMaxPool", global_max_pool},
    {"GridSample", grid_sample},
    {"GroupNormalization", normalization},
    {"InstanceNormalization", normalization},
    {"LRN", local_response},
    {"LayerNormalization", normalization},
    {"LpPool", lp_pool},
    {"Max", variadic},
    {"MaxPool", max_pool},
    {"Mean", variadic_mean},
    {"Min", variadic},
    {"RMSNormalization", rms_normalization},
    {"ReduceL1", reduction<2, 0>},
    {"ReduceL2", reduction<2, 1>},
    {"ReduceLogSum", reduction<1, 1>},
    {"ReduceLogSumExp", reduction<4, 1>},
    {"ReduceMax", reduction<1, 0>},
    {"ReduceMean", reduction<1, 1>},
    {"ReduceMin", reduction<1, 0>},
    {"ReduceProd", reduction<1, 0>},
    {"ReduceSum", reduction<1, 0>},
    {"ReduceSumSquare", reduction<2, 0>},
    {"Resize", resize},
    {"RoiAlign", roi_align},
    {"STFT", stft},
    {"Scatter", scatter},
    {"ScatterElements", scatter},
    {"ScatterND", scatter},
    {"SimplifiedLayerNormalization", rms_normalization},
    {"Sum", variadic},
    {"TopK", top_k},
    {"Upsample", resize},
};

constexpr NamedRule microsoft_rules[] = {
    {"EmbedLayerNormalization", embed_layer_normalization},
    {"GroupNorm", normalization},
    {"NhwcMaxPool", max_pool},
    {"QLinearAveragePool", qlinear_average_pool},
    {"QLinearGlobalAveragePool", qlinear_global_average_pool},
    {"QLinearReduceMean", reduction<1, 5>},
    {"SimplifiedLayerNormalization", rms_normalization},
};

}  // namespace

std::span<const ElementCost> element_costs(std::string_view domain) {
    if (domain.empty()) {
        return onnx_costs;
    }
    if (domain == "com.microsoft") {
        return microsoft_costs;
    }
    return domain == "ai.onnx.ml" ? std::span<const ElementCost>(ml_costs)
                                  : std::span<const ElementCost>();
}

std::span<const NamedRule> element_rules(std::string_view domain) {
    if (domain.empty()) {
        return onnx_rules;
    }
    return domain == "com.microsoft" ? std::span<const NamedRule>(microsoft_rules)
                                     : std::span<const NamedRule>();
}

}  // namespace trocar::counting
