#include "mapping/fuse.h"

#include <algorithm>

namespace trocar::mapping {

void fuse_activations(Graph& graph, const Fused& fused) {
    for (auto id = graph.first(); id != OpId::none;) {
        const auto next = graph.next(id);
        const auto& activation = graph.op(id);
        const auto found = fused.activations.find(activation.type);
        if (found != fused.activations.end() && activation.domain.empty() &&
            activation.inputs.size() == 1 && activation.inputs[0] != TensorId::none) {
            const auto& between = graph.tensor(activation.inputs[0]);
            const auto producer = between.producer;
            if (producer != OpId::none && between.uses.size() == 1 && !between.is_output) {
                const auto& op = graph.op(producer);
                const bool can =
                    op.domain.empty() && op.outputs.size() == 1 &&
                    op.text(fused.attribute, "") == "NONE" &&
                    std::find(fused.into.begin(), fused.into.end(), op.type) != fused.into.end();
                if (can) {
                    OpSpec made = op;
                    made.outputs = {};  // those of the activation
                    for (auto& attribute : made.attributes) {
                        if (attribute.name == fused.attribute) {
                            attribute.value = found->second;
                        }
                    }
                    graph.replace(id, std::move(made));
                }
            }
        }
        id = next;
    }
    graph.remove_unused();
}

}  // namespace trocar::mapping
