#include <algorithm>
#include <array>

#include "graph/counting_rules.h"

// TensorFlow Lite's builtin ops. Tensors are N,H,W,C; filters begin with the output channels,
// except those of depthwise convolutions, where they come last.
namespace trocar::counting {
namespace tflite {
namespace {

using Of = ElementCost::Of;

// What an activation inside another op adds, for each element.
Number activation(const OpFacts& facts) {
    const auto kind = facts.op->text("fused_activation_function", "NONE");
    const int cost = kind == "NONE" ? 0 : kind == "RELU6" || kind == "RELU_N1_TO_1" ? 2 : 1;
    return elements(output(facts, 0)) * cost;
}

Number bias(const OpFacts& facts, std::size_t slot) {
    return has_input(facts, slot) ? elements(output(facts, 0)) : Number(0);
}

Number all_but(const Shape& shape, std::size_t axis) {
    Number n = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (i != axis) {
            n *= shape[i];
        }
    }
    return n;
}

// How many vectors of the last dimension a tensor holds.
Number vectors(const Shape& shape) {
    const auto all = elements(shape).value();
    return all == 0 ? 0 : all / last(shape).value();
}

Work conv_2d(const OpFacts& facts) {
    return {elements(output(facts, 0)) * all_but(input(facts, 1), 0),
            bias(facts, 2) + activation(facts)};
}

// Filter [1, h, w, C]: every output element sums over h × w.
Work depthwise(const OpFacts& facts) {
    const auto& filter = input(facts, 1);
    return {elements(output(facts, 0)) * dim(filter, 1) * dim(filter, 2),
            bias(facts, 2) + activation(facts)};
}

// Inputs: output shape, filter [O, h, w, I], data. Every input element meets the filter once.
Work transpose_conv(const OpFacts& facts) {
    return {elements(input(facts, 2)) * all_but(input(facts, 1), 3),
            bias(facts, 3) + activation(facts)};
}

// Filter [d, h, w, I, O].
Work conv_3d(const OpFacts& facts) {
    return {elements(output(facts, 0)) * all_but(input(facts, 1), 4),
            bias(facts, 2) + activation(facts)};
}

Work fully_connected(const OpFacts& facts) {
    return {elements(output(facts, 0)) * last(input(facts, 1)), bias(facts, 2) + activation(facts)};
}

Work batch_matmul(const OpFacts& facts) {
    const auto& a = input(facts, 0);
    if (a.size() < 2) {
        misfit("a matrix has too few dimensions");
    }
    const bool turned = facts.op->integer("adj_x", 0) != 0;
    return {elements(output(facts, 0)) * dim(a, a.size() - (turned ? 2 : 1)), 0};
}

// Four gates (three where input and forget gate are one); slots 1…4 read the input, 5…8 the state.
Work lstm(const OpFacts& facts) {
    const Number steps = vectors(input(facts, 0));
    Number weights = 0;
    for (std::size_t slot = 1; slot <= 8; ++slot) {
        if (has_input(facts, slot)) {
            weights += elements(input(facts, slot));
        }
    }
    if (has_input(facts, 16)) {
        weights += elements(input(facts, 16));
    }
    return {steps * weights, 0};
}

Work rnn(const OpFacts& facts) {
    const Number steps = vectors(input(facts, 0));
    return {steps * (elements(input(facts, 1)) + elements(input(facts, 2))), 0};
}

Work pool(const OpFacts& facts) {
    const auto window = Number(facts.op->integer("filter_width", 0)) *
                        Number(facts.op->integer("filter_height", 0));
    const bool averages = facts.op->type != "MAX_POOL_2D";
    return {0, elements(output(facts, 0)) * (averages ? window : window - Number(1)) +
                   activation(facts)};
}

// Each output element: three interpolations of three operations.
Work bilinear(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * 9};
}

template <int per_output>
Work reduce(const OpFacts& facts) {
    return {0, elements(input(facts, 0)) + elements(output(facts, 0)) * per_output};
}

Work binary(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) + activation(facts)};
}

Work add_n(const OpFacts& facts) {
    return {0, elements(output(facts, 0)) * (Number::of(facts.inputs.size()) - Number(1))};
}

Work concatenation(const OpFacts& facts) {
    return {0, activation(facts)};
}

