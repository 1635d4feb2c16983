#include "prune/weights.h"

namespace trocar::pruning {

std::vector<Reformed> fold_forms(Model& model, Shapes& shapes) {
    auto& graph = model.graph;
    std::vector<OpId> found;
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        const bool forms = op.type == "Reshape" || op.type == "Unsqueeze" || op.type == "Squeeze" ||
                           op.type == "Flatten";
        if (forms && op.domain.empty() && op.outputs.size() == 1 &&
            op.outputs[0] != TensorId::none && !graph.tensor(op.outputs[0]).is_output &&
            !op.inputs.empty() && op.inputs[0] != TensorId::none) {
            found.push_back(id);
        }
    }
    std::vector<Reformed> all;
    for (const auto id : found) {
        const auto& op = graph.op(id);
        const auto out = op.outputs[0];
        const auto place = constant_behind(model, op.inputs[0]);
        const auto& shape = shapes[index(out)];
        if (!place || !place->axes.empty() || !shape) {
            continue;
        }
        const auto value = value_at(graph, *place);
        if (!is_float(value.dtype()) || value.is_sparse() || bits(value.dtype()) % 8 != 0 ||
            element_count(*shape) != value.element_count()) {
            continue;
        }
        const auto root = graph.tensor(place->tensor).name;
        const auto made =
            graph.add_constant(graph.fresh_name(graph.tensor(out).name),
                               Constant::view(value.dtype(), *shape, value.bytes(), value.owner()));
        shapes.resize(graph.tensor_limit());
        shapes[index(made)] = graph.tensor(made).constant->shape();
        graph.remove(id, {{out, made}});
        all.push_back({graph.tensor(made).name, root, value.shape()});
    }
    graph.remove_unused();
    return all;
}

}  // namespace trocar::pruning
