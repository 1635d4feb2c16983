#include <algorithm>
#include <cmath>

#include "graph/counting_rules.h"

// Ops of the dialect "aten": PyTorch's own, as torch.export writes them. Tensors are found by the
// name of the argument they stand for (the attribute "inputs"); where a file has none, by their
// place. Ops that end with an underscore work in place and count like those without.
namespace trocar::counting {

std::optional<std::size_t> argument_slot(const Op& op, std::string_view name) {
    const Attribute* attribute = op.attribute("inputs");
    const auto* names =
        attribute ? std::get_if<std::vector<std::string>>(&attribute->value) : nullptr;
    if (names == nullptr) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < names->size() && i < op.inputs.size(); ++i) {
        if ((*names)[i] == name) {
            return op.inputs[i] == TensorId::none ? std::nullopt : std::optional(i);
        }
    }
    return std::nullopt;
}

namespace aten {
namespace {

using Of = ElementCost::Of;

const Shape& argument(const OpFacts& facts, std::string_view name, std::size_t otherwise) {
    return input(facts, argument_slot(*facts.op, name).value_or(otherwise));
}

bool has_argument(const OpFacts& facts, std::string_view name) {
    return argument_slot(*facts.op, name).has_value();
}

Number kernel_size(const Shape& weight) {
    if (weight.empty()) {
        misfit("an input has too few dimensions");
    }
    return product(std::span(weight).subspan(1));
}

Work with_bias(const OpFacts& facts, Number macs, std::string_view bias) {
    return {macs, has_argument(facts, bias) ? elements(output(facts, 0)) : Number(0)};
}

// Padding counts as if it were data: every output element sums over the whole kernel.
Work conv(const OpFacts& facts) {
    const Shape& weight = argument(facts, "weight", 1);
    return with_bias(facts, elements(output(facts, 0)) * kernel_size(weight), "bias");
}

Work conv_transpose(const OpFacts& facts) {
    const Shape& weight = argument(facts, "weight", 1);
    return with_bias(facts, elements(input(facts, 0)) * kernel_size(weight), "bias");
}

Work convolution(const OpFacts& facts) {
    return facts.op->integer("transposed", 0) != 0 ? conv_transpose(facts) : conv(facts);
}

Work linear(const OpFacts& facts) {
    const Shape& weight = argument(facts, "weight", 1);
    return with_bias(facts, elements(output(facts, 0)) * last(weight), "bias");
}

Work matmul(const OpFacts& facts) {
    return {elements(output(facts, 0)) * last(input(facts, 0)), 0};
}

// The sum that is added first, then the two factors.
Work added_product(const OpFacts& facts) {
    Number out = elements(output(facts, 0));
    return {out * last(input(facts, 1)), out};
}

Work bilinear(const OpFacts& facts) {
    const Shape& weight = argument(facts, "weight", 2);
    return with_bias(facts, elements(output(facts, 0)) * kernel_size(weight), "bias");
}

// Every letter of the equation is a loop.
Work einsum(const OpFacts& facts) {
    std::string equation = facts.op->text("equation", "");
    std::erase(equation, ' ');
    if (equation.find("...") != std::string::npos || facts.inputs.empty()) {
        misfit("an einsum with an ellipsis");
    }
    std::vector<std::pair<char, std::int64_t>> sizes;
    std::size_t slot = 0;
    std::size_t axis = 0;
    for (char c : equation.substr(0, equation.find("->"))) {
        if (c == ',') {
            ++slot;
            axis = 0;
            continue;
        }
        Number size = dim(input(facts, slot), axis++);
        bool known =
            std::any_of(sizes.begin(), sizes.end(), [&](const auto& s) { return s.first == c; });
        if (!known) {
            sizes.emplace_back(c, size.value());
        }
    }
    Number loops = slot == 0 ? 0 : 1;
    for (const auto& [letter, size] : sizes) {
        loops *= size;
    }
    return {loops * Number::of(slot), 0};
}

// [batch…, heads, positions, width] of query, key and value.
Work attention(const OpFacts& facts) {
    const Shape& q = argument(facts, "query", 0);
    const Shape& k = argument(facts, "key", 1);
    const Shape& v = argument(facts, "value", 2);
    if (q.size() < 2 || k.size() < 2 || v.empty()) {
        misfit("an input has too few dimensions");
    }
    Number pairs = product(std::span(q).first(q.size() - 1)) * k[k.size() - 2];
    bool masked = has_argument(facts, "attn_mask") || has_argument(facts, "attn_bias") ||
                  facts.op->integer("is_causal", 0) != 0;
    return {pairs * (last(q) + last(v)), pairs * (masked ? 7 : 6)};
}

// Every matrix among the parameters multiplies every step of every sequence; `each` are the other
// operations per unit of the state and step.
template <int gates, int each>
Work recurrent(const OpFacts& facts) {
    const Shape& x = input(facts, 0);
    Number width = last(x);
    Number steps = width.value() == 0 ? 0 : elements(x).value() / width.value();
    Number weights = 0;
    Number rows = 0;
    for (const TensorFacts& t : facts.inputs) {
        bool parameter = t.constant != nullptr && t.shape;
        if (parameter && t.shape->size() == 2) {
            weights += elements(*t.shape);
            rows += (*t.shape)[0];
        }
    }
    if (weights.value() == 0) {
        misfit("the matrices are no constants");
    }
    // Two matrices for each layer and direction, of `gates` rows per unit.
    Number units = rows.value() / (2 * gates);
    return {steps * weights, steps * units * each};
}

Work gelu(const OpFacts& facts) {
    return {0,
            elements(output(facts, 0)) * (facts.op->text("approximate", "none") == "tanh" ? 9 : 5)};
}

Work batch_norm(const OpFacts& facts) {
    const Shape& x = input(facts, 0);
    bool training = facts.op->integer("training", facts.op->integer("train", 0)) != 0;
    if (training || facts.op->type == "_native_batch_norm_legit" ||
        facts.op->type == "_native_batch_norm_legit_functional") {
        return {0, elements(x) * 7};
    }
    return {0, elements(x) * 2 + (x.size() < 2 ? Number(0) : Number(x[1]) * 5)};
}

Work normalization(const OpFacts& facts) {
    int cost = 5 + (has_argument(facts, "weight") ? 1 : 0) + (has_argument(facts, "bias") ? 1 : 0);
    return {0, elements(input(facts, 0)) * cost};
}

Work rms_normalization(const OpFacts& facts) {
    return {0, elements(input(facts, 0)) * (has_argument(facts, "weight") ? 4 : 3)};
}

// A window's size may be given once for all dimensions.
Number window(const OpFacts& facts, std::size_t dims) {
    std::vector<std::int64_t> kernel = facts.op->integers("kernel_size");
    if (kernel.empty()) {
        misfit("the argument kernel_size is missing");
    }
    if (kernel.size() == 1) {
        kernel.resize(dims, kernel.front());
    }
    return product(kernel);
}

template <int dims>
Work max_pool(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * (window(facts, dims) - 1)};
}
template <int dims>
Work average_pool(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * window(facts, dims)};
}
Work adaptive_average_pool(const OpFacts& facts) {
    return {0, elements(input(facts, 0))};
}
Work adaptive_max_pool(const OpFacts& facts) {
    return {0, elements(input(facts, 0)) - elements(output(facts, 0))};
}

