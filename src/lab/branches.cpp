#include <algorithm>

#include "lab/bodies.h"
#include "trocar/bisect.h"

namespace trocar {

namespace lab {

BodyCopy::BodyCopy(Graph& graph, OpId at, Graph body) : graph_(graph), body_(std::move(body)) {
    for (const auto inner : body_.ops()) {
        OpSpec spec = body_.op(inner);
        for (auto* list : {&spec.inputs, &spec.outputs}) {
            for (auto& tensor : *list) {
                tensor = tensor == TensorId::none ? tensor : (*this)(tensor);
            }
        }
        // What only bodies within this one read must be there as well.
        for (const auto tensor : body_.op(inner).captures) {
            (*this)(tensor);
        }
        graph_.insert_before(at, std::move(spec));
    }
}

TensorId BodyCopy::operator()(TensorId inner) {
    const auto known = here_.find(index(inner));
    if (known != here_.end()) {
        return known->second;
    }
    const auto& tensor = body_.tensor(inner);
    const auto outer = graph_.find_tensor(tensor.name);
    TensorId made{};
    if (tensor.is_captured && outer) {
        made = *outer;
    } else {
        const auto name = outer ? graph_.fresh_name(tensor.name) : tensor.name;
        made = tensor.constant   ? graph_.add_constant(name, *tensor.constant)
               : tensor.is_input ? graph_.add_input(name, tensor.type)
                                 : graph_.add_tensor(name, tensor.type);
    }
    here_.emplace(index(inner), made);
    return made;
}

std::optional<Graph> body_of(const Op& op, const std::string& name) {
    const auto* attribute = op.attribute(name);
    const auto* held =
        attribute == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&attribute->value);
    if (held == nullptr || !*held || (*held)->op_count() == 0) {
        return std::nullopt;
    }
    return (*held)->clone();
}

Value known_value(const Graph& graph, TensorId id, const std::vector<NamedValue>& inputs) {
    if (id == TensorId::none) {
        return {};
    }
    const auto& tensor = graph.tensor(id);
    Value value = tensor.constant ? Value::of(*tensor.constant) : Value();
    for (const auto& input : inputs) {
        value = input.name == tensor.name ? input.value : value;
    }
    return value;
}

void drop_unread_inputs(Graph& graph) {
    std::vector<TensorId> read;
    for (const auto input : graph.inputs()) {
        if (!graph.tensor(input).uses.empty() || graph.tensor(input).is_output) {
            read.push_back(input);
        }
    }
    graph.set_inputs(read);
}

}  // namespace lab

std::optional<Model> open_branch(const Model& model, const std::vector<NamedValue>& inputs,
                                 std::string& branch) {
    if (model.graph.op_count() != 1) {
        return std::nullopt;
    }
    auto opened = clone(model);
    auto& graph = opened.graph;
    const auto id = graph.first();
    const auto op = graph.op(id);  // a copy: the graph is edited
    if (op.type != "If" || op.inputs.empty()) {
        return std::nullopt;
    }
    const auto condition = lab::known_value(graph, op.inputs[0], inputs);
    if (!condition.is_tensor() || condition.dtype() != DType::boolean ||
        condition.element_count() != 1) {
        return std::nullopt;
    }
    branch = condition.bytes()[0] != std::byte{0} ? "then_branch" : "else_branch";
    auto body = lab::body_of(op, branch);
    if (!body) {
        return std::nullopt;
    }
    lab::BodyCopy copy(graph, id, std::move(*body));
    const auto made = copy.body().outputs();
    std::vector<std::pair<TensorId, TensorId>> replacements;
    for (std::size_t i = 0; i < op.outputs.size() && i < made.size(); ++i) {
        if (op.outputs[i] != TensorId::none) {
            replacements.emplace_back(op.outputs[i], copy(made[i]));
        }
    }
    graph.remove(id, replacements);
    graph.remove_unused();
    // The condition is not read any more, nor is what the other branch captured.
    lab::drop_unread_inputs(graph);
    return opened;
}

}  // namespace trocar
