#pragma once

#include <string>

#include "trocar/graph.h"

namespace trocar {

// How reports speak of an op: by its name, else by that of its first output, else by its type.
inline std::string op_label(const Graph& graph, OpId id) {
    const auto& op = graph.op(id);
    if (!op.name.empty()) {
        return op.name;
    }
    for (const auto output : op.outputs) {
        if (output != TensorId::none) {
            return graph.tensor(output).name;
        }
    }
    return op.type;
}

}  // namespace trocar
