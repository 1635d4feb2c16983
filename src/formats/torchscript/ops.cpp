#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/torchscript/interpreter.h"

// Calls of ops: worked out where the file settles them, else made ops of the graph.
namespace trocar::torchscript {

namespace {

bool is_number_kind(const std::string& kind) {
    return kind == "i" || kind == "f" || kind == "b" || kind == "c" || kind == "n";
}

// "i[2]" → "i".
std::optional<std::string> element_kind(const std::string& kind) {
    if (!kind.ends_with(']')) {
        return std::nullopt;
    }
    return kind.substr(0, kind.rfind('['));
}

// What "t" and "u" of a schema stand for, from an argument of this kind.
void learn(const std::string& wanted, const std::string& given,
           std::map<std::string, std::string>& known) {
    if (wanted == "t" || wanted == "u") {
        known.emplace(wanted, given);
    } else if (wanted.ends_with("?")) {
        learn(wanted.substr(0, wanted.size() - 1),
              given.ends_with("?") ? given.substr(0, given.size() - 1) : given, known);
    } else if (const auto element = element_kind(wanted)) {
        if (const auto of = element_kind(given)) {
            learn(*element, *of, known);
        }
    } else if (wanted.starts_with('<') && given.starts_with('<')) {
        learn(wanted.substr(wanted.find(' ') + 1, wanted.size() - wanted.find(' ') - 2),
              given.substr(given.find(' ') + 1, given.size() - given.find(' ') - 2), known);
    }
}
std::string replaced(const std::string& kind, const std::map<std::string, std::string>& known) {
    if (const auto element = element_kind(kind)) {
        return replaced(*element, known) + "[]";
    }
    const auto found = known.find(kind);
    return found != known.end() ? found->second : kind == "t" || kind == "u" ? "A" : kind;
}

}  // namespace

bool Interpreter::matches(const std::string& kind, const Value& value, bool lenient) const {
    if (kind.ends_with("?")) {
        return value.is_none() || kind_of(value) == kind ||
               matches(kind.substr(0, kind.size() - 1), value, lenient);
    }
    if (kind == "A" || kind == "t" || kind == "u") {
        return true;
    }
    const auto given = kind_of(value);
    if (const auto element = element_kind(kind)) {
        const auto all = [&](const std::vector<Value>& items) {
            return std::all_of(items.begin(), items.end(), [&](const Value& item) {
                return matches(*element, settled(item), lenient);
            });
        };
        if (const auto* list = value.list()) {
            return list->items.empty() ? list->element.empty() || list->element == *element ||
                                             *element == "t" || *element == "T?" || lenient
                                       : all(list->items);
        }
        if (lenient && value.tuple() != nullptr) {
            return all(value.tuple()->items);
        }
        if (const auto of = element_kind(given)) {
            return *of == *element || *element == "t" || (*element == "T?" && *of == "T");
        }
        return lenient && !kind.ends_with("[]") && matches(*element, value, false);
    }
    if (kind.starts_with('<')) {
        return given.starts_with('<') && given.substr(0, 2) == kind.substr(0, 2);
    }
    if (kind == "d") {
        return given == "i" || (lenient && given == "n");
    }
    if (kind == "L" || kind == "M") {
        return given == "i";
    }
    if (kind == "n") {
        return is_number_kind(given) || (lenient && given == "T");
    }
    if (given == kind) {
        return true;
    }
    if (!lenient) {
        return false;
    }
    return (kind == "f" && (given == "i" || given == "T" || given == "n")) ||
           (kind == "i" && (given == "T" || given == "n" || given == "b")) ||
           (kind == "b" && given == "T") || (kind == "D" && given == "s") ||
           (kind == "c" && is_number_kind(given)) || given == "A" || given == kind + "?";
}

std::optional<Interpreter::Bound> Interpreter::bind(const Schema& schema, const Arguments& given,
                                                    bool lenient) const {
    Bound bound;
    bound.schema = &schema;
    const auto unnamed = given.values.size() - given.names.size();
    std::size_t used = 0;
    for (std::size_t i = 0; i < schema.arguments.size(); ++i) {
        const auto& wanted = schema.arguments[i];
        const Value* value = nullptr;
        if (i < unnamed && !wanted.by_name) {
            value = &given.values[i];
        } else {
            const auto name = std::find(given.names.begin(), given.names.end(), wanted.name);
            if (name != given.names.end()) {
                value =
                    &given.values[unnamed + static_cast<std::size_t>(name - given.names.begin())];
            }
        }
        if (value == nullptr ? !wanted.optional : !matches(wanted.kind, *value, lenient)) {
            return std::nullopt;
        }
        used += value != nullptr ? 1 : 0;
        bound.values.push_back(value);
    }
    return used == given.values.size() ? std::optional(std::move(bound)) : std::nullopt;
}

// Changes a list or dictionary that the file settles. Nothing: `op` does no such thing.
std::optional<Value> Interpreter::change_list(const std::string& op, const Arguments& given) {
    constexpr std::string_view known[] = {"aten::append",  "aten::extend", "aten::insert",
                                          "aten::pop",     "aten::clear",  "aten::_set_item",
                                          "aten::reverse", "aten::Delete"};
    if (given.values.empty() ||
        std::find(std::begin(known), std::end(known), op) == std::end(known)) {
        return std::nullopt;
    }
    const auto& first = given.values[0];
    if (auto* dict = first.dict(); dict != nullptr && !dict->runtime) {
        const auto key = given.values.size() > 1 ? settled(given.values[1]) : Value();
        if (dict->depth != builder_.depth() || !key.is_plain() || op != "aten::_set_item" ||
            given.values.size() != 3) {
            throw NeedsRuntime{first, dict->depth};
        }
        for (auto& [held, value] : dict->items) {
            if (same_plain(held, key)) {
                value = given.values[2];
                return Value();
            }
        }
        dict->items.emplace_back(key, given.values[2]);
        return Value();
    }
    auto* list = first.list();
    if (list == nullptr || list->runtime) {
        return std::nullopt;
    }
    const bool simple = (op == "aten::append" && given.values.size() == 2) ||
                        (op == "aten::clear" && given.values.size() == 1);
    if (list->depth == builder_.depth() && simple) {
        if (op == "aten::clear") {
            list->items.clear();
        } else {
            list->items.push_back(given.values[1]);
            if (list->element.empty()) {
                list->element = kind_of(settled(given.values[1]));
            }
        }
        return first;
    }
    if (list->depth == builder_.depth()) {
        list->runtime = materialize(first);
        return std::nullopt;
    }
    throw NeedsRuntime{first, list->depth};
}

std::optional<Value> Interpreter::worked_out(const std::string& op, const Arguments& given) {
    const auto count = given.values.size();
    if (!given.names.empty()) {
        return std::nullopt;
    }
    const auto& values = given.values;
    if ((op == "aten::__is__" || op == "aten::__isnot__") && count == 2) {
        const bool is = op == "aten::__is__";
        const auto& one = values[1].is_none() ? values[0] : values[1];
        if (values[0].is_none() || values[1].is_none()) {
            if (one.is_none()) {
                return Value(is);
            }
            if (!kind_of(one).ends_with("?")) {
                return Value(!is);
            }
        }
        return std::nullopt;
    }
    if (op == "aten::size" && count == 1 && values[0].as<Runtime>() != nullptr &&
        kind_of(values[0]) == "T") {
        return SizesOf{*values[0].as<Runtime>()};
    }
    if (op == "aten::len" && count == 1 && values[0].as<SizesOf>() != nullptr) {
        return call_op("aten", "dim", {{values[0].as<SizesOf>()->tensor}, {}}, 0);
    }
    if (op == "prim::dtype" && count == 1 && values[0].as<Runtime>() != nullptr) {
        return TypeOf{*values[0].as<Runtime>()};
    }
    if (op == "prim::device" && count == 1) {
        return Device{"any"};
    }
    if (op == "aten::device" && count >= 1 && values[0].as<std::string>() != nullptr) {
        return Device{*values[0].as<std::string>()};
    }
    if (op == "prim::unchecked_unwrap_optional" || op == "aten::_unwrap_optional") {
        if (count == 1 && !values[0].is_none() && !kind_of(values[0]).ends_with("?")) {
            return values[0];
        }
    }
    auto made = fold(op, values);
    if (made && made->list() != nullptr) {
        made->list()->depth = builder_.depth();  // it is a new one
    }
    return made;
}

Value Interpreter::call_op(const std::string& space, const std::string& name, Arguments given,
                           std::size_t parts) {
    spend();
    const auto op = fmt::format("{}::{}", space, name);
    if (auto changed = change_list(op, given)) {
        return *changed;
    }
    for (auto& value : given.values) {
        value = settled(value);
    }
    if (auto known = worked_out(op, given)) {
        return *known;
    }
    const auto& overloads = schemas(op);
    for (const bool lenient : {false, true}) {
        for (const auto& schema : overloads) {
            if (const auto bound = bind(schema, given, lenient)) {
                return emit(space, name, *bound, parts);
            }
        }
    }
    return emit_unknown(space, name, given, parts);
}

Value Interpreter::results(Draft& draft, const std::vector<std::string>& kinds, std::size_t parts) {
    if (kinds.size() == 1 && kinds[0] == "T[]" && parts > 0) {
        auto list = std::make_shared<ListValue>();
        list->element = "T";
        list->depth = builder_.depth();
        std::vector<std::string> labels;
        for (std::size_t i = 0; i < parts; ++i) {
            list->items.emplace_back(builder_.add_output(draft, "T"));
            labels.push_back(fmt::format("0[{}]", i));
        }
        draft.spec.attributes.push_back(
            {.name = "outputs", .value = std::move(labels), .reference = {}, .source = {}});
        return list;
    }
    std::vector<Value> made;
    for (const auto& kind : kinds) {
        made.emplace_back(kind == "N" ? Value() : Value(builder_.add_output(draft, kind)));
    }
    if (made.empty()) {
        return {};
    }
    if (made.size() == 1) {
        return made[0];
    }
    auto tuple = std::make_shared<TupleValue>();
    tuple->items = std::move(made);
    return tuple;
}

Value Interpreter::emit(const std::string& space, const std::string& name, const Bound& bound,
                        std::size_t parts) {
    Draft draft;
    draft.spec.domain = space == "aten" ? "" : space;
    draft.spec.type = name;
    draft.spec.overload = space == "prim" ? "" : bound.schema->overload;
    std::map<std::string, std::string> known;
    std::optional<Runtime> written;
    std::optional<Runtime> viewed;
    for (std::size_t i = 0; i < bound.values.size(); ++i) {
        if (bound.values[i] == nullptr) {
            continue;
        }
        const auto& argument = bound.schema->arguments[i];
        const auto& value = *bound.values[i];
        learn(argument.kind, kind_of(value), known);
        add_value(draft, argument.name, argument.kind, value);
        if (const auto* runtime = value.as<Runtime>()) {
            written = argument.written && !written ? std::optional(*runtime) : written;
            viewed = argument.viewed && !viewed ? std::optional(*runtime) : viewed;
        }
    }
    std::vector<std::string> kinds;
    for (const auto& kind : bound.schema->results) {
        kinds.push_back(replaced(kind, known));
    }
    const bool silent = kinds.empty() || kinds == std::vector<std::string>{"N"};
    if (written && silent) {
        kinds = {builder_.entry(*written).kind};
    }
    if (written && builder_.entry(*written).base) {
        auto base = *builder_.entry(*written).base;
        Builder::add_argument(draft, "writes", builder_.entry(base).name);
    }
    auto made = results(draft, kinds, parts);
    builder_.append(std::move(draft));
    const auto* result = made.as<Runtime>();
    if (const auto* tuple = made.tuple(); tuple != nullptr && written) {
        result = tuple->items[0].as<Runtime>();
    }
    if (written && result != nullptr) {
        world_.versions[written->place] = *result;
    }
    if (viewed && result != nullptr) {
        const auto& base = builder_.entry(*viewed).base;
        builder_.set_base(*result, base ? *base : *viewed);
    }
    if (space == "prim" && name == "NumToTensor" && result != nullptr) {
        numbers_.emplace(result->place, *bound.values[0]);
    }
    return written && silent ? Value() : made;
}

// An op of a library, or one that this version does not know: its arguments are numbered.
Value Interpreter::emit_unknown(const std::string& space, const std::string& name,
                                const Arguments& given, std::size_t parts) {
    Draft draft;
    draft.spec.domain = space == "aten" ? "" : space;
    draft.spec.type = name;
    const auto unnamed = given.values.size() - given.names.size();
    for (std::size_t i = 0; i < given.values.size(); ++i) {
        add_value(draft, i < unnamed ? std::to_string(i) : given.names[i - unnamed], "A",
                  given.values[i]);
    }
    auto made = results(draft, std::vector<std::string>(std::max<std::size_t>(parts, 1), "T"), 0);
    builder_.append(std::move(draft));
    return made;
}

void Interpreter::add_value(Draft& draft, const std::string& name, const std::string& wanted,
                            const Value& value) {
    const auto kind = wanted.ends_with("?") ? wanted.substr(0, wanted.size() - 1) : wanted;
    if (value.is_none()) {
        if (kind == "T") {
            draft.spec.inputs.push_back(TensorId::none);
            draft.slots.push_back(name);
        }
        return;
    }
    if (const auto* held = value.as<TypeOf>(); held != nullptr && (kind == "d" || kind == "i")) {
        builder_.add_argument(draft, name, newest(held->tensor));
        Builder::add_argument(draft, name, std::string("like"));
        return;
    }
    if (const auto* list = value.list()) {
        add_list(draft, name, element_kind(kind).value_or("A"), *list);
        return;
    }
    if (const auto* tuple = value.tuple(); tuple != nullptr && element_kind(kind)) {
        ListValue list;
        list.items = tuple->items;
        list.element = *element_kind(kind);
        add_list(draft, name, list.element, list);
        return;
    }
    const auto real = [&](double number) {
        if (std::isfinite(number) && std::abs(number) > std::numeric_limits<float>::max()) {
            Builder::add_argument(draft, name,
                                  Constant::of(DType::f64, {}, std::vector<double>{number}));
        } else {
            Builder::add_argument(draft, name, static_cast<float>(number));
        }
    };
    if (const auto* held = value.as<std::int64_t>()) {
        if (kind == "d" || (kind == "i" && name == "dtype")) {
            Builder::add_argument(draft, name, scalar_type_name(*held));
        } else if (kind == "L") {
            Builder::add_argument(draft, name, layout_name(*held));
        } else if (kind == "M") {
            Builder::add_argument(draft, name, memory_format_name(*held));
        } else if (kind == "f") {
            real(static_cast<double>(*held));
        } else if (element_kind(kind)) {
            Builder::add_argument(draft, name, std::vector<std::int64_t>{*held});
        } else {
            Builder::add_argument(draft, name, *held);
        }
    } else if (const auto* truth = value.as<bool>()) {
        Builder::add_argument(draft, name, std::int64_t{*truth ? 1 : 0});
    } else if (const auto* number = value.as<double>()) {
        real(*number);
    } else if (const auto* text = value.as<std::string>()) {
        Builder::add_argument(draft, name, *text);
    } else if (const auto* device = value.as<Device>()) {
        Builder::add_argument(draft, name, device->name);
    } else {
        builder_.add_argument(draft, name, materialize(value));
    }
}

void Interpreter::add_list(Draft& draft, const std::string& name, const std::string& kind,
                           const ListValue& list) {
    const auto& element = kind == "A" || kind == "t" ? list.element : kind;
    std::vector<Value> items;
    for (const auto& item : list.items) {
        items.push_back(settled(item));
    }
    if (element == "T" || element == "T?") {
        for (std::size_t i = 0; i < items.size(); ++i) {
            const auto slot = fmt::format("{}[{}]", name, i);
            if (items[i].is_none()) {
                draft.spec.inputs.push_back(TensorId::none);
                draft.slots.push_back(slot);
            } else {
                builder_.add_argument(draft, slot, materialize(items[i]));
            }
        }
        if (items.empty()) {
            Builder::add_argument(draft, name, std::vector<std::string>());
        }
        return;
    }
    std::vector<std::int64_t> wholes;
    std::vector<float> reals;
    std::vector<std::string> texts;
    for (const auto& item : items) {
        if (const auto* held = item.as<std::int64_t>()) {
            wholes.push_back(*held);
            reals.push_back(static_cast<float>(*held));
        } else if (const auto* truth = item.as<bool>()) {
            wholes.push_back(*truth ? 1 : 0);
        } else if (const auto* number = item.as<double>()) {
            reals.push_back(static_cast<float>(*number));
        } else if (const auto* text = item.as<std::string>()) {
            texts.push_back(*text);
        }
    }
    const auto all = [&](const auto& found) { return found.size() == items.size(); };
    if (all(wholes) && element != "f") {
        Builder::add_argument(draft, name, std::move(wholes));
    } else if (all(reals)) {
        Builder::add_argument(draft, name, std::move(reals));
    } else if (all(texts)) {
        Builder::add_argument(draft, name, std::move(texts));
    } else if (element == "i") {
        // A "*" stands for each number that is an input.
        texts.clear();
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (const auto* held = items[i].as<std::int64_t>()) {
                texts.push_back(std::to_string(*held));
            } else {
                builder_.add_argument(draft, fmt::format("{}[{}]", name, i), materialize(items[i]));
                texts.emplace_back("*");
            }
        }
        Builder::add_argument(draft, name, std::move(texts));
    } else {
        auto copy = std::make_shared<ListValue>(list);
        builder_.add_argument(draft, name, materialize(copy));
    }
}

}  // namespace trocar::torchscript
