#include "inject/lift.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace trocar::inject {

namespace {

std::string name_of(const Graph& graph, OpId id) {
    const auto& name = graph.op(id).name;
    if (!name.empty()) {
        return name;
    }
    std::size_t place = 0;
    for (const auto other : graph.ops()) {
        if (other == id) {
            break;
        }
        ++place;
    }
    return fmt::format("#{}", place);
}

// A `Constant` op with a tensor: what it gives.
const Constant* given(const Op& op) {
    if (op.type != "Constant" || !op.domain.empty() || op.outputs.size() != 1) {
        return nullptr;
    }
    const auto* value = op.attribute("value");
    return value == nullptr ? nullptr : std::get_if<Constant>(&value->value);
}

class Lifter {
public:
    explicit Lifter(Graph& main) : main_(main) {}

    // Does so for all bodies of an op, and says what they read from outside now.
    std::vector<std::string> lift(Graph& graph, OpId id, const std::string& path) {
        std::vector<std::string> lifted;
        const auto attributes = graph.op(id).attributes;
        for (const auto& attribute : attributes) {
            const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
            if (body == nullptr || *body == nullptr) {
                continue;
            }
            auto other = std::make_shared<Graph>((*body)->clone());
            const auto names = lift_all(*other, fmt::format("{}.{}", path, attribute.name));
            if (names.empty()) {
                continue;
            }
            for (const auto& name : names) {
                if (!graph.find_tensor(name)) {
                    graph.add_capture(name);
                }
            }
            graph.set_attribute(id, attribute.name, std::move(other));
            lifted.insert(lifted.end(), names.begin(), names.end());
        }
        if (!lifted.empty()) {
            graph.update_captures(id);
        }
        return lifted;
    }

private:
    std::vector<std::string> lift_all(Graph& body, const std::string& path) {
        std::vector<std::string> lifted;
        std::vector<OpId> ops(body.ops().begin(), body.ops().end());
        for (const auto id : ops) {
            const auto inner = lift(body, id, fmt::format("{}.{}", path, name_of(body, id)));
            lifted.insert(lifted.end(), inner.begin(), inner.end());
        }
        for (const auto id : body.tensors()) {
            const auto& tensor = body.tensor(id);
            if (tensor.constant && !tensor.is_input && !tensor.is_output && !tensor.uses.empty()) {
                const auto constant = *tensor.constant;
                body.replace_uses(id, moved(body, path, tensor.name, constant, lifted));
                body.remove_tensor(id);
            }
        }
        for (const auto id : ops) {
            const auto* constant = given(body.op(id));
            const auto output = constant == nullptr ? TensorId::none : body.op(id).outputs[0];
            if (constant != nullptr && !body.tensor(output).is_output &&
                !body.tensor(output).uses.empty()) {
                const auto value = *constant;
                const auto to = moved(body, path, body.tensor(output).name, value, lifted);
                body.remove(id, {{output, to}});
            }
        }
        return lifted;
    }
    TensorId moved(Graph& body, const std::string& path, const std::string& name,
                   const Constant& constant, std::vector<std::string>& lifted) {
        auto unique = fmt::format("{}.{}", path, name);
        while (main_.find_tensor(unique) || body.find_tensor(unique)) {
            unique += '_';
        }
        main_.add_constant(unique, constant);
        lifted.push_back(unique);
        return body.add_capture(unique);
    }
    Graph& main_;
};

}  // namespace

void lift_constants(Graph& graph) {
    Lifter lifter(graph);
    const std::vector<OpId> ops(graph.ops().begin(), graph.ops().end());
    for (const auto id : ops) {
        lifter.lift(graph, id, name_of(graph, id));
    }
}

}  // namespace trocar::inject