template <int each, int end>
Work reduction(const OpFacts& facts) {
    return {0, elements(input(facts, 0)) * each + elements(output(facts, 0)) * end};
}

// Sums and maxima of one tensor with another are elementwise, those of one tensor reductions.
Work maximum(const OpFacts& facts) {
    if (facts.inputs.size() > 1) {
        return {0, elements(output(facts, 0))};
    }
    return reduction<1, 0>(facts);
}

Work sort(const OpFacts& facts) {
    const Shape& x = input(facts, 0);
    std::int64_t axis = facts.op->integer("dim", -1);
    auto rank = static_cast<std::int64_t>(x.size());
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank) {
        misfit("the axis is outside the shape");
    }
    double length = static_cast<double>(x[static_cast<std::size_t>(axis)]);
    Number steps = length < 2 ? 0 : static_cast<std::int64_t>(std::ceil(std::log2(length)));
    return {0, elements(x) * steps};
}

template <int each>
Work upsample(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * each};
}

Work scatter_add(const OpFacts& facts) {
    return {0, elements(argument(facts, "src", facts.inputs.size() - 1))};
}

Work cross_entropy(const OpFacts& facts) {
    return {0, elements(input(facts, 0)) * 6};
}

constexpr NamedRule rules[] = {
    {"_adaptive_avg_pool2d", adaptive_average_pool},
    {"_batch_norm_no_update", batch_norm},
    {"_batch_norm_with_update", batch_norm},
    {"_convolution", convolution},
    {"_native_batch_norm_legit", batch_norm},
    {"_native_batch_norm_legit_functional", batch_norm},
    {"_native_batch_norm_legit_no_training", batch_norm},
    {"_scaled_dot_product_cudnn_attention", attention},
    {"_scaled_dot_product_efficient_attention", attention},
    {"_scaled_dot_product_flash_attention", attention},
    {"_scaled_dot_product_flash_attention_for_cpu", attention},
    {"_scaled_mm", matmul},
    {"_trilinear", bilinear},
    {"adaptive_avg_pool1d", adaptive_average_pool},
    {"adaptive_avg_pool2d", adaptive_average_pool},
    {"adaptive_avg_pool3d", adaptive_average_pool},
    {"adaptive_max_pool1d", adaptive_max_pool},
    {"adaptive_max_pool2d", adaptive_max_pool},
    {"adaptive_max_pool3d", adaptive_max_pool},
    {"addbmm", added_product},
    {"addmm", added_product},
    {"addmv", added_product},
    {"amax", reduction<1, 0>},
    {"amin", reduction<1, 0>},
    {"any", reduction<1, 0>},
    {"all", reduction<1, 0>},
    {"argmax", reduction<1, 0>},
    {"argmin", reduction<1, 0>},
    {"avg_pool1d", average_pool<1>},
    {"avg_pool2d", average_pool<2>},
    {"avg_pool3d", average_pool<3>},
    {"baddbmm", added_product},
    {"batch_norm", batch_norm},
    {"bilinear", bilinear},
    {"bmm", matmul},
    {"conv1d", conv},
    {"conv2d", conv},
    {"conv3d", conv},
    {"conv_transpose1d", conv_transpose},
    {"conv_transpose2d", conv_transpose},
    {"conv_transpose3d", conv_transpose},
    {"convolution", convolution},
    {"cross_entropy_loss", cross_entropy},
    {"dot", matmul},
    {"einsum", einsum},
    {"gelu", gelu},
    {"group_norm", normalization},
    {"gru", recurrent<3, 3 + 2 * 4 + 1 + 5>},
    {"index_add", scatter_add},
    {"instance_norm", normalization},
    {"layer_norm", normalization},
    {"linalg_vector_norm", reduction<2, 1>},
    {"linear", linear},
    {"logsumexp", reduction<4, 1>},
    {"lstm", recurrent<4, 4 + 3 * 4 + 2 + 4>},
    {"matmul", matmul},
    {"max", maximum},
    {"max_pool1d", max_pool<1>},
    {"max_pool2d", max_pool<2>},
    {"max_pool2d_with_indices", max_pool<2>},
    {"max_pool3d", max_pool<3>},
    {"mean", reduction<1, 1>},
    {"min", maximum},
    {"mm", matmul},
    {"mv", matmul},
    {"native_batch_norm", batch_norm},
    {"native_group_norm", normalization},
    {"native_layer_norm", normalization},
    {"norm", reduction<2, 1>},
    {"prod", reduction<1, 0>},
    {"rms_norm", rms_normalization},
    {"rnn_relu", recurrent<1, 1 + 1>},
    {"rnn_tanh", recurrent<1, 1 + 1>},
    {"scaled_dot_product_attention", attention},
    {"scatter_add", scatter_add},
    {"scatter_reduce", scatter_add},
    {"sort", sort},
    {"std", reduction<4, 2>},
    {"sum", reduction<1, 0>},
    {"topk", sort},
    {"upsample_bicubic2d", upsample<32>},
    {"upsample_bilinear2d", upsample<9>},
    {"upsample_linear1d", upsample<3>},
    {"upsample_nearest1d", upsample<0>},
    {"upsample_nearest2d", upsample<0>},
    {"upsample_nearest3d", upsample<0>},
    {"upsample_trilinear3d", upsample<21>},
    {"var", reduction<4, 1>},
    {"var_mean", reduction<4, 1>},
};

