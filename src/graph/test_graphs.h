#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "trocar/graph.h"

namespace trocar::testing {

inline OpSpec spec(std::string type, std::vector<TensorId> inputs,
                   std::vector<TensorId> outputs = {}, std::string name = {}) {
    OpSpec made;
    made.type = std::move(type);
    made.name = std::move(name);
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    return made;
}

inline TensorId new_tensor(Graph& graph, std::string name = {}) {
    return graph.add_tensor(std::move(name), Type::tensor(DType::f32));
}

// Op `i` reads tensor `t<i>` and writes `t<i+1>`; t0 is the input, the last one the output.
inline Graph chain(std::size_t length) {
    Graph graph;
    auto at = graph.add_input("t0", Type::tensor(DType::f32));
    for (std::size_t i = 0; i < length; ++i) {
        const auto next = new_tensor(graph, fmt::format("t{}", i + 1));
        graph.append(spec("Relu", {at}, {next}, fmt::format("op{}", i)));
        at = next;
    }
    graph.set_outputs({at});
    graph.mark_read();
    return graph;
}

// x → a → b → c → add, with a second way from a to add: the residual block.
inline Graph residual() {
    Graph graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32));
    const auto w = graph.add_constant("w", Constant::of<float>(DType::f32, {1}, {2.0F}));
    const auto a = new_tensor(graph, "a");
    const auto b = new_tensor(graph, "b");
    const auto c = new_tensor(graph, "c");
    const auto y = new_tensor(graph, "y");
    graph.append(spec("Relu", {x}, {a}, "A"));
    graph.append(spec("Mul", {a, w}, {b}, "B"));
    graph.append(spec("Neg", {b}, {c}, "C"));
    graph.append(spec("Add", {c, a}, {y}, "Sum"));
    graph.set_outputs({y});
    graph.mark_read();
    return graph;
}

// If whose branch reads `outer` of the graph around it, and gives `name_inside` as its result.
inline std::shared_ptr<Graph> branch(const std::string& outer) {
    auto graph = std::make_shared<Graph>();
    graph->name = "branch";
    const auto captured = graph->add_capture(outer);
    const auto result = new_tensor(*graph, "result");
    graph->append(spec("Neg", {captured}, {result}));
    graph->set_outputs({result});
    graph->mark_read();
    return graph;
}

inline std::vector<std::string> order(const Graph& graph) {
    std::vector<std::string> names;
    for (const auto id : graph.ops()) {
        names.push_back(graph.op(id).name);
    }
    return names;
}

// All there is to see of a graph, for "left as it was".
inline std::string picture(const Graph& graph) {
    std::string text;
    const auto name = [&](TensorId id) {
        return id == TensorId::none ? std::string("-") : graph.tensor(id).name;
    };
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        text += fmt::format("{} {} {}(", index(id), op.name, op.type);
        for (const auto input : op.inputs) {
            text += name(input) + " ";
        }
        text += ") captures(";
        for (const auto capture : op.captures) {
            text += name(capture) + " ";
        }
        text += ") -> ";
        for (const auto output : op.outputs) {
            text += name(output) + " ";
        }
        for (const auto& subgraph : op.subgraphs()) {
            text += "{" + picture(*subgraph) + "}";
        }
        text += "\n";
    }
    for (const auto id : graph.inputs()) {
        text += "in " + name(id) + "\n";
    }
    for (const auto id : graph.outputs()) {
        text += "out " + name(id) + "\n";
    }
    text += fmt::format("{} tensors", graph.tensor_count());
    return text;
}

}  // namespace trocar::testing
