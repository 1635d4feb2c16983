#include "engines/openvino/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "engines/openvino/values.h"
#include "trocar/error.h"

namespace trocar::ov {

namespace {

bool is_f64(const Attribute& attribute) {
    if (const auto* constant = std::get_if<Constant>(&attribute.value)) {
        return constant->dtype() == DType::f64;
    }
    const auto* number = std::get_if<std::int64_t>(&attribute.value);
    const auto& name = attribute.name;
    return number != nullptr && *number == static_cast<std::int64_t>(DType::f64) &&
           (name == "to" || name == "dtype" || name == "output_dtype" || name == "stash_type");
}

// The op or tensor that brings in f64; nothing: none does.
std::optional<std::string> f64_in(const Graph& graph) {
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        if (std::any_of(op.attributes.begin(), op.attributes.end(), is_f64)) {
            return graph.describe(id);
        }
        for (const auto& body : op.subgraphs()) {
            if (auto found = f64_in(*body)) {
                return found;
            }
        }
    }
    for (const auto id : graph.tensors()) {
        const auto& tensor = graph.tensor(id);
        if (tensor.type.dtype == DType::f64 ||
            (tensor.constant && tensor.constant->dtype() == DType::f64)) {
            return fmt::format("tensor '{}'", tensor.name);
        }
    }
    return std::nullopt;
}

void check_f64(const Model& model) {
    auto found = f64_in(model.graph);
    for (const auto& function : model.functions) {
        found = found ? found : f64_in(function->body);
    }
    if (found) {
        throw Error(Fault::unsupported,
                    fmt::format("OpenVINO computes f64 in f32, and {} is f64", *found),
                    "--engine openvino,f64=f32 allows it");
    }
}

void check_kind(const char* what, const Tensor& tensor) {
    const auto& type = tensor.type;
    const bool tensor_like = type.kind == Type::Kind::tensor || type.kind == Type::Kind::unknown;
    const bool known = type.dtype == DType::undefined || element_type(type.dtype).has_value();
    if (!tensor_like || !known) {
        throw Error(Fault::unsupported,
                    fmt::format("OpenVINO has no {} of the type {}, which '{}' is", what,
                                type_text(type), tensor.name));
    }
}

}  // namespace

bool Part::is_static() const {
    return std::all_of(inputs.begin(), inputs.end(), [&](const Input& input) {
        const auto& type = input_types[input.place];
        return type.kind == Type::Kind::tensor && type.dtype != DType::undefined &&
               type.shape().has_value();
    });
}

Part make_part(const Model& model, const Settings& settings) {
    Part part;
    part.model = clone(model);
    if (!part.model.functions.empty()) {
        inline_functions(part.model);
    }
    auto& graph = part.model.graph;
    for (const auto id : graph.tensors()) {
        if (const auto& constant = graph.tensor(id).constant; constant && constant->is_sparse()) {
            graph.set_constant(id, densify(*constant));
        }
    }
    std::map<TensorId, std::size_t> places;  // of inputs, then of outputs
    for (const auto id : graph.inputs()) {
        const auto& tensor = graph.tensor(id);
        if (!tensor.constant) {
            places.emplace(id, part.input_names.size());
            part.input_names.push_back(tensor.name);
            part.input_types.push_back(tensor.type);
        }
    }
    std::map<TensorId, std::size_t> computed;
    std::vector<TensorId> outputs;
    for (const auto id : graph.outputs()) {
        const auto& tensor = graph.tensor(id);
        part.output_names.push_back(tensor.name);
        part.output_types.push_back(tensor.type);
        if (tensor.constant) {
            part.outputs.push_back({Part::Output::From::constant, 0, Value::of(*tensor.constant)});
        } else if (const auto input = places.find(id); input != places.end()) {
            part.outputs.push_back({Part::Output::From::input, input->second});
        } else {
            check_kind("output", tensor);
            const auto [known, fresh] = computed.emplace(id, outputs.size());
            if (fresh) {
                outputs.push_back(id);
            }
            part.outputs.push_back({Part::Output::From::engine, known->second});
        }
    }
    part.computed = outputs.size();
    graph.set_outputs(outputs);
    graph.remove_unused();
    std::vector<TensorId> inputs;
    for (const auto& [id, place] : places) {
        const auto& tensor = graph.tensor(id);
        if (!tensor.uses.empty()) {
            check_kind("input", tensor);
            part.inputs.push_back({place, id});
            inputs.push_back(id);
        }
    }
    graph.set_inputs(std::move(inputs));
    if (!settings.f64_as_f32) {
        check_f64(part.model);
    }
    return part;
}

}  // namespace trocar::ov
