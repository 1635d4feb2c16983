#include <algorithm>

#include "graph/counting_rules.h"

// MXNet's ops. Tensors are N,C,H,W; filters begin with the output channels.
namespace trocar::counting {
namespace mxnet {
namespace {

using Of = ElementCost::Of;

Number all_but_first(const Shape& shape) {
    return product(std::span(shape).subspan(shape.empty() ? 0 : 1));
}

Number bias(const OpFacts& facts) {
    return has_input(facts, 2) ? elements(output(facts, 0)) : Number(0);
}

Work convolution(const OpFacts& facts) {
    return {elements(output(facts, 0)) * all_but_first(input(facts, 1)), bias(facts)};
}

// Filter [I, O / groups, h, w]: every input element meets it once.
Work deconvolution(const OpFacts& facts) {
    return {elements(input(facts, 0)) * all_but_first(input(facts, 1)), bias(facts)};
}

Work fully_connected(const OpFacts& facts) {
    return {elements(output(facts, 0)) * last(input(facts, 1)), bias(facts)};
}

Work matmul(const OpFacts& facts) {
    const auto& a = input(facts, 0);
    if (a.size() < 2) {
        misfit("a matrix has too few dimensions");
    }
    const bool turned = facts.op->integer("transpose_a", 0) != 0;
    return {elements(output(facts, 0)) * dim(a, a.size() - (turned ? 2 : 1)), 0};
}

Work pool(const OpFacts& facts) {
    const auto& op = *facts.op;
    const bool averages = op.text("pool_type", "max") == "avg";
    if (op.integer("global_pool", 0) != 0) {
        return {0, elements(input(facts, 0)) + elements(output(facts, 0)) * (averages ? 1 : 0)};
    }
    Number window = 1;
    for (const auto size : op.integers("kernel")) {
        window *= Number(size);
    }
    return {0, elements(output(facts, 0)) * (averages ? window : window - Number(1))};
}

template <int per_output>
Work reduce(const OpFacts& facts) {
    return {0, elements(input(facts, 0)) + elements(output(facts, 0)) * per_output};
}

Work add_n(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * (Number::of(facts.inputs.size()) - Number(1))};
}

constexpr NamedRule rules[] = {
    {"Convolution", convolution},
    {"Convolution_v1", convolution},
    {"Deconvolution", deconvolution},
    {"ElementWiseSum", add_n},
    {"FullyConnected", fully_connected},
    {"Pooling", pool},
    {"Pooling_v1", pool},
    {"add_n", add_n},
    {"batch_dot", matmul},
    {"dot", matmul},
    {"max", reduce<0>},
    {"mean", reduce<1>},
    {"min", reduce<0>},
    {"prod", reduce<0>},
    {"sum", reduce<0>},
};

constexpr ElementCost costs[] = {
    {"Activation", 1},
    {"BatchNorm", 2},
    {"BatchNorm_v1", 2},
    {"InstanceNorm", 8},
    {"L2Normalization", 3},
    {"LayerNorm", 8},
    {"LeakyReLU", 2},
    {"Softmax", 5},
    {"SoftmaxActivation", 5},
    {"SoftmaxOutput", 5},
    {"_div_scalar", 1},
    {"_maximum", 1},
    {"_maximum_scalar", 1},
    {"_minimum", 1},
    {"_minimum_scalar", 1},
    {"_minus_scalar", 1},
    {"_mul_scalar", 1},
    {"_plus_scalar", 1},
    {"_power_scalar", 1},
    {"_rdiv_scalar", 1},
    {"_rminus_scalar", 1},
    {"abs", 1},
    {"argmax", 1, Of::input},
    {"argmin", 1, Of::input},
    {"broadcast_add", 1},
    {"broadcast_div", 1},
    {"broadcast_mul", 1},
    {"broadcast_sub", 1},
    {"clip", 2},
    {"elemwise_add", 1},
    {"elemwise_div", 1},
    {"elemwise_mul", 1},
    {"elemwise_sub", 1},
    {"exp", 1},
    {"log", 1},
    {"log_softmax", 5},
    {"negative", 1},
    {"relu", 1},
    {"sigmoid", 4},
    {"softmax", 5},
    {"sqrt", 1},
    {"square", 1},
    {"tanh", 1},
};

constexpr std::string_view movement[] = {
    "BlockGrad",      "Cast",        "Concat",       "Dropout",      "Embedding",
    "Flatten",        "Pad",         "Reshape",      "SliceChannel", "SwapAxis",
    "UpSampling",     "_copy",       "broadcast_to", "cast",         "concat",
    "depth_to_space", "expand_dims", "flatten",      "identity",     "pad",
    "reshape",        "shape_array", "slice",        "slice_axis",   "slice_like",
    "space_to_depth", "split",       "squeeze",      "stack",        "stop_gradient",
    "take",           "tile",        "transpose",    "where",
};

}  // namespace
}  // namespace mxnet

RuleSet mxnet_rules() {
    return {mxnet::rules, mxnet::costs, mxnet::movement, {}};
}

Passing mxnet_passing(const Op& op) {
    const auto& type = op.type;
    if (type == "Cast" || type == "cast" || type == "identity" || type == "_copy") {
        return Passing::unchanged;
    }
    if (type == "Reshape" || type == "reshape" || type == "expand_dims" || type == "squeeze") {
        return Passing::reshaped;
    }
    return type == "transpose" ? Passing::transposed : Passing::no;
}

std::optional<WeightAxes> mxnet_weight_axes(const Op& op, std::size_t slot, std::size_t rank) {
    if (slot != 1 || rank < 2) {
        return std::nullopt;
    }
    if (op.type.starts_with("Convolution") || op.type == "FullyConnected") {
        return WeightAxes{0, 1};
    }
    if (op.type == "Deconvolution") {
        return WeightAxes{1, 0};
    }
    return std::nullopt;
}

}  // namespace trocar::counting
