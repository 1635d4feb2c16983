#include "quantize/ops.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "trocar/counting.h"
#include "util/elements.h"
#include "util/op_label.h"

namespace trocar::quantizing {

namespace {

bool is_constant(const Graph& graph, TensorId id) {
    return id != TensorId::none && graph.tensor(id).constant && !graph.tensor(id).is_input;
}
bool is_real_constant(const Graph& graph, TensorId id) {
    return is_constant(graph, id) && graph.tensor(id).constant->dtype() == DType::f32 &&
           !graph.tensor(id).constant->is_sparse();
}
bool is_weight(const Graph& graph, TensorId id, std::size_t rank) {
    return is_real_constant(graph, id) && graph.tensor(id).constant->shape().size() >= rank;
}
bool is_dequantized(const Graph& graph, TensorId id) {
    return id != TensorId::none && graph.tensor(id).producer != OpId::none &&
           graph.op(graph.tensor(id).producer).type == "DequantizeLinear";
}
bool is_finite(const Graph& graph, TensorId id) {
    const auto numbers = numbers_of(*graph.tensor(id).constant);
    return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
}

// The one op that reads a tensor, where there is one.
OpId only_reader(const Graph& graph, TensorId id) {
    const auto& tensor = graph.tensor(id);
    return tensor.uses.size() == 1 && !tensor.is_output && tensor.uses[0].slot != Use::captured
               ? tensor.uses[0].op
               : OpId::none;
}

TensorId behind(const Graph& graph, TensorId output) {
    const auto reader = only_reader(graph, output);
    if (reader == OpId::none) {
        return output;
    }
    const auto& op = graph.op(reader);
    const bool clips =
        op.domain.empty() && (op.type == "Relu" || op.type == "Clip") && op.inputs[0] == output;
    return clips ? op.outputs[0] : output;
}

// Why an op cannot be quantised with its activations; "": it is none of those that are;
// nullptr: it can.
const char* fill_layer(const Graph& graph, const Op& op, Candidate& made) {
    const auto input = [&](std::size_t slot) {
        return slot < op.inputs.size() ? op.inputs[slot] : TensorId::none;
    };
    if (is_dequantized(graph, input(1))) {
        return "it is quantised already";
    }
    if (!is_weight(graph, input(1), 2)) {
        return "its weights are no constant of f32";
    }
    if (is_constant(graph, input(0))) {
        return "its input is a constant";
    }
    made.activations = {0};
    const bool turned =
        op.type == "ConvTranspose" || (op.type == "Gemm" && op.integer("transB", 0) == 0);
    made.weights = {{1, turned ? 1 : 0, turned ? 0 : 1}};
    if (op.type == "ConvTranspose" && op.integer("group", 1) != 1) {
        return "it has groups";
    }
    if (input(2) != TensorId::none) {
        if (!is_real_constant(graph, input(2))) {
            return "its bias is no constant of f32";
        }
        made.bias = 2;
    }
    return nullptr;
}

const char* fill(const Graph& graph, const Op& op, Candidate& made) {
    const auto input = [&](std::size_t slot) {
        return slot < op.inputs.size() ? op.inputs[slot] : TensorId::none;
    };
    if (op.type == "Conv" || op.type == "ConvTranspose" || op.type == "Gemm") {
        return fill_layer(graph, op, made);
    }
    if (op.type == "MatMul") {
        if (is_weight(graph, input(1), 2)) {
            const auto rank =
                static_cast<std::int64_t>(graph.tensor(input(1)).constant->shape().size());
            made.activations = {0};
            made.weights = {{1, rank - 1, rank - 2}};
            return is_constant(graph, input(0)) ? "its input is a constant" : nullptr;
        }
        made.activations = {0, 1};
        return is_dequantized(graph, input(1)) ? "it is quantised already"
               : is_constant(graph, input(0)) || is_constant(graph, input(1))
                   ? "one of its factors is a constant that is no weight"
                   : nullptr;
    }
    if (op.type == "Add" || op.type == "Mul") {
        made.activations = {0, 1};
        return is_constant(graph, input(0)) || is_constant(graph, input(1))
                   ? "one of its inputs is a constant"
                   : nullptr;
    }
    if (op.type == "GlobalAveragePool" || op.type == "AveragePool" || op.type == "Concat") {
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
            if (is_constant(graph, op.inputs[i])) {
                return "one of its inputs is a constant";
            }
            made.activations.push_back(i);
        }
        return nullptr;
    }
    return "";
}

// The same for weights alone.
const char* fill_weights(const Graph& graph, const Op& op, bool integers, Candidate& made) {
    if (passing(op) != Passing::no) {
        return "";
    }
    const char* why = "";
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const auto id = op.inputs[slot];
        if (is_dequantized(graph, id) && weight_axes(op, slot, 2)) {
            why = "it is quantised already";
        }
        if (!is_weight(graph, id, 2)) {
            continue;
        }
        const auto& shape = graph.tensor(id).constant->shape();
        const auto rank = shape.size();
        if (role(op, slot, DType::f32, shape) != Role::weight) {
            continue;
        }
        const auto axes = weight_axes(op, slot, rank);
        const bool table = op.type == "Gather" && slot == 0 && op.integer("axis", 0) == 0;
        if (axes) {
            made.weights.push_back({slot, static_cast<std::int64_t>(axes->output),
                                    static_cast<std::int64_t>(axes->reduced)});
        } else if (table || !integers) {
            made.weights.push_back({slot, 0, static_cast<std::int64_t>(rank) - 1});
        }
    }
    return made.weights.empty() ? why : nullptr;
}

