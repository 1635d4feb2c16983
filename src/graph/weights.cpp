#include "trocar/weights.h"

#include <fmt/format.h>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

// What writes a constant where that is an op; OpId::none: it is one of the graph's own.
struct Place {
    TensorId tensor = TensorId::none;
    OpId maker = OpId::none;
};

const Constant* written_by(const Model& model, const Op& op) {
    if (model.dialect != "onnx" || op.type != "Constant" || !op.domain.empty()) {
        return nullptr;
    }
    const auto* value = op.attribute("value");
    return value != nullptr && value->reference.empty() ? std::get_if<Constant>(&value->value)
                                                        : nullptr;
}

const Constant* value_of(const Model& model, TensorId id) {
    const auto& tensor = model.graph.tensor(id);
    if (tensor.constant) {
        return &*tensor.constant;
    }
    return tensor.producer == OpId::none ? nullptr
                                         : written_by(model, model.graph.op(tensor.producer));
}

[[noreturn]] void refuse_name(const Model& model, const std::string& name) {
    std::vector<std::string> names;
    for (const auto id : model.graph.tensors()) {
        if (value_of(model, id) != nullptr) {
            names.push_back(model.graph.tensor(id).name);
        }
    }
    throw Error(Fault::input, fmt::format("the model has no constant '{}'", name),
                did_you_mean(name, names));
}

Place place_of(const Model& model, const NamedValue& value) {
    const auto id = model.graph.find_tensor(value.name);
    const auto* constant = id ? value_of(model, *id) : nullptr;
    if (constant == nullptr) {
        refuse_name(model, value.name);
    }
    if (!value.value.is_tensor() || constant->dtype() != value.value.dtype() ||
        constant->shape() != value.value.shape()) {
        throw Error(Fault::input,
                    fmt::format("'{}' is {} {} in the model, {} in the file", value.name,
                                name(constant->dtype()), shape_text(constant->shape()),
                                value_text(value.value)),
                    "was it made for another model?");
    }
    const auto& tensor = model.graph.tensor(*id);
    return {*id, tensor.constant ? OpId::none : tensor.producer};
}

Constant constant_of(const Value& value) {
    return value.dtype() == DType::string
               ? Constant::strings(value.shape(), value.string_values())
               : Constant::view(value.dtype(), value.shape(), value.bytes(), value.body());
}

}  // namespace

std::vector<NamedValue> weights(const Model& model) {
    std::vector<NamedValue> all;
    for (const auto id : model.graph.tensors()) {
        if (const auto* constant = value_of(model, id)) {
            all.push_back({model.graph.tensor(id).name, Value::of(*constant)});
        }
    }
    return all;
}

void set_weights(Model& model, std::span<const NamedValue> values) {
    std::vector<Place> places;
    places.reserve(values.size());
    for (const auto& value : values) {
        places.push_back(place_of(model, value));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        auto constant = constant_of(values[i].value);
        if (places[i].maker == OpId::none) {
            model.graph.set_constant(places[i].tensor, std::move(constant));
        } else {
            model.graph.set_attribute(places[i].maker, "value", std::move(constant));
        }
    }
}

}  // namespace trocar
