#include "quantize/ops.h"

#include <algorithm>
#include <set>

#include "util/op_label.h"

namespace trocar::quantizing {

namespace {

bool is_weight(const Graph& graph, TensorId id, std::size_t rank) {
    if (id == TensorId::none) {
        return false;
    }
    const auto& tensor = graph.tensor(id);
    return tensor.constant && !tensor.is_input && tensor.constant->dtype() == DType::f32 &&
           !tensor.constant->is_sparse() && tensor.constant->shape().size() >= rank;
}
bool is_constant(const Graph& graph, TensorId id) {
    return id != TensorId::none && graph.tensor(id).constant && !graph.tensor(id).is_input;
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

const char* fill(const Graph& graph, const Op& op, Candidate& made) {
    const auto input = [&](std::size_t slot) {
        return slot < op.inputs.size() ? op.inputs[slot] : TensorId::none;
    };
    if (op.type == "Conv" || op.type == "ConvTranspose" || op.type == "Gemm") {
        if (!is_weight(graph, input(1), 2)) {
            return "its weights are no constant of f32";
        }
        if (is_constant(graph, input(0))) {
            return "its input is a constant";
        }
        made.activations = {0};
        made.weight = 1;
        made.axis = op.type == "ConvTranspose" ? 1
                    : op.type == "Gemm"        ? (op.integer("transB", 0) != 0 ? 0 : 1)
                                               : 0;
        if (op.type == "ConvTranspose" && op.integer("group", 1) != 1) {
            return "it has groups";
        }
        if (input(2) != TensorId::none) {
            if (!is_constant(graph, input(2)) ||
                graph.tensor(input(2)).constant->dtype() != DType::f32) {
                return "its bias is no constant of f32";
            }
            made.bias = 2;
        }
        return nullptr;
    }
    if (op.type == "MatMul") {
        if (is_weight(graph, input(1), 2)) {
            made.activations = {0};
            made.weight = 1;
            made.axis =
                static_cast<std::int64_t>(graph.tensor(input(1)).constant->shape().size()) - 1;
            return is_constant(graph, input(0)) ? "its input is a constant" : nullptr;
        }
        made.activations = {0, 1};
        return is_constant(graph, input(0)) || is_constant(graph, input(1))
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
        const auto* why = fill(graph, op, made);
        if (why != nullptr && *why == '\0') {
            continue;  // nothing that is quantised
        }
        const auto& first = graph.tensor(op.inputs[0]);
        if (why == nullptr && first.type.kind == Type::Kind::tensor &&
            first.type.dtype != DType::f32 && first.type.dtype != DType::undefined) {
            why = "it does not compute in f32";
        }
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

std::vector<TensorId> quantized_tensors(const Graph& graph, const std::vector<Candidate>& all) {
    std::set<TensorId> wanted;
    for (const auto& one : all) {
        for (const auto slot : one.activations) {
            wanted.insert(graph.op(one.op).inputs[slot]);
        }
        if (!graph.tensor(one.output).is_output) {
            wanted.insert(one.output);
        }
    }
    return {wanted.begin(), wanted.end()};
}

}  // namespace trocar::quantizing