// What else stands in the way.
const char* unfit(const Graph& graph, const Op& op, const Candidate& made) {
    for (const auto slot : made.activations) {
        const auto id = op.inputs[slot];
        if (id == TensorId::none) {
            return "an input is missing";
        }
        const auto& type = graph.tensor(id).type;
        if (type.kind == Type::Kind::tensor && type.dtype != DType::f32 &&
            type.dtype != DType::undefined) {
            return "it does not compute in f32";
        }
        if (is_dequantized(graph, id)) {
            return "it is quantised already";
        }
    }
    for (const auto& weight : made.weights) {
        if (!is_finite(graph, op.inputs[weight.slot])) {
            return "its weights are not all finite numbers";
        }
    }
    return made.bias && !is_finite(graph, op.inputs[*made.bias])
               ? "its bias is not of finite numbers alone"
               : nullptr;
}

}  // namespace

bool passes_numbers_on(const Op& op) {
    static const std::set<std::string> types{"MaxPool", "Reshape",   "Flatten",  "Transpose",
                                             "Squeeze", "Unsqueeze", "Identity", "Dropout"};
    return op.domain.empty() && types.contains(op.type);
}

std::vector<Candidate> candidates(const Model& model, const QuantizeOptions& options,
                                  std::vector<QuantizedOp>& fates) {
    std::vector<Candidate> all;
    const auto& graph = model.graph;
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        if (!op.domain.empty() || op.outputs.empty() || op.outputs[0] == TensorId::none) {
            continue;
        }
        Candidate made;
        made.op = id;
        const bool integers = options.scheme == QuantizeScheme::weights_int8 ||
                              options.scheme == QuantizeScheme::weights_int4;
        const auto* why = options.scheme == QuantizeScheme::int8
                              ? fill(graph, op, made)
                              : fill_weights(graph, op, integers, made);
        if (why != nullptr && *why == '\0') {
            continue;  // nothing that is quantised
        }
        why = why == nullptr ? unfit(graph, op, made) : why;
        if (why == nullptr && options.keep(graph, id)) {
            why = "it was asked to be kept";
        }
        fates.push_back({op_label(graph, id), op.type, why == nullptr, why == nullptr ? "" : why});
        if (why == nullptr) {
            made.output = behind(graph, op.outputs[0]);
            all.push_back(std::move(made));
        }
    }
    return all;
}

std::vector<TensorId> quantized_tensors(const Graph& graph, const std::vector<Candidate>& all,
                                        bool outputs) {
    std::set<TensorId> wanted;
    for (const auto& one : all) {
        for (const auto slot : one.activations) {
            wanted.insert(graph.op(one.op).inputs[slot]);
        }
        if (!one.activations.empty() && (outputs || !graph.tensor(one.output).is_output)) {
            wanted.insert(one.output);
        }
    }
    return {wanted.begin(), wanted.end()};
}

}  // namespace trocar::quantizing
