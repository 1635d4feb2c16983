#include "run/dtypes.h"

#include <algorithm>
#include <string_view>

namespace trocar {

namespace {

// Chains of undeclared tensors longer than this are not followed.
constexpr int most_steps = 200;

template <std::size_t N>
bool among(const std::string_view (&list)[N], std::string_view type) {
    return std::find(std::begin(list), std::end(list), type) != std::end(list);
}

constexpr std::string_view gives_i64[]{
    "Shape",       "Size",          "NonZero", "ArgMax", "ArgMin", "Unique", "NonMaxSuppression",
    "StringSplit", "SequenceLength"};
constexpr std::string_view gives_bool[]{
    "Equal", "Greater", "GreaterOrEqual", "Less",  "LessOrEqual",        "And",           "Or",
    "Xor",   "Not",     "IsNaN",          "IsInf", "OptionalHasElement", "RegexFullMatch"};
constexpr std::string_view gives_i32[]{"MatMulInteger", "ConvInteger"};
// Types that take what they give from an attribute, where it is there.
constexpr std::string_view by_attribute[]{"EyeLike",          "RandomNormal",      "RandomUniform",
                                          "RandomNormalLike", "RandomUniformLike", "Multinomial",
                                          "Bernoulli"};
// Nothing is known of these from their inputs.
constexpr std::string_view untold[]{
    "SequenceAt",     "ConcatFromSequence", "SequenceEmpty",   "SequenceConstruct",
    "SequenceInsert", "SequenceErase",      "SplitToSequence", "Optional",
    "SequenceMap",    "OptionalGetElement", "ImageDecoder",    "StringConcat",
    "QLinearConv",    "QLinearMatMul",      "LabelEncoder",    "DynamicQuantizeLinear",
    "Constant",       "TfIdfVectorizer"};

DType from_attribute(const Op& op, std::string_view name) {
    const auto number = op.integer(name, 0);
    return number > 0 ? static_cast<DType>(number) : DType::undefined;
}

DType constant_attribute(const Op& op, DType otherwise) {
    for (const auto& attribute : op.attributes) {
        if (const auto* constant = std::get_if<Constant>(&attribute.value)) {
            return constant->dtype();
        }
        if (attribute.name == "value_float" || attribute.name == "value_floats") {
            return DType::f32;
        }
        if (attribute.name == "value_int" || attribute.name == "value_ints") {
            return DType::i64;
        }
    }
    return otherwise;
}

// The input whose type an op passes on.
std::size_t passing_slot(const Op& op) {
    if (op.type == "Where" || op.type == "CastLike") {
        return 1;
    }
    return op.type == "OneHot" ? 2 : 0;
}

}  // namespace

DType DTypes::of(std::span<const BodyStep> path, TensorId tensor) {
    return model_.dialect == "onnx" ? find(path, tensor, 0) : DType::undefined;
}

DType DTypes::find(std::span<const BodyStep> path, TensorId id, int depth) {
    if (id == TensorId::none || depth > most_steps) {
        return DType::undefined;
    }
    const auto& graph = graph_at(model_.graph, path);
    const auto& tensor = graph.tensor(id);
    if (tensor.constant) {
        return tensor.constant->dtype();
    }
    if (tensor.type.kind == Type::Kind::tensor && tensor.type.dtype != DType::undefined) {
        return tensor.type.dtype;
    }
    if (tensor.type.kind != Type::Kind::tensor && tensor.type.kind != Type::Kind::unknown) {
        return DType::undefined;
    }
    if (tensor.is_captured && !path.empty()) {
        const auto outer = path.first(path.size() - 1);
        const auto found = graph_at(model_.graph, outer).find_tensor(tensor.name);
        return found ? find(outer, *found, depth + 1) : DType::undefined;
    }
    if (tensor.is_input && !path.empty()) {
        return carried(path, id, depth);
    }
    if (tensor.producer == OpId::none) {
        return DType::undefined;
    }
    return written(path, graph.op(tensor.producer), tensor.producer_slot, depth);
}

// An input of a body: that of a Loop or a Scan has the type of what the op was given.
DType DTypes::carried(std::span<const BodyStep> path, TensorId id, int depth) {
    const auto outer = path.first(path.size() - 1);
    const auto& op = graph_at(model_.graph, outer).op(path.back().op);
    const auto inputs = graph_at(model_.graph, path).inputs();
    const auto slot =
        static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), id) - inputs.begin());
    if (op.type == "Loop" && slot < 2) {
        return slot == 0 ? DType::i64 : DType::boolean;
    }
    return slot < op.inputs.size() ? find(outer, op.inputs[slot], depth + 1) : DType::undefined;
}

DType DTypes::written(std::span<const BodyStep> path, const Op& op, std::size_t slot, int depth) {
    if (op.domain == host_domain && slot < op.inputs.size()) {
        return find(path, op.inputs[slot], depth + 1);
    }
    if (!op.domain.empty() && op.domain != "ai.onnx") {
        return DType::undefined;
    }
    const auto& type = op.type;
    if (type == "Constant" || type == "ConstantOfShape") {
        return constant_attribute(op, type == "Constant" ? DType::undefined : DType::f32);
    }
    if (type == "Cast") {
        return from_attribute(op, "to");
    }
    if (among(by_attribute, type) && op.attribute("dtype") != nullptr) {
        return from_attribute(op, "dtype");
    }
    if ((type == "TopK" || type == "MaxPool" || type == "Unique") && slot > 0) {
        return DType::i64;
    }
    if (type == "Dropout" && slot == 1) {
        // Before version 10 the mask was of the type of what it masks.
        return model_.opset() >= 10 ? DType::boolean : find(path, op.inputs.at(0), depth + 1);
    }
    if (type == "Unique") {
        return find(path, op.inputs.at(0), depth + 1);
    }
    if (among(gives_i64, type)) {
        return DType::i64;
    }
    if (among(gives_bool, type)) {
        return DType::boolean;
    }
    if (among(gives_i32, type)) {
        return DType::i32;
    }
    if (type == "QuantizeLinear") {
        return op.inputs.size() > 2 ? find(path, op.inputs[2], depth + 1) : DType::u8;
    }
    if (type == "DequantizeLinear") {
        return op.inputs.size() > 1 ? find(path, op.inputs[1], depth + 1) : DType::undefined;
    }
    const auto from = passing_slot(op);
    if (among(untold, type) || !op.subgraphs().empty() || from >= op.inputs.size()) {
        return DType::undefined;
    }
    return find(path, op.inputs[from], depth + 1);
}

}  // namespace trocar
