#include "formats/torchscript/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "util/text.h"

namespace trocar::torchscript {

namespace {

using Kind = Expression::Kind;

constexpr std::size_t most_steps = 1'500'000;
constexpr std::size_t most_ops = 100'000;
constexpr int deepest_calls = 100;

bool is_word(const std::string& text) {
    constexpr std::string_view words[] = {
        "annotate", "unchecked_cast", "uninitialized", "getattr", "bool",
        "int",      "float",          "complex",       "str",     "print"};
    return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

}  // namespace

Interpreter::Interpreter(const Contents& contents) : contents_(contents) {}

void Interpreter::fail(const std::string& what, Fault fault) const {
    throw Error(fault, fmt::format("{}: {}{}{}", contents_.where, place_,
                                   place_.empty() ? "" : ": ", what));
}

void Interpreter::refuse(const std::string& what) const {
    throw Error(
        Fault::unsupported,
        fmt::format("{}: {}{}{}", contents_.where, place_, place_.empty() ? "" : ": ", what),
        "torch.jit.trace or torch.jit.freeze may write a model without it");
}

void Interpreter::spend(std::size_t steps) {
    steps_ += steps;
    if (steps_ > most_steps || builder_.ops() > most_ops) {
        fail("its code takes too many steps to follow", Fault::unsupported);
    }
}

std::optional<Value> Interpreter::execute(const std::vector<Statement>& body, Frame& frame) {
    const Level level(depth_);
    if (depth_ > deepest) {
        refuse("its code is nested too deeply");
    }
    for (const auto& line : body) {
        spend();
        place_ = fmt::format("{}:{}", frame.function->file, line.line);
        builder_.set_place({frame.module, place_, ""});
        switch (line.kind) {
            case Statement::Kind::pass:
                break;
            case Statement::Kind::express:
                evaluate(*line.value, frame);
                break;
            case Statement::Kind::assign:
                assign(line, frame);
                break;
            case Statement::Kind::give:
                if (&line != &body.back()) {
                    refuse("code follows a return");
                }
                return line.value ? evaluate(*line.value, frame) : Value();
            case Statement::Kind::choose:
                choose(line, frame);
                break;
            case Statement::Kind::repeat:
            case Statement::Kind::count:
                repeat(line, frame);
                break;
            case Statement::Kind::within: {
                const auto what = evaluate(*line.value, frame);
                if (!line.targets.empty()) {
                    assign_to(*line.targets[0], what, frame);
                }
                if (execute(line.body, frame)) {
                    refuse("a return stands inside of a with");
                }
                break;
            }
        }
    }
    return std::nullopt;
}

void Interpreter::assign(const Statement& line, Frame& frame) {
    if (!line.value) {
        return;  // a declaration
    }
    if (!line.unpacks) {
        const auto& target = *line.targets[0];
        std::size_t parts = 0;
        if (target.kind == Kind::name) {
            builder_.set_place({frame.module, place_, target.text});
            const auto& apart = frame.function->taken_apart;
            const auto found = apart.find(target.text);
            parts = found == apart.end() ? 0 : found->second;
        }
        auto value = line.value->kind == Kind::call ? call(*line.value, frame, parts)
                                                    : evaluate(*line.value, frame);
        if (line.annotation && value.list() != nullptr && value.list()->element.empty()) {
            auto kind = kind_of_type(line.annotation.get());
            if (kind.ends_with("[]")) {
                value.list()->element = kind.substr(0, kind.size() - 2);
            }
        }
        assign_to(target, std::move(value), frame);
        return;
    }
    if (line.value->kind == Kind::tuple && line.value->children.size() == line.targets.size()) {
        std::vector<Value> values;
        for (std::size_t i = 0; i < line.targets.size(); ++i) {
            if (line.targets[i]->kind == Kind::name) {
                builder_.set_place({frame.module, place_, line.targets[i]->text});
            }
            values.push_back(evaluate(*line.value->children[i], frame));
        }
        for (std::size_t i = 0; i < line.targets.size(); ++i) {
            assign_to(*line.targets[i], std::move(values[i]), frame);
        }
        return;
    }
    const auto value = line.value->kind == Kind::call
                           ? call(*line.value, frame, line.targets.size())
                           : evaluate(*line.value, frame);
    const auto parts = take_apart(value, line.targets.size());
    for (std::size_t i = 0; i < line.targets.size(); ++i) {
        assign_to(*line.targets[i], parts[i], frame);
    }
}

void Interpreter::assign_to(const Expression& target, Value value, Frame& frame) {
    if (target.kind == Kind::name) {
        frame.names[target.text] = std::move(value);
        if (assigned_ != nullptr) {
            assigned_->insert(target.text);
        }
        return;
    }
    if (target.kind == Kind::attribute) {
        if (const auto object = evaluate(*target.children[0], frame).object()) {
            world_.attributes[{object->number, target.text}] = std::move(value);
            return;
        }
    }
    fail("only names and attributes of objects can be assigned to");
}

std::vector<Value> Interpreter::take_apart(const Value& given, std::size_t count) {
    const auto value = settled(given);
    const auto check = [&](std::size_t size) {
        if (size != count) {
            fail(fmt::format("{} values are taken apart into {}", size, count));
        }
    };
    if (const auto* tuple = value.tuple()) {
        check(tuple->items.size());
        return tuple->items;
    }
    if (const auto* list = value.list()) {
        check(list->items.size());
        return list->items;
    }
    std::vector<Value> parts;
    if (const auto* sizes = value.as<SizesOf>()) {
        builder_.set_rank(sizes->tensor, count);
        for (std::size_t i = 0; i < count; ++i) {
            parts.push_back(element(value, static_cast<std::int64_t>(i)));
        }
        return parts;
    }
    const auto kind = kind_of(value);
    if (value.as<Runtime>() == nullptr || (kind != "A" && !kind.ends_with("[]"))) {
        fail("only tuples and lists can be taken apart");
    }
    Draft draft;
    draft.spec.domain = "prim";
    draft.spec.type = kind == "A" ? "TupleUnpack" : "ListUnpack";
    builder_.add_argument(draft, "self", *value.as<Runtime>());
    for (std::size_t i = 0; i < count; ++i) {
        parts.emplace_back(builder_.add_output(
            draft, kind == "A" ? std::string("T") : kind.substr(0, kind.size() - 2)));
    }
    builder_.append(std::move(draft));
    return parts;
}

Value Interpreter::evaluate(const Expression& e, Frame& frame) {
    spend();
    const Level level(depth_);
    if (depth_ > deepest) {
        refuse("its code is nested too deeply");
    }
    return of_kind(e, frame);
}

Value Interpreter::of_kind(const Expression& e, Frame& frame) {
    switch (e.kind) {
        case Kind::none:
            return {};
        case Kind::truth:
            return e.integer != 0;
        case Kind::integer:
            return e.integer;
        case Kind::real:
            return e.real;
        case Kind::imaginary:
            return std::complex<double>(0, e.real);
        case Kind::text:
            return e.text;
        case Kind::name: {
            const auto found = frame.names.find(e.text);
            if (found == frame.names.end()) {
                fail(fmt::format("'{}' is not defined", e.text));
            }
            return found->second;
        }
        case Kind::list: {
            auto list = std::make_shared<ListValue>();
            list->depth = builder_.depth();
            for (const auto& child : e.children) {
                list->items.push_back(evaluate(*child, frame));
            }
            list->element = list->items.empty() ? "" : kind_of(settled(list->items[0]));
            return list;
        }
        case Kind::tuple: {
            auto tuple = std::make_shared<TupleValue>();
            for (const auto& child : e.children) {
                tuple->items.push_back(evaluate(*child, frame));
            }
            return tuple;
        }
        case Kind::dict: {
            auto dict = std::make_shared<DictValue>();
            dict->depth = builder_.depth();
            for (std::size_t i = 0; i + 1 < e.children.size(); i += 2) {
                auto key = evaluate(*e.children[i], frame);
                dict->items.emplace_back(std::move(key), evaluate(*e.children[i + 1], frame));
            }
            dict->kind = dict->items.empty() ? "<s T>"
                                             : fmt::format("<{} {}>", kind_of(dict->items[0].first),
                                                           kind_of(dict->items[0].second));
            return dict;
        }
        case Kind::attribute:
            return attribute(e, frame);
        case Kind::index:
            return indexed(e, frame);
        case Kind::slice:
            return sliced(e, frame);
        case Kind::call:
            return call(e, frame, 0);
        case Kind::negative:
            return call_op("aten", "neg", {{evaluate(*e.children[0], frame)}, {}}, 0);
    }
    return {};
}

// Something that the whole code shares: a constant, a function, a class.
Value Interpreter::named(const std::string& path) {
    constexpr std::string_view constants = "CONSTANTS.c";
    if (path.starts_with(constants)) {
        const auto digits = path.substr(constants.size());
        if (!digits.empty() && digits.size() < 10 &&
            digits.find_first_not_of("0123456789") == std::string::npos) {
            return constant(static_cast<std::size_t>(std::stoul(digits)));
        }
    }
    if (const auto found = contents_.code.functions.find(path);
        found != contents_.code.functions.end()) {
        return FunctionRef{&found->second};
    }
    if (const auto found = contents_.code.classes.find(path);
        found != contents_.code.classes.end()) {
        return ClassRef{&found->second};
    }
    const auto dot = path.rfind('.');
    if (dot != std::string::npos) {  // a value of an enumeration
        const auto found = contents_.code.classes.find(path.substr(0, dot));
        if (found != contents_.code.classes.end()) {
            const auto* value = found->second.attribute(path.substr(dot + 1));
            if (value != nullptr && value->value) {
                Frame none;
                return evaluate(*value->value, none);
            }
        }
    }
    fail(fmt::format("'{}' is not in the archive", path));
}

Value Interpreter::attribute(const Expression& e, Frame& frame) {
    const auto path = dotted(e);
    if (!path.empty() && !frame.names.contains(path.substr(0, path.find('.')))) {
        return named(path);
    }
    const auto of = settled(evaluate(*e.children[0], frame));
    if (const auto object = of.object()) {
        return attribute_of(object, e.text);
    }
    if (const auto* tuple = of.tuple(); tuple != nullptr && tuple->of != nullptr) {
        for (std::size_t i = 0; i < tuple->of->attributes.size() && i < tuple->items.size(); ++i) {
            if (tuple->of->attributes[i].name == e.text) {
                return tuple->items[i];
            }
        }
    }
    refuse(fmt::format("'{}' is read of a value that only a run knows", e.text));
}

Value Interpreter::element(const Value& given, const Value& where) {
    const auto of = settled(given);
    const auto at = settled(where);
    const auto* place = at.as<std::int64_t>();
    const auto item = [&](const std::vector<Value>& items) {
        const auto size = static_cast<std::int64_t>(items.size());
        const auto i = *place < 0 ? *place + size : *place;
        if (i < 0 || i >= size) {
            fail(fmt::format("{} values have no item {}", size, *place));
        }
        return items[static_cast<std::size_t>(i)];
    };
    if (const auto* tuple = of.tuple(); tuple != nullptr && place != nullptr) {
        return item(tuple->items);
    }
    if (const auto* list = of.list(); list != nullptr && place != nullptr) {
        return item(list->items);
    }
    if (const auto* dict = of.dict(); dict != nullptr && at.is_plain()) {
        for (const auto& [key, value] : dict->items) {
            if (same_plain(key, at)) {
                return value;
            }
        }
        fail("a dictionary has no such key");
    }
    if (const auto* sizes = of.as<SizesOf>(); sizes != nullptr) {
        return call_op("aten", "size", {{sizes->tensor, at}, {}}, 0);
    }
    if (const auto object = of.object()) {
        if (place != nullptr) {
            return attribute_of(object, std::to_string(*place));
        }
        if (const auto* name = at.as<std::string>()) {
            return attribute_of(object, *name);
        }
        refuse("which module is meant is known only while the model runs");
    }
    return call_op("aten", "__getitem__", {{of, at}, {}}, 0);
}

Value Interpreter::indexed(const Expression& e, Frame& frame) {
    const auto of = evaluate(*e.children[0], frame);
    return element(of, evaluate(*e.children[1], frame));
}

Value Interpreter::sliced(const Expression& e, Frame& frame) {
    const auto of = settled(evaluate(*e.children[0], frame));
    std::vector<Value> bounds;
    for (std::size_t i = 1; i < 4; ++i) {
        bounds.push_back(e.children[i] ? evaluate(*e.children[i], frame) : Value());
    }
    if (bounds[2].is_none()) {
        bounds[2] = std::int64_t{1};
    }
    if (const auto* tuple = of.tuple()) {
        auto list = std::make_shared<ListValue>();
        list->items = tuple->items;
        const auto cut = fold("aten::slice", {Value(list), bounds[0], bounds[1], bounds[2]});
        if (!cut || cut->list() == nullptr) {
            refuse("where a tuple is cut is known only while the model runs");
        }
        auto made = std::make_shared<TupleValue>();
        made->items = cut->list()->items;
        return made;
    }
    return call_op("aten", "slice", {{of, bounds[0], bounds[1], bounds[2]}, {}}, 0);
}

Interpreter::Arguments Interpreter::arguments(const Expression& e, Frame& frame) {
    Arguments all;
    const auto place = builder_.place();
    for (std::size_t i = 1; i < e.children.size(); ++i) {
        builder_.set_place({place.module, place.source, ""});
        all.values.push_back(evaluate(*e.children[i], frame));
    }
    builder_.set_place(place);
    all.names = e.keywords;
    return all;
}

Value Interpreter::call(const Expression& e, Frame& frame, std::size_t parts) {
    spend();
    const Level level(depth_);
    if (depth_ > deepest) {
        refuse("its code is nested too deeply");
    }
    const auto& callee = *e.children[0];
    if (callee.kind == Kind::name) {
        if (const auto found = frame.names.find(callee.text); found != frame.names.end()) {
            return call_value(found->second, e, frame);
        }
        if (is_word(callee.text)) {
            return call_word(callee.text, e, frame);
        }
        refuse(fmt::format("it calls '{}'", callee.text));
    }
    const auto path = dotted(callee);
    const auto local = !path.empty() && frame.names.contains(path.substr(0, path.find('.')));
    if (!path.empty() && !local) {
        const auto names = split(path, '.');
        if (names.size() == 2 && names[0] == "torch") {
            return call_op("aten", names[1], arguments(e, frame), parts);
        }
        if (names.size() == 3 && names[0] == "ops") {
            return call_op(names[1], names[2], arguments(e, frame), parts);
        }
        if (names.back() == "__new__") {
            auto made = std::make_shared<ObjectValue>();
            const auto of = named(path.substr(0, path.size() - 8));
            made->of = of.as<ClassRef>() == nullptr ? nullptr : of.as<ClassRef>()->of;
            made->number = by_number_.size();
            made->path = frame.module;
            by_number_.push_back(made);
            return made;
        }
        return call_value(named(path), e, frame);
    }
    if (callee.kind == Kind::attribute) {
        const auto of = settled(evaluate(*callee.children[0], frame));
        const auto object = of.object();
        if (!object || object->of == nullptr) {
            refuse(fmt::format("'{}' is called of a value that only a run knows", callee.text));
        }
        const auto method = object->of->methods.find(callee.text);
        if (method == object->of->methods.end()) {
            fail(fmt::format("{} has no method '{}'", object->of->name, callee.text));
        }
        return call_function(method->second, &of, arguments(e, frame), object->path);
    }
    refuse("what is called is no name");
}

Value Interpreter::call_value(const Value& callee, const Expression& e, Frame& frame) {
    if (const auto* function = callee.as<FunctionRef>()) {
        return call_function(*function->function, nullptr, arguments(e, frame), frame.module);
    }
    if (const auto* of = callee.as<ClassRef>(); of != nullptr && of->of->base == "NamedTuple") {
        auto made = std::make_shared<TupleValue>();
        made->of = of->of;
        made->items = arguments(e, frame).values;
        return made;
    }
    refuse("what is called is neither a function nor a named tuple");
}

Value Interpreter::call_word(const std::string& word, const Expression& e, Frame& frame) {
    const auto count = e.children.size() - 1;
    if (word == "print") {
        arguments(e, frame);
        return {};
    }
    if (word == "uninitialized" && count == 1) {
        return Uninitialized{kind_of_type(e.children[1].get())};
    }
    if ((word == "annotate" || word == "unchecked_cast") && count == 2) {
        auto value = evaluate(*e.children[2], frame);
        const auto kind = kind_of_type(e.children[1].get());
        if (auto* list = value.list(); list != nullptr && kind.ends_with("[]")) {
            list->element = kind.substr(0, kind.size() - 2);
            return value;
        }
        if (auto* dict = value.dict(); dict != nullptr && kind.starts_with('<')) {
            dict->kind = kind;
            return value;
        }
        return convert(settled(value), kind);
    }
    if (word == "getattr" && count == 2 && e.children[2]->kind == Kind::text) {
        if (const auto object = evaluate(*e.children[1], frame).object()) {
            return attribute_of(object, e.children[2]->text);
        }
    }
    if (count == 1) {
        const auto& only = *e.children[1];
        if (word == "float" && only.kind == Kind::text) {  // float("inf")
            const bool negative = only.text.starts_with('-');
            const double value = only.text.find("inf") == std::string::npos
                                     ? std::numeric_limits<double>::quiet_NaN()
                                     : std::numeric_limits<double>::infinity();
            return negative ? -value : value;
        }
        const auto value = settled(arguments(e, frame).values[0]);
        return word == "bool"    ? convert(value, "b")
               : word == "int"   ? convert(value, "i")
               : word == "float" ? convert(value, "f")
               : word == "str"   ? call_op("aten", "str", {{value}, {}}, 0)
                                 : call_op("aten", "Complex", {{value}, {}}, 0);
    }
    refuse(fmt::format("it calls '{}' with {} arguments", word, count));
}

Value Interpreter::call_function(const Function& function, const Value* self, Arguments given,
                                 const std::string& module) {
    const Level level(calls_);
    if (calls_ > deepest_calls) {
        refuse("its functions call one another too deeply");
    }
    if (self != nullptr) {
        given.values.insert(given.values.begin(), *self);
    }
    Frame frame;
    frame.function = &function;
    frame.module = module;
    const auto& wanted = function.parameters;
    const auto unnamed = given.values.size() - given.names.size();
    if (given.values.size() > wanted.size()) {
        fail(fmt::format("'{}' takes {} arguments, not {}", function.name, wanted.size(),
                         given.values.size()));
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const auto name = std::find(given.names.begin(), given.names.end(), wanted[i].name);
        if (i < unnamed) {
            frame.names[wanted[i].name] = given.values[i];
        } else if (name != given.names.end()) {
            frame.names[wanted[i].name] =
                given.values[unnamed + static_cast<std::size_t>(name - given.names.begin())];
        } else if (wanted[i].standard) {
            Frame none;
            frame.names[wanted[i].name] = evaluate(*wanted[i].standard, none);
        } else {
            fail(fmt::format("'{}' is called without '{}'", function.name, wanted[i].name));
        }
    }
    const auto before = place_;
    const auto place = builder_.place();
    auto* const assigned = std::exchange(assigned_, nullptr);
    auto result = execute(function.body, frame);
    assigned_ = assigned;
    place_ = before;
    builder_.set_place(place);
    return result.value_or(Value());
}

}  // namespace trocar::torchscript