constexpr NamedRule rules[] = {
    {"ADD", binary},
    {"ADD_N", add_n},
    {"AVERAGE_POOL_2D", pool},
    {"BATCH_MATMUL", batch_matmul},
    {"CONCATENATION", concatenation},
    {"CONV_2D", conv_2d},
    {"CONV_3D", conv_3d},
    {"DEPTHWISE_CONV_2D", depthwise},
    {"DIV", binary},
    {"FULLY_CONNECTED", fully_connected},
    {"L2_POOL_2D", pool},
    {"LSTM", lstm},
    {"MAX_POOL_2D", pool},
    {"MEAN", reduce<1>},
    {"MUL", binary},
    {"REDUCE_ALL", reduce<0>},
    {"REDUCE_ANY", reduce<0>},
    {"REDUCE_MAX", reduce<0>},
    {"REDUCE_MIN", reduce<0>},
    {"REDUCE_PROD", reduce<0>},
    {"RESIZE_BILINEAR", bilinear},
    {"RNN", rnn},
    {"SUB", binary},
    {"SUM", reduce<0>},
    {"TRANSPOSE_CONV", transpose_conv},
    {"UNIDIRECTIONAL_SEQUENCE_LSTM", lstm},
    {"UNIDIRECTIONAL_SEQUENCE_RNN", rnn},
};

constexpr ElementCost costs[] = {
    {"ABS", 1},
    {"ARG_MAX", 1, Of::input},
    {"ARG_MIN", 1, Of::input},
    {"ATAN2", 1},
    {"BITWISE_XOR", 1},
    {"CEIL", 1},
    {"COMPLEX_ABS", 4},
    {"COS", 1},
    {"CUMSUM", 1},
    {"DEQUANTIZE", 2},
    {"ELU", 4},
    {"EQUAL", 1},
    {"EXP", 1},
    {"FAKE_QUANT", 6},
    {"FLOOR", 1},
    {"FLOOR_DIV", 2},
    {"FLOOR_MOD", 1},
    {"GELU", 5},
    {"GREATER", 1},
    {"GREATER_EQUAL", 1},
    {"HARD_SWISH", 5},
    {"L2_NORMALIZATION", 3},
    {"LEAKY_RELU", 2},
    {"LESS", 1},
    {"LESS_EQUAL", 1},
    {"LOG", 1},
    {"LOGICAL_AND", 1},
    {"LOGICAL_NOT", 1},
    {"LOGICAL_OR", 1},
    {"LOGISTIC", 4},
    {"LOG_SOFTMAX", 5},
    {"MAXIMUM", 1},
    {"MINIMUM", 1},
    {"NEG", 1},
    {"NOT_EQUAL", 1},
    {"POW", 1},
    {"PRELU", 2},
    {"QUANTIZE", 4},
    {"RELU", 1},
    {"RELU6", 2},
    {"RELU_0_TO_1", 2},
    {"RELU_N1_TO_1", 2},
    {"RIGHT_SHIFT", 1},
    {"ROUND", 1},
    {"RSQRT", 2},
    {"SIGN", 1},
    {"SIN", 1},
    {"SOFTMAX", 5},
    {"SQRT", 1},
    {"SQUARE", 1},
    {"SQUARED_DIFFERENCE", 2},
    {"TANH", 1},
};

constexpr std::string_view movement[] = {
    "ASSIGN_VARIABLE",
    "BATCH_TO_SPACE_ND",
    "BITCAST",
    "BROADCAST_ARGS",
    "BROADCAST_TO",
    "CAST",
    "DENSIFY",
    "DEPTH_TO_SPACE",
    "DYNAMIC_UPDATE_SLICE",
    "EMBEDDING_LOOKUP",
    "EXPAND_DIMS",
    "FILL",
    "GATHER",
    "GATHER_ND",
    "IMAG",
    "MATRIX_DIAG",
    "MATRIX_SET_DIAG",
    "MIRROR_PAD",
    "ONE_HOT",
    "PACK",
    "PAD",
    "PADV2",
    "RANGE",
    "RANK",
    "READ_VARIABLE",
    "REAL",
    "RESHAPE",
    "RESIZE_NEAREST_NEIGHBOR",
    "REVERSE_SEQUENCE",
    "REVERSE_V2",
    "SCATTER_ND",
    "SELECT",
    "SELECT_V2",
    "SHAPE",
    "SLICE",
    "SPACE_TO_BATCH_ND",
    "SPACE_TO_DEPTH",
    "SPARSE_TO_DENSE",
    "SPLIT",
    "SPLIT_V",
    "SQUEEZE",
    "STRIDED_SLICE",
    "TILE",
    "TRANSPOSE",
    "UNPACK",
    "VAR_HANDLE",
    "WHERE",
    "ZEROS_LIKE",
};

constexpr Uncountable uncountable[] = {
    {"MULTINOMIAL", "drawing random numbers has no agreed count"},
    {"NON_MAX_SUPPRESSION_V4", "the work depends on the boxes"},
    {"NON_MAX_SUPPRESSION_V5", "the work depends on the boxes"},
    {"RANDOM_STANDARD_NORMAL", "drawing random numbers has no agreed count"},
    {"RANDOM_UNIFORM", "drawing random numbers has no agreed count"},
    {"UNIQUE", "the work depends on the values"},
};

