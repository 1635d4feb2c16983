#include "tools/dump/scopes.h"

#include <fmt/format.h>

#include "util/op_label.h"

namespace trocar::dump {

Scopes::Scopes(const Model& model) : main_(model.graph.name) {
    walk(model.graph, "");
}

void Scopes::walk(const Graph& graph, const std::string& scope) {
    names_.emplace(&graph, scope);
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        for (const auto& attribute : op.attributes) {
            const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
            if (body != nullptr && *body) {
                walk(**body, fmt::format("{}{}{} '{}' {}", scope, scope.empty() ? "" : ", ",
                                         op.type, op_label(graph, id), attribute.name));
            }
        }
    }
}

std::string Scopes::of(const Graph& graph) const {
    const auto found = names_.find(&graph);
    if (found != names_.end()) {
        return found->second;
    }
    return graph.name == main_ ? "" : graph.name;
}

}  // namespace trocar::dump
