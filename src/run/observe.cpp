

#include "trocar/session.h"

namespace trocar {

std::vector<Type> observe_types(const Model& model, const std::shared_ptr<Engine>& engine,
                                const std::vector<NamedValue>& inputs,
                                std::span<const TensorId> tensors) {
    const auto part = extract(model, {}, tensors);
    std::vector<NamedValue> needed;
    for (const auto& input : inputs) {
        const auto id = part.graph.find_tensor(input.name);
        if (id && part.graph.tensor(*id).is_input) {
            needed.push_back(input);
        }
    }
    SessionOptions options;
    options.cut = every_op();
    options.streaming = true;
    options.compile.low_memory = true;
    options.compile.types_only = true;
    Session session(part, engine, options);
    std::vector<Type> types;
    for (const auto& output : session.run(needed)) {
        types.push_back(type_of(output.value));
    }
    return types;
}

}  // namespace trocar