// As of the ONNX ops that do the same.
constexpr ElementCost costs[] = {
    {"_log_softmax", 5},
    {"_safe_softmax", 5},
    {"_softmax", 5},
    {"abs", 1},
    {"acos", 1},
    {"add", 1},
    {"addcdiv", 3},
    {"addcmul", 3},
    {"asin", 1},
    {"atan", 1},
    {"atan2", 1},
    {"bitwise_and", 1},
    {"bitwise_not", 1},
    {"bitwise_or", 1},
    {"bitwise_xor", 1},
    {"ceil", 1},
    {"celu", 5},
    {"clamp", 2},
    {"clamp_max", 1},
    {"clamp_min", 1},
    {"clip", 2},
    {"cos", 1},
    {"cosh", 1},
    {"cumprod", 1},
    {"cumsum", 1},
    {"div", 1},
    {"elu", 4},
    {"eq", 1},
    {"erf", 1},
    {"exp", 1},
    {"expm1", 2},
    {"floor", 1},
    {"floor_divide", 2},
    {"fmod", 1},
    {"ge", 1},
    {"glu", 5},
    {"gt", 1},
    {"hardsigmoid", 4},
    {"hardswish", 5},
    {"hardtanh", 2},
    {"isinf", 1},
    {"isnan", 1},
    {"le", 1},
    {"leaky_relu", 2},
    {"lerp", 3},
    {"log", 1},
    {"log10", 1},
    {"log1p", 2},
    {"log2", 1},
    {"log_sigmoid", 4},
    {"log_softmax", 5},
    {"logical_and", 1},
    {"logical_not", 1},
    {"logical_or", 1},
    {"logical_xor", 1},
    {"lt", 1},
    {"maximum", 1},
    {"minimum", 1},
    {"mish", 5},
    {"mul", 1},
    {"ne", 1},
    {"neg", 1},
    {"nll_loss", 1, Of::input},
    {"nll_loss_forward", 1, Of::input},
    {"pow", 1},
    {"prelu", 2},
    {"_prelu_kernel", 2},
    {"reciprocal", 1},
    {"relu", 1},
    {"relu6", 2},
    {"remainder", 1},
    {"round", 1},
    {"rsqrt", 2},
    {"rsub", 1},
    {"selu", 5},
    {"sigmoid", 4},
    {"sign", 1},
    {"silu", 5},
    {"sin", 1},
    {"sinh", 1},
    {"softmax", 5},
    {"softplus", 3},
    {"softsign", 3},
    {"sqrt", 1},
    {"square", 1},
    {"sub", 1},
    {"tan", 1},
    {"tanh", 1},
    {"threshold", 1},
    {"trunc", 1},
};

