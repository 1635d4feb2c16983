#include <fmt/format.h>

#include "formats/torchscript/interpreter.h"

// What values of the code are, and what they become in the graph.
namespace trocar::torchscript {

std::string Interpreter::kind_of(const Value& value) const {
    constexpr std::size_t longest = 64;
    if (const auto* runtime = value.as<Runtime>()) {
        return builder_.entry(*runtime).kind;
    }
    if (const auto* list = value.list()) {
        auto kind = list->runtime ? builder_.entry(*list->runtime).kind
                                  : (list->element.empty() ? "T" : list->element) + "[]";
        return kind.size() > longest ? "A[]" : kind;
    }
    if (const auto* dict = value.dict()) {
        return dict->kind.size() > longest ? "<A A>" : dict->kind;
    }
    if (const auto* nothing = value.as<Uninitialized>()) {
        return nothing->kind;
    }
    constexpr const char* plain[] = {"N", "b", "i", "f", "c", "s", "D"};
    if (value.what.index() < std::size(plain)) {
        return plain[value.what.index()];
    }
    return value.as<SizesOf>() != nullptr ? "i[]" : value.as<TypeOf>() != nullptr ? "i" : "A";
}

Runtime Interpreter::newest(Runtime value) const {
    for (std::size_t i = 0; i < builder_.count(); ++i) {
        const auto found = world_.versions.find(value.place);
        if (found == world_.versions.end() || found->second == value) {
            return value;
        }
        value = found->second;
    }
    return value;
}

Value Interpreter::settled(const Value& value) const {
    if (const auto* runtime = value.as<Runtime>()) {
        return newest(*runtime);
    }
    if (const auto* list = value.list(); list != nullptr && list->runtime) {
        return newest(*list->runtime);
    }
    if (const auto* dict = value.dict(); dict != nullptr && dict->runtime) {
        return newest(*dict->runtime);
    }
    return value;
}

Runtime Interpreter::construct(const std::string& type, const std::vector<Value>& items,
                               const std::string& kind) {
    Draft draft;
    draft.spec.domain = "prim";
    draft.spec.type = type;
    for (std::size_t i = 0; i < items.size(); ++i) {
        builder_.add_argument(draft, fmt::format("values[{}]", i), materialize(items[i]));
    }
    const auto made = builder_.add_output(draft, kind);
    builder_.append(std::move(draft));
    return made;
}

Runtime Interpreter::materialize(const Value& given) {
    spend();
    const Level level(depth_);
    if (depth_ > deepest) {
        refuse("its values are nested too deeply");
    }
    const auto value = settled(given);
    const auto scalar = [&](DType dtype, auto held, const char* kind) {
        return builder_.add_local_constant(
            Constant::of(dtype, {}, std::vector<decltype(held)>{held}), kind);
    };
    if (const auto* runtime = value.as<Runtime>()) {
        return *runtime;
    }
    if (const auto* held = value.as<bool>()) {
        return scalar(DType::boolean, static_cast<std::uint8_t>(*held ? 1 : 0), "b");
    }
    if (const auto* held = value.as<std::int64_t>()) {
        return scalar(DType::i64, *held, "i");
    }
    if (const auto* held = value.as<double>()) {
        return scalar(DType::f64, *held, "f");
    }
    if (const auto* held = value.as<std::complex<double>>()) {
        return scalar(DType::c128, *held, "c");
    }
    if (const auto* held = value.as<std::string>()) {
        return builder_.add_local_constant(Constant::strings({}, {*held}), "s");
    }
    if (const auto* held = value.as<Device>()) {
        return builder_.add_local_constant(Constant::strings({}, {held->name}), "D");
    }
    if (const auto* held = value.as<SizesOf>()) {
        Draft draft;
        draft.spec.type = "size";
        draft.spec.overload = "default";
        builder_.add_argument(draft, "self", newest(held->tensor));
        const auto made = builder_.add_output(draft, "i[]", "size");
        builder_.append(std::move(draft));
        return made;
    }
    if (const auto* held = value.as<TypeOf>()) {
        Draft draft;
        draft.spec.domain = "prim";
        draft.spec.type = "dtype";
        builder_.add_argument(draft, "a", newest(held->tensor));
        const auto made = builder_.add_output(draft, "i", "dtype");
        builder_.append(std::move(draft));
        return made;
    }
    if (const auto* list = value.list()) {
        std::vector<std::int64_t> numbers;
        for (const auto& item : list->items) {
            if (const auto* held = item.as<std::int64_t>()) {
                numbers.push_back(*held);
            }
        }
        if (list->element == "i" && numbers.size() == list->items.size()) {
            return builder_.add_local_constant(
                Constant::of(DType::i64, {static_cast<std::int64_t>(numbers.size())}, numbers),
                "i[]");
        }
        return construct("ListConstruct", list->items, kind_of(value));
    }
    if (const auto* tuple = value.tuple()) {
        return construct("TupleConstruct", tuple->items, "A");
    }
    if (const auto* dict = value.dict()) {
        std::vector<Value> items;
        for (const auto& [key, item] : dict->items) {
            items.push_back(key);
            items.push_back(item);
        }
        return construct("DictConstruct", items, dict->kind);
    }
    if (value.is_none()) {
        return construct("Constant", {}, "A?");
    }
    if (const auto* nothing = value.as<Uninitialized>()) {
        return construct("Uninitialized", {}, nothing->kind);
    }
    refuse("which module or function is meant is known only while the model runs");
}

Value Interpreter::convert(const Value& value, const std::string& kind) {
    const auto given = kind_of(value);
    if (const auto* runtime = value.as<Runtime>()) {
        if (const auto number = numbers_.find(runtime->place); number != numbers_.end()) {
            if (kind == kind_of(number->second)) {
                return number->second;
            }
        }
        if (given == kind || (kind != "b" && kind != "i" && kind != "f")) {
            if (given.ends_with("?") && given == kind + "?") {
                Draft draft;
                draft.spec.domain = "prim";
                draft.spec.type = "unchecked_cast";
                builder_.add_argument(draft, "x", *runtime);
                const auto made = builder_.add_output(draft, kind);
                builder_.append(std::move(draft));
                return made;
            }
            return value;
        }
        return call_op("aten",
                       kind == "b"   ? "Bool"
                       : kind == "i" ? "Int"
                                     : "Float",
                       {{value}, {}}, 0);
    }
    if (!value.is_plain() || (kind != "b" && kind != "i" && kind != "f")) {
        return value;
    }
    return fold(kind == "b"   ? "aten::Bool"
                : kind == "i" ? "aten::Int"
                              : "aten::Float",
                {value})
        .value_or(value);
}

std::string kind_of_type(const Expression* type) {
    if (type == nullptr) {
        return "T";  // code without a type is of tensors
    }
    if (type->kind == Expression::Kind::index) {
        const auto of = dotted(*type->children[0]);
        const auto& inner = *type->children[1];
        if (of == "Optional") {
            const auto kind = kind_of_type(&inner);
            return kind.ends_with("?") ? kind : kind + "?";
        }
        if (of == "List") {
            return kind_of_type(&inner) + "[]";
        }
        if (of == "Final") {
            return kind_of_type(&inner);
        }
        if (of == "Dict" && inner.kind == Expression::Kind::tuple && inner.children.size() == 2) {
            return fmt::format("<{} {}>", kind_of_type(inner.children[0].get()),
                               kind_of_type(inner.children[1].get()));
        }
        return "A";
    }
    constexpr std::pair<std::string_view, const char*> kinds[] = {
        {"Tensor", "T"}, {"int", "i"},     {"float", "f"},    {"bool", "b"},  {"str", "s"},
        {"number", "n"}, {"complex", "c"}, {"NoneType", "N"}, {"Device", "D"}};
    for (const auto& [name, kind] : kinds) {
        if (type->text == name && type->kind == Expression::Kind::name) {
            return kind;
        }
    }
    return type->kind == Expression::Kind::none ? "N" : "A";
}

}  // namespace trocar::torchscript
