#include <algorithm>
#include <unordered_map>

#include "trocar/bisect.h"

namespace trocar {

namespace {

// The condition of an If, where it is known.
std::optional<bool> condition(const Graph& graph, const Op& op,
                              const std::vector<NamedValue>& inputs) {
    if (op.inputs.empty() || op.inputs[0] == TensorId::none) {
        return std::nullopt;
    }
    const auto& tensor = graph.tensor(op.inputs[0]);
    Value value = tensor.constant ? Value::of(*tensor.constant) : Value();
    for (const auto& input : inputs) {
        value = input.name == tensor.name ? input.value : value;
    }
    if (!value.is_tensor() || value.dtype() != DType::boolean || value.element_count() != 1) {
        return std::nullopt;
    }
    return value.bytes()[0] != std::byte{0};
}

}  // namespace

std::optional<Model> open_branch(const Model& model, const std::vector<NamedValue>& inputs,
                                 std::string& branch) {
    if (model.graph.op_count() != 1) {
        return std::nullopt;
    }
    auto opened = clone(model);
    auto& graph = opened.graph;
    const auto id = graph.first();
    const auto op = graph.op(id);  // a copy: the graph is edited
    const auto taken = op.type == "If" ? condition(graph, op, inputs) : std::nullopt;
    if (!taken) {
        return std::nullopt;
    }
    branch = *taken ? "then_branch" : "else_branch";
    const auto* attribute = op.attribute(branch);
    const auto* held =
        attribute == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&attribute->value);
    if (held == nullptr || !*held || (*held)->op_count() == 0) {
        return std::nullopt;
    }
    const auto body = (*held)->clone();
    std::unordered_map<std::size_t, TensorId> here;
    const auto find = [&](TensorId inner) {
        const auto known = here.find(index(inner));
        if (known != here.end()) {
            return known->second;
        }
        const auto& tensor = body.tensor(inner);
        const auto outer = graph.find_tensor(tensor.name);
        TensorId made{};
        if (tensor.is_captured && outer) {
            made = *outer;
        } else {
            const auto name = outer ? graph.fresh_name(tensor.name) : tensor.name;
            made = tensor.constant ? graph.add_constant(name, *tensor.constant)
                                   : graph.add_tensor(name, tensor.type);
        }
        here.emplace(index(inner), made);
        return made;
    };
    for (const auto inner : body.ops()) {
        OpSpec spec = body.op(inner);
        for (auto* list : {&spec.inputs, &spec.outputs}) {
            for (auto& tensor : *list) {
                tensor = tensor == TensorId::none ? tensor : find(tensor);
            }
        }
        graph.insert_before(id, std::move(spec));
    }
    std::vector<std::pair<TensorId, TensorId>> replacements;
    std::vector<TensorId> outputs;
    for (std::size_t i = 0; i < op.outputs.size() && i < body.outputs().size(); ++i) {
        if (op.outputs[i] != TensorId::none) {
            replacements.emplace_back(op.outputs[i], find(body.outputs()[i]));
        }
    }
    graph.remove(id, replacements);
    graph.remove_unused();
    // The condition is not read any more, nor is what the other branch captured.
    std::vector<TensorId> read;
    for (const auto input : graph.inputs()) {
        if (!graph.tensor(input).uses.empty() || graph.tensor(input).is_output) {
            read.push_back(input);
        }
    }
    graph.set_inputs(read);
    return opened;
}

}  // namespace trocar
