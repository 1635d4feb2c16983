#include "graph/constant_place.h"

#include <utility>

namespace trocar {

bool is_constant_op(const Model& model, const Op& op) {
    return model.dialect == "onnx" && op.type == "Constant" &&
           (op.domain.empty() || op.domain == "ai.onnx");
}

std::optional<ConstantPlace> constant_place(const Model& model, TensorId tensor) {
    const auto& held = model.graph.tensor(tensor);
    if (held.constant) {
        return ConstantPlace{tensor, OpId::none};
    }
    if (held.producer == OpId::none) {
        return std::nullopt;
    }
    const auto& op = model.graph.op(held.producer);
    const auto* value = is_constant_op(model, op) ? op.attribute("value") : nullptr;
    if (value == nullptr || !value->reference.empty() ||
        !std::holds_alternative<Constant>(value->value)) {
        return std::nullopt;
    }
    return ConstantPlace{tensor, held.producer};
}

const Constant& value_at(const Graph& graph, const ConstantPlace& place) {
    return place.maker == OpId::none
               ? *graph.tensor(place.tensor).constant
               : std::get<Constant>(graph.op(place.maker).attribute("value")->value);
}

void set_value(Graph& graph, const ConstantPlace& place, Constant value) {
    if (place.maker == OpId::none) {
        graph.set_constant(place.tensor, std::move(value));
    } else {
        graph.set_attribute(place.maker, "value", std::move(value));
    }
}

}  // namespace trocar
