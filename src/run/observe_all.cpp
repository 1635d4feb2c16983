#include "trocar/session.h"
#include "trocar/shapes.h"

namespace trocar {

std::vector<Type> observed_types(const Model& model, const std::shared_ptr<Engine>& engine,
                                 const std::vector<NamedValue>& inputs) {
    SessionOptions options;
    options.cut = every_op();
    options.streaming = true;
    options.compile.low_memory = true;
    options.compile.types_only = true;
    Session session(model, engine, options);
    std::vector<Type> types(model.graph.tensor_limit());
    for (const auto id : model.graph.tensors()) {
        if (const auto* constant = session.plan().constants[index(id)]) {
            types[index(id)] = Type::tensor(constant->dtype(), constant->shape());
        }
    }
    const auto see = [&](const std::vector<TensorId>& tensors, std::span<const Value> values) {
        for (std::size_t i = 0; i < tensors.size() && i < values.size(); ++i) {
            types[index(tensors[i])] = type_of(values[i]);
        }
    };
    session.run(inputs, [&](const SegmentRun& run) {
        see(run.segment.inputs, run.inputs);
        see(run.segment.outputs, run.outputs);
    });
    return types;
}

Shapes shapes_of(const std::vector<Type>& types) {
    Shapes shapes;
    shapes.reserve(types.size());
    for (const auto& type : types) {
        shapes.push_back(type.kind == Type::Kind::tensor ? type.shape() : std::nullopt);
    }
    return shapes;
}

Shapes declared_shapes(const Graph& graph) {
    Shapes shapes(graph.tensor_limit());
    for (const auto id : graph.tensors()) {
        const auto& tensor = graph.tensor(id);
        shapes[index(id)] =
            tensor.constant ? std::optional(tensor.constant->shape()) : tensor.type.shape();
    }
    return shapes;
}

OpFacts op_facts(const Model& model, OpId id, const Shapes& shapes) {
    OpFacts facts;
    const auto& op = model.graph.op(id);
    facts.op = &op;
    facts.dialect = model.dialect;
    const auto fill = [&](const std::vector<TensorId>& ids, std::vector<TensorFacts>& all) {
        for (const auto tensor : ids) {
            TensorFacts one;
            one.present = tensor != TensorId::none;
            if (one.present) {
                const auto& t = model.graph.tensor(tensor);
                one.dtype = t.constant ? t.constant->dtype() : t.type.dtype;
                one.constant = t.constant ? &*t.constant : nullptr;
                one.shape = index(tensor) < shapes.size() ? shapes[index(tensor)] : std::nullopt;
                one.shape = one.shape || !t.constant ? one.shape : t.constant->shape();
            }
            all.push_back(std::move(one));
        }
    };
    fill(op.inputs, facts.inputs);
    fill(op.outputs, facts.outputs);
    return facts;
}

std::optional<std::uint64_t> macs_of(const Model& model, OpId id, const Shapes& shapes) {
    const auto counted = count(op_facts(model, id, shapes));
    return counted.counted == Counted::unknown ? std::nullopt : std::optional(counted.macs);
}

}  // namespace trocar
