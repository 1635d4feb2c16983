#include "trocar/weights.h"

#include <fmt/format.h>

#include "graph/constant_place.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

[[noreturn]] void refuse_name(const Model& model, const std::string& name) {
    std::vector<std::string> names;
    for (const auto id : model.graph.tensors()) {
        if (constant_place(model, id)) {
            names.push_back(model.graph.tensor(id).name);
        }
    }
    throw Error(Fault::input, fmt::format("the model has no constant '{}'", name),
                did_you_mean(name, names));
}

ConstantPlace place_of(const Model& model, const NamedValue& value) {
    const auto id = model.graph.find_tensor(value.name);
    const auto place = id ? constant_place(model, *id) : std::nullopt;
    if (!place) {
        refuse_name(model, value.name);
    }
    const auto& constant = value_at(model.graph, *place);
    if (!value.value.is_tensor() || constant.dtype() != value.value.dtype() ||
        constant.shape() != value.value.shape()) {
        throw Error(Fault::input,
                    fmt::format("'{}' is {} {} in the model, {} in the file", value.name,
                                name(constant.dtype()), shape_text(constant.shape()),
                                value_text(value.value)),
                    "was it made for another model?");
    }
    return *place;
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
        if (const auto place = constant_place(model, id)) {
            all.push_back({model.graph.tensor(id).name, Value::of(value_at(model.graph, *place))});
        }
    }
    return all;
}

void set_weights(Model& model, std::span<const NamedValue> values) {
    std::vector<ConstantPlace> places;
    places.reserve(values.size());
    for (const auto& value : values) {
        places.push_back(place_of(model, value));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        set_value(model.graph, places[i], constant_of(values[i].value));
    }
}

}  // namespace trocar
