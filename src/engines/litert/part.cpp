#include "engines/litert/part.h"

#include <algorithm>
#include <map>

#include "trocar/error.h"

namespace trocar::litert {

namespace {

Attribute attribute(std::string name, Attribute::Value value) {
    return {.name = std::move(name), .value = std::move(value), .reference = {}, .source = {}};
}

// The shape of a tensor as an output. The sum makes it one that the engine allocates before it
// runs.
TensorId shape_output(Graph& graph, TensorId of, std::size_t rank) {
    const auto type = Type::tensor(DType::i32, Shape{static_cast<std::int64_t>(rank)});
    const auto shape = graph.add_tensor(graph.fresh_name("trocar_seen"), type);
    const auto sum = graph.add_tensor(graph.fresh_name("trocar_sum"), type);
    const auto zero =
        graph.add_constant(graph.fresh_name("trocar_zero"),
                           Constant::of(DType::i32, {}, std::vector<std::int32_t>{0}));
    graph.append({.type = "SHAPE",
                  .inputs = {of},
                  .outputs = {shape},
                  .attributes = {attribute("out_type", std::string("INT32"))}});
    graph.append({.type = "ADD",
                  .inputs = {shape, zero},
                  .outputs = {sum},
                  .attributes = {attribute("fused_activation_function", std::string("NONE"))}});
    return sum;
}

}  // namespace

bool Part::is_static() const {
    return std::all_of(inputs.begin(), inputs.end(), [&](TensorId id) {
        const auto& type = model.graph.tensor(id).type;
        return type.dtype != DType::undefined && type.shape().has_value();
    });
}

Part make_part(const Model& model) {
    Part part;
    part.model = clone(model);
    // What is beside the graph may speak of it by numbers that change.
    part.model.metadata.clear();
    part.model.signatures.clear();
    part.model.functions.clear();
    part.model.image = nullptr;
    part.model.source = {};
    auto& graph = part.model.graph;
    std::map<TensorId, std::size_t> places;
    for (const auto id : graph.inputs()) {
        const auto& tensor = graph.tensor(id);
        if (!tensor.constant) {
            places.emplace(id, part.inputs.size());
            part.inputs.push_back(id);
            part.input_names.push_back(tensor.name);
        }
    }
    graph.set_inputs(part.inputs);
    for (const auto id : graph.outputs()) {
        const auto& tensor = graph.tensor(id);
        part.output_names.push_back(tensor.name);
        if (tensor.constant) {
            part.outputs.push_back({Part::Output::From::constant, 0, Value::of(*tensor.constant)});
        } else if (const auto input = places.find(id); input != places.end()) {
            part.outputs.push_back({Part::Output::From::input, input->second});
        } else {
            auto found = std::find(part.computed.begin(), part.computed.end(), id);
            if (found == part.computed.end()) {
                found = part.computed.insert(found, id);
            }
            part.outputs.push_back({Part::Output::From::engine,
                                    static_cast<std::size_t>(found - part.computed.begin())});
        }
    }
    graph.set_outputs(part.computed);
    return part;
}

Model variant_of(const Part& part, const std::vector<Type>& types,
                 const std::vector<Shape>& shapes) {
    auto model = clone(part.model);
    auto& graph = model.graph;
    for (std::size_t i = 0; i < types.size(); ++i) {
        if (graph.tensor(part.inputs[i]).type != types[i]) {
            graph.set_type(part.inputs[i], types[i]);
        }
    }
    if (shapes.empty()) {
        return model;
    }
    std::vector<TensorId> outputs;
    std::vector<TensorId> seen;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        const auto dtype = graph.tensor(part.computed[i]).type.dtype;
        const std::vector<std::int32_t> dims(shapes[i].begin(), shapes[i].end());
        const auto to = graph.add_constant(
            graph.fresh_name("trocar_shape"),
            Constant::of(DType::i32, {static_cast<std::int64_t>(dims.size())}, dims));
        const auto fixed =
            graph.add_tensor(graph.fresh_name("trocar_output"), Type::tensor(dtype, shapes[i]));
        graph.set_quantization(fixed, graph.tensor(part.computed[i]).quantization);
        graph.append({.type = "RESHAPE",
                      .inputs = {part.computed[i], to},
                      .outputs = {fixed},
                      .attributes = {attribute("new_shape", shapes[i])}});
        outputs.push_back(fixed);
        seen.push_back(shape_output(graph, part.computed[i], shapes[i].size()));
    }
    outputs.insert(outputs.end(), seen.begin(), seen.end());
    graph.set_outputs(std::move(outputs));
    return model;
}

}  // namespace trocar::litert
