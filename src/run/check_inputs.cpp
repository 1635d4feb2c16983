#include <fmt/format.h>

#include <unordered_map>

#include "trocar/session.h"
#include "util/aten_types.h"
#include "util/text.h"

namespace trocar {

namespace {

// Empty when the value fits the declared type.
std::string misfit(const Type& declared, const Value& value) {
    if (declared.kind != Type::Kind::tensor) {
        return {};
    }
    if (!value.is_tensor()) {
        return fmt::format("is {}, but {} is expected", value_text(value), type_text(declared));
    }
    const auto shape = value.shape();
    bool fits = declared.dtype == DType::undefined || declared.dtype == value.dtype();
    if (declared.dims) {
        fits = fits && declared.dims->size() == shape.size();
        for (std::size_t i = 0; fits && i < shape.size(); ++i) {
            fits = (*declared.dims)[i].value < 0 || (*declared.dims)[i].value == shape[i];
        }
    }
    return fits ? std::string{}
                : fmt::format("is {}[{}], but {} is expected", name(value.dtype()),
                              join(shape, ","), type_text(declared));
}

}  // namespace

std::vector<std::string> check_inputs(const Model& model, const std::vector<NamedValue>& inputs) {
    const auto& graph = model.graph;
    std::vector<std::string> faults;
    std::unordered_map<std::string_view, const Value*> given;
    for (const auto& input : inputs) {
        if (!given.emplace(input.name, &input.value).second) {
            faults.push_back(fmt::format("input '{}' is given twice", input.name));
            continue;
        }
        const auto id = graph.find_tensor(input.name);
        if (!id || !graph.tensor(*id).is_input) {
            faults.push_back(fmt::format("the model has no input '{}'", input.name));
            continue;
        }
        auto declared = graph.tensor(*id).type;
        if (has_assumed_type(graph.tensor(*id))) {
            declared.dtype = DType::undefined;  // what is given may correct it
        }
        if (const auto fault = misfit(declared, input.value); !fault.empty()) {
            faults.push_back(fmt::format("input '{}' {}", input.name, fault));
        }
    }
    for (const auto id : graph.inputs()) {
        const auto& t = graph.tensor(id);
        const bool optional = t.constant || t.type.kind == Type::Kind::optional;
        if (!optional && !given.contains(t.name)) {
            faults.push_back(fmt::format("input '{}' ({}) is missing", t.name, type_text(t.type)));
        }
    }
    return faults;
}

}  // namespace trocar
