#include <algorithm>
#include <array>

#include "graph/counting_rules.h"

// TensorFlow's ops. Filters are H,W,I,O; images N,H,W,C, or what the attribute data_format says.
namespace trocar::counting {
namespace tf {
namespace {

using Of = ElementCost::Of;

Number all_but_last(const Shape& shape) {
    return product(std::span(shape).first(shape.empty() ? 0 : shape.size() - 1));
}

// Filter [h, w, I, O], also [d, h, w, I, O].
Work conv(const OpFacts& facts) {
    return {elements(output(facts, 0)) * all_but_last(input(facts, 1)), 0};
}

// Filter [h, w, C, M]: every output element sums over h × w.
Work depthwise(const OpFacts& facts) {
    const auto& filter = input(facts, 1);
    return {elements(output(facts, 0)) * dim(filter, 0) * dim(filter, 1), 0};
}

// Inputs: output shape, filter [h, w, O, I], data. Every input element meets the filter once.
Work transposed(const OpFacts& facts) {
    return {elements(input(facts, 2)) * all_but_last(input(facts, 1)), 0};
}

Work matmul(const OpFacts& facts) {
    const auto& a = input(facts, 0);
    if (a.size() < 2) {
        misfit("a matrix has too few dimensions");
    }
    const auto& op = *facts.op;
    const bool turned = op.integer("transpose_a", 0) != 0 || op.integer("adj_x", 0) != 0;
    return {elements(output(facts, 0)) * dim(a, a.size() - (turned ? 2 : 1)), 0};
}

Work pool(const OpFacts& facts) {
    Number window = 1;
    for (const auto size : facts.op->integers("ksize")) {
        window *= Number(size);
    }
    const bool averages = facts.op->type.starts_with("Avg");
    return {0, elements(output(facts, 0)) * (averages ? window : window - Number(1))};
}

// A scale and an offset for each element: all else depends on the channel alone.
Work batch_norm(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * 2};
}

// Each output element: three interpolations of three operations.
Work bilinear(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * 9};
}

template <int per_output>
Work reduce(const OpFacts& facts) {
    return {0, elements(input(facts, 0)) + elements(output(facts, 0)) * per_output};
}

Work add_n(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * (Number::of(facts.inputs.size()) - Number(1))};
}

constexpr NamedRule rules[] = {
    {"AddN", add_n},
    {"All", reduce<0>},
    {"Any", reduce<0>},
    {"AvgPool", pool},
    {"AvgPool3D", pool},
    {"BatchMatMul", matmul},
    {"BatchMatMulV2", matmul},
    {"BatchMatMulV3", matmul},
    {"Conv2D", conv},
    {"Conv2DBackpropInput", transposed},
    {"Conv3D", conv},
    {"DepthwiseConv2dNative", depthwise},
    {"FusedBatchNorm", batch_norm},
    {"FusedBatchNormV2", batch_norm},
    {"FusedBatchNormV3", batch_norm},
    {"MatMul", matmul},
    {"Max", reduce<0>},
    {"MaxPool", pool},
    {"MaxPool3D", pool},
    {"Mean", reduce<1>},
    {"Min", reduce<0>},
    {"Prod", reduce<0>},
    {"ResizeBilinear", bilinear},
    {"Sum", reduce<0>},
};

constexpr ElementCost costs[] = {
    {"Abs", 1},
    {"Add", 1},
    {"AddV2", 1},
    {"ArgMax", 1, Of::input},
    {"ArgMin", 1, Of::input},
    {"Atan2", 1},
    {"BiasAdd", 1},
    {"Ceil", 1},
    {"ClipByValue", 2},
    {"ComplexAbs", 4},
    {"Cos", 1},
    {"Cumsum", 1},
    {"Div", 1},
    {"DivNoNan", 2},
    {"Elu", 4},
    {"Equal", 1},
    {"Erf", 1},
    {"Exp", 1},
    {"FakeQuantWithMinMaxVars", 6},
    {"Floor", 1},
    {"FloorDiv", 2},
    {"FloorMod", 1},
    {"Greater", 1},
    {"GreaterEqual", 1},
    {"Inv", 1},
    {"L2Loss", 2, Of::input},
    {"LeakyRelu", 2},
    {"Less", 1},
    {"LessEqual", 1},
    {"Log", 1},
    {"Log1p", 2},
    {"LogSoftmax", 5},
    {"LogicalAnd", 1},
    {"LogicalNot", 1},
    {"LogicalOr", 1},
    {"Maximum", 1},
    {"Minimum", 1},
    {"Mul", 1},
    {"Neg", 1},
    {"NotEqual", 1},
    {"Pow", 1},
    {"RealDiv", 1},
    {"Reciprocal", 1},
    {"Relu", 1},
    {"Relu6", 2},
    {"Rint", 1},
    {"Round", 1},
    {"Rsqrt", 2},
    {"Selu", 4},
    {"Sigmoid", 4},
    {"Sign", 1},
    {"Sin", 1},
    {"Softmax", 5},
    {"Softplus", 3},
    {"Softsign", 3},
    {"Sqrt", 1},
    {"Square", 1},
    {"SquaredDifference", 2},
    {"Sub", 1},
    {"Tanh", 1},
};

