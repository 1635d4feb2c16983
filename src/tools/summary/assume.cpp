#include "tools/summary/assume.h"

#include <fmt/format.h>

#include <map>

#include "util/dim_expression.h"

namespace trocar::summary {
namespace {

using Sizes = std::map<std::string, std::int64_t, std::less<>>;

Sizes sizes_of(const Graph& graph, const std::vector<NamedValue>& inputs) {
    Sizes sizes;
    for (const NamedValue& input : inputs) {
        auto id = graph.find_tensor(input.name);
        if (!id || !input.value.is_tensor() || !graph.tensor(*id).type.dims) {
            continue;
        }
        const auto& dims = *graph.tensor(*id).type.dims;
        const Shape& shape = input.value.shape();
        for (std::size_t i = 0; i < dims.size() && i < shape.size(); ++i) {
            if (dims[i].value < 0 && !dims[i].symbol.empty()) {
                sizes.emplace(dims[i].symbol, shape[i]);
            }
        }
    }
    return sizes;
}

std::optional<Shape> shape_with(const Type& type, const Sizes& sizes) {
    if (!type.dims || (type.kind != Type::Kind::tensor && type.kind != Type::Kind::sparse_tensor)) {
        return std::nullopt;
    }
    Shape shape;
    for (const Dim& dim : *type.dims) {
        auto whole = sizes.find(dim.symbol);  // an input may have an expression as its dimension
        auto size =
            dim.value >= 0 ? std::optional(dim.value)
            : whole != sizes.end()
                ? std::optional(whole->second)
                : evaluate(dim.symbol, [&](std::string_view symbol) {
                      auto found = sizes.find(symbol);
                      return found == sizes.end() ? std::nullopt : std::optional(found->second);
                  });
        if (!size || *size < 0) {
            return std::nullopt;
        }
        shape.push_back(*size);
    }
    return shape;
}

void put_in(Scope& scope, const Sizes& sizes) {
    for (TensorId id : scope.graph->tensors()) {
        Fact& fact = scope.fact(id);
        if (!fact.shape) {
            fact.shape = shape_with(scope.graph->tensor(id).type, sizes);
            fact.known = fact.shape ? Known::declared : fact.known;
        }
    }
    for (auto& [op, bodies] : scope.bodies) {
        for (Body& body : bodies) {
            put_in(*body.scope, sizes);
        }
    }
}

}  // namespace

std::vector<std::string> assume_sizes(Scope& scope, const std::vector<NamedValue>& inputs) {
    Sizes sizes = sizes_of(*scope.graph, inputs);
    put_in(scope, sizes);
    std::vector<std::string> texts;
    for (const auto& [symbol, size] : sizes) {
        texts.push_back(fmt::format("{}={}", symbol, size));
    }
    return texts;
}

}  // namespace trocar::summary
