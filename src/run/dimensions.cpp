#include "run/dimensions.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/text.h"

namespace trocar {

std::vector<Dim> Dimensions::of(const Type& type) {
    if (type.element.size() == 1) {
        return of(type.element.front());
    }
    return type.dims.value_or(std::vector<Dim>{});
}

std::optional<std::int64_t> Dimensions::size(const Dim& dim) const {
    if (dim.value >= 0) {
        return dim.value;
    }
    if (const auto chosen = chosen_.find(dim.symbol); chosen != chosen_.end()) {
        return chosen->second;
    }
    const auto learned = learned_.find(dim.symbol);
    return learned != learned_.end() ? std::optional(learned->second) : std::nullopt;
}

void Dimensions::learn(const Shape& shape, const Type& type) {
    const auto dims = of(type);
    for (std::size_t i = 0; i < std::min(dims.size(), shape.size()); ++i) {
        if (dims[i].value < 0 && !dims[i].symbol.empty()) {
            learned_.emplace(dims[i].symbol, shape[i]);
        }
    }
}

bool Dimensions::fits(const Shape& shape, const Type& type) const {
    if (!type.dims) {
        return true;
    }
    if (type.dims->size() != shape.size()) {
        return false;
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const auto& dim = (*type.dims)[i];
        const auto chosen = dim.value < 0 ? chosen_.find(dim.symbol) : chosen_.end();
        if ((dim.value >= 0 && dim.value != shape[i]) ||
            (chosen != chosen_.end() && chosen->second != shape[i])) {
            return false;
        }
    }
    return true;
}

bool Dimensions::fits(const Value& value, const Type& type) const {
    switch (type.kind) {
        case Type::Kind::tensor:
        case Type::Kind::sparse_tensor:
            return (value.is_tensor() || value.kind() == Value::Kind::sparse_tensor) &&
                   (type.dtype == DType::undefined || value.dtype() == type.dtype) &&
                   fits(value.shape(), type);
        case Type::Kind::sequence: {
            const auto items = value.items();
            return value.kind() == Value::Kind::sequence &&
                   std::all_of(items.begin(), items.end(), [&](const Value& item) {
                       return type.element.empty() || fits(item, type.element.front());
                   });
        }
        case Type::Kind::map:
            return value.kind() == Value::Kind::map;
        case Type::Kind::optional:
            return value.kind() == Value::Kind::none || type.element.empty() ||
                   fits(value, type.element.front());
        case Type::Kind::unknown:
        case Type::Kind::opaque:
            break;
    }
    return true;
}

std::optional<Shape> Dimensions::concrete(const Type& type,
                                          std::vector<std::string>& unknown) const {
    if (!type.dims) {
        unknown.emplace_back("the rank");
        return std::nullopt;
    }
    Shape shape;
    for (std::size_t i = 0; i < type.dims->size(); ++i) {
        const auto& dim = (*type.dims)[i];
        const auto found = size(dim);
        if (!found) {
            unknown.push_back(dim.symbol.empty() ? fmt::format("dimension {}", i)
                                                 : fmt::format("'{}'", dim.symbol));
        }
        shape.push_back(found.value_or(otherwise_.value_or(0)));
    }
    return unknown.empty() || otherwise_ ? std::optional(shape) : std::nullopt;
}

std::string Dimensions::text(const Type& type) const {
    std::vector<std::string> parts;
    for (const auto& dim : of(type)) {
        const auto found = chosen_.find(dim.symbol);
        if (dim.value < 0 && found != chosen_.end()) {
            parts.push_back(fmt::format("{}={}", dim.symbol, found->second));
        }
    }
    const auto declared = type_text(type);
    return parts.empty() ? declared : fmt::format("{} with {}", declared, join(parts, ", "));
}

std::vector<std::string> Dimensions::missing(const std::string& input, const Type& type) const {
    std::vector<std::string> sizes;
    std::vector<std::int64_t> whole;  // the shape, for dimensions that have no name
    bool nameless = false;
    for (const auto& dim : of(type)) {
        const auto found = size(dim);
        whole.push_back(found.value_or(1));
        nameless = nameless || (!found && dim.symbol.empty());
        if (!found) {
            sizes.push_back(fmt::format("{}=1", dim.symbol));
        }
    }
    if (sizes.empty()) {
        return {fmt::format("{}=1,3,224,224", input)};
    }
    return nameless ? std::vector{fmt::format("{}={}", input, join(whole, ","))} : sizes;
}

}  // namespace trocar