constexpr std::string_view movement[] = {
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "_cast_Float",
    "_reshape_alias",
    "_to_copy",
    "_unsafe_index",
    "_unsafe_view",
    "alias",
    "arange",
    "as_strided",
    "broadcast_tensors",
    "cat",
    "channel_shuffle",
    "chunk",
    "clone",
    "concat",
    "constant_pad_nd",
    "contiguous",
    "copy",
    "detach",
    "diagonal",
    "dropout",
    "embedding",
    "empty",
    "empty_like",
    "expand",
    "expand_as",
    "eye",
    "feature_dropout",
    "fill",
    "flatten",
    "flip",
    "full",
    "full_like",
    "gather",
    "index",
    "index_copy",
    "index_put",
    "index_select",
    "item",
    "lift_fresh_copy",
    "linspace",
    "masked_fill",
    "masked_scatter",
    "movedim",
    "narrow",
    "new_empty",
    "new_full",
    "new_ones",
    "new_zeros",
    "nonzero",
    "numpy_T",
    "ones",
    "ones_like",
    "pad",
    "permute",
    "pixel_shuffle",
    "pixel_unshuffle",
    "reflection_pad1d",
    "reflection_pad2d",
    "repeat",
    "repeat_interleave",
    "replication_pad1d",
    "replication_pad2d",
    "reshape",
    "roll",
    "scalar_tensor",
    "scatter",
    "select",
    "select_scatter",
    "slice",
    "slice_scatter",
    "split",
    "split_with_sizes",
    "squeeze",
    "stack",
    "swapaxes",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "sym_numel",
    "sym_size",
    "sym_storage_offset",
    "sym_stride",
    "t",
    "tile",
    "to",
    "transpose",
    "tril",
    "triu",
    "type_as",
    "unbind",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
    "view_as_complex",
    "view_as_real",
    "where",
    "zeros",
    "zeros_like",
};