constexpr auto w = Role::weight;
constexpr auto v = Role::vector;
constexpr auto c = Role::constant;
constexpr auto b = Role::buffer;

// Roles by slot; the last one goes on for all further slots.
struct Slots {
    std::string_view type;
    std::array<Role, 24> roles;
    std::size_t count;
};
constexpr std::array<Role, 24> lstm_roles = {c, w, w, w, w, w, w, w, w, v, v, v,
                                             v, v, v, v, w, v, b, b, v, v, v, v};
constexpr Slots slots[] = {
    {"BATCH_MATMUL", {w, w}, 2},
    {"CONV_2D", {w, w, v}, 3},
    {"CONV_3D", {w, w, v}, 3},
    {"DENSIFY", {w}, 1},
    {"DEPTHWISE_CONV_2D", {w, w, v}, 3},
    {"DEQUANTIZE", {w}, 1},
    {"EMBEDDING_LOOKUP", {c, w}, 2},
    {"FULLY_CONNECTED", {w, w, v}, 3},
    {"GATHER", {w, c}, 2},
    {"LSTM", lstm_roles, 24},
    {"PRELU", {w, v}, 2},
    {"RNN", {c, w, w, v, b}, 5},
    {"SVDF", {c, w, w, v, b}, 5},
    {"TRANSPOSE_CONV", {c, w, w, v}, 4},
    {"UNIDIRECTIONAL_SEQUENCE_LSTM", lstm_roles, 24},
    {"UNIDIRECTIONAL_SEQUENCE_RNN", {c, w, w, v, b}, 5},
};

constexpr std::string_view elementwise[] = {"ADD", "DIV", "MUL", "SUB"};
template <class List>
bool contains(const List& list, std::string_view type) {
    return std::find(std::begin(list), std::end(list), type) != std::end(list);
}

}  // namespace
}  // namespace tflite

RuleSet tflite_rules() {
    return {tflite::rules, tflite::costs, tflite::movement, tflite::uncountable};
}

Role tflite_role(const Op& op, std::size_t slot, DType dtype, std::span<const std::int64_t> shape) {
    const auto* found = std::find_if(std::begin(tflite::slots), std::end(tflite::slots),
                                     [&](const tflite::Slots& s) { return s.type == op.type; });
    const bool plain = is_float(dtype);
    const bool quantized = is_integer(dtype) && bits(dtype) > 0 && bits(dtype) <= 16;
    if (found == std::end(tflite::slots)) {
        // A bias or a scale that a layer left to an op of its own.
        return tflite::contains(tflite::elementwise, op.type) && plain && !shape.empty()
                   ? tflite::v
                   : tflite::c;
    }
    const auto known = found->roles[std::min(slot, found->count - 1)];
    if (known == tflite::w || known == tflite::v) {
        const bool integer_bias =
            known == tflite::v && (dtype == DType::i32 || dtype == DType::i64);
        if ((!plain && !quantized && !integer_bias) || shape.empty()) {
            return tflite::c;
        }
        return shape.size() < 2 ? tflite::v : known;
    }
    return known;
}

Passing tflite_passing(const Op& op) {
    struct Entry {
        std::string_view type;
        Passing passing;
    };
    static constexpr Entry entries[] = {
        {"CAST", Passing::unchanged},       {"DENSIFY", Passing::unchanged},
        {"DEQUANTIZE", Passing::unchanged}, {"EXPAND_DIMS", Passing::reshaped},
        {"RESHAPE", Passing::reshaped},     {"SQUEEZE", Passing::reshaped},
        {"TRANSPOSE", Passing::transposed},
    };
    for (const Entry& entry : entries) {
        if (op.domain.empty() && entry.type == op.type) {
            return entry.passing;
        }
    }
    return Passing::no;
}

Reach tflite_reach(const Op& op) {
    if (op.type == "SHAPE") {
        return Reach::nothing;
    }
    const bool picks =
        op.type.starts_with("GATHER") || op.type == "SLICE" || op.type == "STRIDED_SLICE";
    return picks ? Reach::picked : Reach::all;
}

std::optional<WeightAxes> tflite_weight_axes(const Op& op, std::size_t slot, std::size_t rank) {
    if (op.type == "CONV_2D" && slot == 1 && rank == 4) {
        return WeightAxes{0, 3};
    }
    if (op.type == "TRANSPOSE_CONV" && slot == 1 && rank == 4) {
        return WeightAxes{0, 3};
    }
    if (op.type == "FULLY_CONNECTED" && slot == 1 && rank == 2) {
        return WeightAxes{0, 1};
    }
    return std::nullopt;
}

}  // namespace trocar::counting
