#include "tools/extract/types.h"

#include <fmt/format.h>

#include <algorithm>

#include "trocar/error.h"
#include "trocar/session.h"
#include "util/text.h"

namespace trocar {

namespace {

bool is_open(const Type& type) {
    return type.kind == Type::Kind::unknown ||
           (type.kind == Type::Kind::tensor && type.dtype == DType::undefined);
}

std::vector<Type> types_in_a_run(const Model& before, const InputSpec& spec,
                                 const std::shared_ptr<Engine>& engine) {
    return observe_types(before, engine, make_inputs(before, spec).values, before.graph.outputs());
}

// Leaves open what the two types do not have in common.
void generalize(Type& type, const Type& other) {
    if (!type.dims || !other.dims || type.dims->size() != other.dims->size()) {
        type.dims.reset();
        return;
    }
    for (std::size_t i = 0; i < type.dims->size(); ++i) {
        if ((*type.dims)[i] != (*other.dims)[i]) {
            (*type.dims)[i] = {};
        }
    }
}

}  // namespace

std::vector<TensorId> untyped(const Model& part) {
    std::vector<TensorId> found;
    for (const auto& tensors : {part.graph.inputs(), part.graph.outputs()}) {
        for (const auto id : tensors) {
            if (is_open(part.graph.tensor(id).type)) {
                found.push_back(id);
            }
        }
    }
    return found;
}

std::string complete_types(const Model& model, Model& part, const std::vector<TensorId>& tensors,
                           const InputSpec& spec, const std::shared_ptr<Engine>& engine) {
    std::vector<TensorId> wanted;
    for (const auto id : tensors) {
        wanted.push_back(model.graph.find_tensor(part.graph.tensor(id).name).value());
    }
    const auto before = extract(model, {}, wanted);
    auto first = spec;
    first.fill = "random";
    first.unknown_dims = 1;
    auto types = types_in_a_run(before, first, engine);
    // Shapes can depend on values and on sizes: what another run has otherwise is left open.
    auto second = spec;
    second.fill = "zeros";
    second.unknown_dims = 2;
    std::optional<std::vector<Type>> others;
    if (spec.shapes.empty()) {
        try {
            others = types_in_a_run(before, second, engine);
        } catch (const Error&) {
            // The model does not take that size: nothing is known about its dimensions.
        }
    }
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (others) {
            generalize(types[i], (*others)[i]);
        } else if (types[i].dims) {
            std::fill(types[i].dims->begin(), types[i].dims->end(), Dim{});
        }
        texts.push_back(
            fmt::format("'{}' {}", part.graph.tensor(tensors[i]).name, type_text(types[i])));
        part.graph.set_type(tensors[i], std::move(types[i]));
    }
    return fmt::format("types that the file does not declare, as seen in runs: {}",
                       join(texts, ", "));
}

}  // namespace trocar