constexpr Uncountable uncountable[] = {
    {"bernoulli", "drawing random numbers has no agreed count"},
    {"multinomial", "drawing random numbers has no agreed count"},
    {"native_dropout", "drawing random numbers has no agreed count"},
    {"normal", "drawing random numbers has no agreed count"},
    {"rand", "drawing random numbers has no agreed count"},
    {"rand_like", "drawing random numbers has no agreed count"},
    {"randint", "drawing random numbers has no agreed count"},
    {"randn", "drawing random numbers has no agreed count"},
    {"randn_like", "drawing random numbers has no agreed count"},
    {"unique", "the work depends on the values"},
};

constexpr ElementCost quantized_costs[] = {
    {"choose_qparams", 2, Of::input},    {"dequantize_per_channel", 2},
    {"dequantize_per_channel_group", 2}, {"dequantize_per_tensor", 2},
    {"dequantize_per_token", 2},         {"quantize_per_channel", 4},
    {"quantize_per_channel_group", 4},   {"quantize_per_tensor", 4},
    {"quantize_per_token", 4},
};

// Arithmetic on sizes, as Python's operators.
constexpr std::string_view python_movement[] = {
    "add",     "and_",    "ceil",    "eq",       "floor",     "floordiv", "ge",
    "getitem", "gt",      "le",      "lt",       "mod",       "mul",      "ne",
    "neg",     "pos",     "pow",     "sub",      "sym_float", "sym_int",  "sym_ite",
    "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",   "truediv",  "trunc",
};

}  // namespace
}  // namespace aten

RuleSet aten_rules(std::string_view domain) {
    if (domain.empty()) {
        return {aten::rules, aten::costs, aten::movement, aten::uncountable};
    }
    if (domain == "quantized_decomposed") {
        return {{}, aten::quantized_costs, {}, {}};
    }
    if (domain == "_operator" || domain == "torch" || domain == "math") {
        return {{}, {}, aten::python_movement, {}};
    }
    return {};
}

}  // namespace trocar::counting
