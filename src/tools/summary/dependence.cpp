#include "tools/summary/dependence.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "util/text.h"

namespace trocar::summary {
namespace {

// What the shapes of an op's outputs depend on.
enum class Needs {
    shapes,   // shapes and dtypes of its inputs, and attributes
    control,  // besides, the values of its inputs from the second one on
    values,   // the values of all inputs
};

// Both lists in order.
constexpr std::string_view by_shapes[] = {
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "ArgMax",
    "ArgMin",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Attention",
    "AveragePool",
    "BatchNormalization",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Cast",
    "CastLike",
    "Ceil",
    "Celu",
    "Clip",
    "Concat",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "Cos",
    "Cosh",
    "CumSum",
    "DeformConv",
    "DepthToSpace",
    "DequantizeLinear",
    "Div",
    "DynamicQuantizeLinear",
    "Einsum",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Flatten",
    "Floor",
    "GRU",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "Greater",
    "GreaterOrEqual",
    "GridSample",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "IsInf",
    "IsNaN",
    "LRN",
    "LSTM",
    "LayerNormalization",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "LogSoftmax",
    "LpNormalization",
    "LpPool",
    "MatMul",
    "MatMulInteger",
    "Max",
    "MaxPool",
    "Mean",
    "MeanVarianceNormalization",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "PRelu",
    "Pow",
    "QLinearConv",
    "QLinearMatMul",
    "QuantizeLinear",
    "RMSNormalization",
    "RNN",
    "Reciprocal",
    "Relu",
    "RotaryEmbedding",
    "Round",
    "ScatterElements",
    "ScatterND",
    "Selu",
    "Shape",
    "Shrink",
    "Sigmoid",
    "Sign",
    "SimplifiedLayerNormalization",
    "Sin",
    "Sinh",
    "Size",
    "Softmax",
    "Softplus",
    "Softsign",
    "SpaceToDepth",
    "Sqrt",
    "Sub",
    "Sum",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Transpose",
    "Trilu",
    "Where",
    "Xor",
};
constexpr std::string_view by_control[] = {
    "Expand",    "Pad",        "ReduceL1",  "ReduceL2",   "ReduceLogSum", "ReduceLogSumExp",
    "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",    "ReduceSumSquare",
    "Reshape",   "Resize",     "Slice",     "Split",      "Squeeze",      "Tile",
    "TopK",      "Unsqueeze",  "Upsample",
};
constexpr std::string_view microsoft_by_shapes[] = {
    "BiasGelu",
    "FastGelu",
    "FusedConv",
    "FusedGemm",
    "FusedMatMul",
    "Gelu",
    "MatMulNBits",
    "QuickGelu",
    "SimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
};

template <std::size_t n>
bool listed(const std::string_view (&list)[n], std::string_view type) {
    return std::binary_search(std::begin(list), std::end(list), type);
}

Needs needs(const Op& op) {
    if (!op.captures.empty() || op.type.empty()) {
        return Needs::values;
    }
    if (op.domain.empty() || op.domain == "ai.onnx") {
        if (listed(by_shapes, op.type)) {
            return Needs::shapes;
        }
        return listed(by_control, op.type) ? Needs::control : Needs::values;
    }
    return op.domain == "com.microsoft" && listed(microsoft_by_shapes, op.type) ? Needs::shapes
                                                                                : Needs::values;
}

// An attribute written out whole; nothing for kinds that are not compared.
struct AttributeKey {
    std::optional<std::string> operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::optional<std::string> operator()(float v) const { return fmt::format("{}", v); }
    std::optional<std::string> operator()(const std::string& v) const {
        return fmt::format("{} {}", v.size(), v);
    }
    std::optional<std::string> operator()(const std::vector<std::int64_t>& v) const {
        return fmt::format("{}", join(v, ","));
    }
    std::optional<std::string> operator()(const std::vector<float>& v) const {
        return fmt::format("{}", join(v, ","));
    }
    template <class Other>
    std::optional<std::string> operator()(const Other&) const {
        return std::nullopt;
    }
};

}  // namespace

std::vector<bool> values_that_matter(const Graph& graph,
                                     std::span<const Constant* const> constants) {
    std::vector<bool> matter(graph.tensor_limit());
    for (OpId id = graph.last(); id != OpId::none; id = graph.previous(id)) {
        const Op& op = graph.op(id);
        bool wanted = std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId t) {
            return t != TensorId::none && matter[index(t)];
        });
        Needs kind = needs(op);
        bool asks_for_shape = op.domain.empty() && (op.type == "Shape" || op.type == "Size");
        std::size_t first = asks_for_shape                    ? op.inputs.size()
                            : wanted || kind == Needs::values ? 0
                            : kind == Needs::control          ? 1
                                                              : op.inputs.size();
        for (std::size_t slot = first; slot < op.inputs.size(); ++slot) {
            if (op.inputs[slot] != TensorId::none && constants[index(op.inputs[slot])] == nullptr) {
                matter[index(op.inputs[slot])] = true;
            }
        }
        for (TensorId t : op.captures) {
            matter[index(t)] = true;
        }
    }
    return matter;
}

std::optional<std::string> shape_key(const Scope& scope, OpId id,
                                     std::span<const Constant* const> constants) {
    constexpr std::size_t longest = 1024;  // of a steering constant, in bytes
    const Op& op = scope.graph->op(id);
    Needs kind = needs(op);
    if (kind == Needs::values) {
        return std::nullopt;
    }
    std::string key = fmt::format("{}:{}", op.domain, op.type);
    for (const Attribute& a : op.attributes) {
        std::optional<std::string> text = std::visit(AttributeKey{}, a.value);
        if (!text || !a.reference.empty()) {
            return std::nullopt;
        }
        key += fmt::format("\n{}={}", a.name, *text);
    }
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        TensorId t = op.inputs[slot];
        if (t == TensorId::none) {
            key += "\nnone";
            continue;
        }
        const Fact& fact = scope.fact(t);
        if (!fact.shape) {
            return std::nullopt;
        }
        key += fmt::format("\n{} {}", static_cast<int>(fact.dtype), shape_text(*fact.shape));
        if (kind == Needs::control && slot > 0) {
            const Constant* c = constants[index(t)];
            if (c == nullptr || c->is_sparse() || c->is_string() || c->bytes().size() > longest) {
                return std::nullopt;
            }
            Bytes bytes = c->bytes();
            key += '=';
            key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        }
    }
    return fmt::format("{}\n{}", key, op.outputs.size());
}

}  // namespace trocar::summary