constexpr std::string_view movement[] = {
    "BatchToSpaceND",
    "Bitcast",
    "BroadcastTo",
    "Cast",
    "ConcatV2",
    "Const",
    "DepthToSpace",
    "EnsureShape",
    "ExpandDims",
    "Fill",
    "Gather",
    "GatherNd",
    "GatherV2",
    "Identity",
    "IdentityN",
    "Imag",
    "MirrorPad",
    "NoOp",
    "OneHot",
    "Pack",
    "Pad",
    "PadV2",
    "PlaceholderWithDefault",
    "PreventGradient",
    "Range",
    "Rank",
    "ReadVariableOp",
    "Real",
    "Reshape",
    "ResizeNearestNeighbor",
    "ResourceGather",
    "ReverseSequence",
    "ReverseV2",
    "ScatterNd",
    "Select",
    "SelectV2",
    "Shape",
    "ShapeN",
    "Size",
    "Slice",
    "SpaceToBatchND",
    "SpaceToDepth",
    "Split",
    "SplitV",
    "Squeeze",
    "StopGradient",
    "StridedSlice",
    "Tile",
    "Transpose",
    "Unpack",
    "VarHandleOp",
    "Where",
    "ZerosLike",
};

constexpr Uncountable uncountable[] = {
    {"CombinedNonMaxSuppression", "the work depends on the boxes"},
    {"NonMaxSuppressionV3", "the work depends on the boxes"},
    {"NonMaxSuppressionV4", "the work depends on the boxes"},
    {"NonMaxSuppressionV5", "the work depends on the boxes"},
    {"RandomStandardNormal", "drawing random numbers has no agreed count"},
    {"RandomUniform", "drawing random numbers has no agreed count"},
    {"Unique", "the work depends on the values"},
};

template <class List>
bool contains(const List& list, std::string_view type) {
    return std::find(std::begin(list), std::end(list), type) != std::end(list);
}

constexpr std::array<std::string_view, 9> products{
    "BatchMatMul",         "BatchMatMulV2",         "BatchMatMulV3", "Conv2D", "Conv3D",
    "Conv2DBackpropInput", "DepthwiseConv2dNative", "MatMul",        "Einsum"};
constexpr std::array<std::string_view, 3> norms{"FusedBatchNorm", "FusedBatchNormV2",
                                                "FusedBatchNormV3"};
constexpr std::array<std::string_view, 7> adding{"Add", "AddV2",   "BiasAdd", "Sub",
                                                 "Mul", "RealDiv", "Div"};
constexpr std::array<std::string_view, 3> tables{"Gather", "GatherV2", "ResourceGather"};

}  // namespace
}  // namespace tf

RuleSet tf_rules() {
    return {tf::rules, tf::costs, tf::movement, tf::uncountable};
}

Role tf_role(const Op& op, std::size_t slot, DType dtype, std::span<const std::int64_t> shape) {
    if (!is_float(dtype) || shape.empty()) {
        return Role::constant;
    }
    if (tf::contains(tf::norms, op.type)) {
        return slot == 1 || slot == 2 ? Role::vector : slot > 2 ? Role::buffer : Role::constant;
    }
    const bool weighs =
        tf::contains(tf::products, op.type) ||
        (slot == 0 && (tf::contains(tf::tables, op.type) || op.type == "ReadVariableOp"));
    if (weighs) {
        return shape.size() < 2 ? Role::vector : Role::weight;
    }
    // A bias or a scale that a layer left to an op of its own.
    return tf::contains(tf::adding, op.type) ? Role::vector : Role::constant;
}

Passing tf_passing(const Op& op) {
    const auto& type = op.type;
    if (type == "ReadVariableOp" || type == "Identity" || type == "Cast") {
        return Passing::unchanged;
    }
    if (type == "Reshape" || type == "ExpandDims" || type == "Squeeze") {
        return Passing::reshaped;
    }
    return type == "Transpose" ? Passing::transposed : Passing::no;
}

Reach tf_reach(const Op& op) {
    if (op.type == "Shape" || op.type == "ShapeN" || op.type == "Size" || op.type == "Rank") {
        return Reach::nothing;
    }
    const bool picks = op.type.starts_with("Gather") || op.type == "ResourceGather" ||
                       op.type == "Slice" || op.type == "StridedSlice";
    return picks ? Reach::picked : Reach::all;
}

std::optional<WeightAxes> tf_weight_axes(const Op& op, std::size_t slot, std::size_t rank) {
    if (slot != 1 || rank < 2) {
        return std::nullopt;
    }
    if (op.type == "Conv2D" || op.type == "Conv3D") {
        return WeightAxes{rank - 1, rank - 2};
    }
    if (op.type == "Conv2DBackpropInput") {
        return WeightAxes{rank - 2, rank - 1};
    }
    if (op.type == "MatMul" || op.type.starts_with("BatchMatMul")) {
        const bool turned = op.integer("transpose_b", 0) != 0 || op.integer("adj_y", 0) != 0;
        return turned ? WeightAxes{rank - 2, rank - 1} : WeightAxes{rank - 1, rank - 2};
    }
    return std::nullopt;
}

}  // namespace trocar::counting
