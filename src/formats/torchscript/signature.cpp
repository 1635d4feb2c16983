#include <fmt/format.h>

#include <algorithm>

#include "formats/torchscript/interpreter.h"

// What goes into a method and what comes out of it.
namespace trocar::torchscript {

namespace {

constexpr int deepest_structure = 50;

bool is_number(const std::string& kind) {
    return kind == "i" || kind == "f" || kind == "b" || kind == "n";
}

}  // namespace

// An input that is `standard` where nothing is given.
Value Interpreter::input_with(const std::string& name, const Value& standard) {
    const auto kind = kind_of(standard);
    const auto made = builder_.add_input(builder_.root(), name, kind);
    auto& graph = builder_.root().graph;
    auto& tensor = graph.tensor_from_file(*graph.find_tensor(builder_.entry(made).name));
    if (const auto* runtime = standard.as<Runtime>()) {
        const auto id = graph.find_tensor(builder_.entry(*runtime).name);
        const auto& held = graph.tensor(*id).constant;
        if (held) {
            tensor.type = Type::tensor(held->dtype());
            tensor.constant = *held;
        }
    } else if (const auto* number = standard.as<std::int64_t>()) {
        tensor.constant = Constant::of(DType::i64, {}, std::vector<std::int64_t>{*number});
    } else if (const auto* real = standard.as<double>()) {
        tensor.constant = Constant::of(DType::f64, {}, std::vector<double>{*real});
    } else if (const auto* truth = standard.as<bool>()) {
        tensor.constant =
            Constant::of(DType::boolean, {},
                         std::vector<std::uint8_t>{*truth ? std::uint8_t{1} : std::uint8_t{0}});
    }
    return made;
}

Value Interpreter::input(const std::string& name, const Expression* type, int depth) {
    if (depth > deepest_structure) {
        refuse(fmt::format("the type of '{}' is nested too deeply", name));
    }
    const auto kind = kind_of_type(type);
    if (type != nullptr && type->kind == Expression::Kind::index) {
        const auto of = dotted(*type->children[0]);
        const auto& inner = *type->children[1];
        if (of == "Optional") {
            return input(name, &inner, depth + 1);
        }
        if (of == "Tuple") {
            auto tuple = std::make_shared<TupleValue>();
            if (inner.kind == Expression::Kind::tuple) {
                for (std::size_t i = 0; i < inner.children.size(); ++i) {
                    tuple->items.push_back(
                        input(fmt::format("{}.{}", name, i), inner.children[i].get(), depth + 1));
                }
            } else {
                tuple->items.push_back(input(name + ".0", &inner, depth + 1));
            }
            return tuple;
        }
    }
    if (kind == "A" && type != nullptr) {
        const auto found = contents_.code.classes.find(dotted(*type));
        if (found != contents_.code.classes.end() && found->second.base == "NamedTuple") {
            auto tuple = std::make_shared<TupleValue>();
            tuple->of = &found->second;
            for (const auto& field : found->second.attributes) {
                tuple->items.push_back(
                    input(joined_name(name, field.name), field.annotation.get(), depth + 1));
            }
            return tuple;
        }
    }
    return builder_.add_input(builder_.root(), name, kind);
}

void Interpreter::add_inputs(const Function& function, Frame& frame) {
    auto& metadata = builder_.root().graph.metadata;
    for (std::size_t i = 1; i < function.parameters.size(); ++i) {
        const auto& one = function.parameters[i];
        if (!one.standard) {
            frame.names[one.name] = input(one.name, one.annotation.get(), 0);
            continue;
        }
        Frame none;
        const auto standard = evaluate(*one.standard, none);
        const auto kind = kind_of(standard);
        if (kind == "T" || is_number(kind)) {
            frame.names[one.name] = input_with(one.name, standard);
        } else {
            frame.names[one.name] = standard;
            metadata.push_back({fmt::format("argument '{}'", one.name),
                                standard.is_none() ? "None" : "as the method has it"});
        }
    }
}

void Interpreter::flatten(const Value& given, const std::string& name,
                          std::vector<TensorId>& outputs, int depth) {
    const auto value = settled(given);
    auto& graph = builder_.root().graph;
    const auto inner = [&](const Value& item, const std::string& label) {
        if (depth > deepest_structure) {
            refuse("what it returns is nested too deeply");
        }
        flatten(item, name.empty() ? label : fmt::format("{}.{}", name, label), outputs, depth + 1);
    };
    if (const auto* tuple = value.tuple()) {
        for (std::size_t i = 0; i < tuple->items.size(); ++i) {
            inner(tuple->items[i], std::to_string(i));
        }
    } else if (const auto* list = value.list()) {
        for (std::size_t i = 0; i < list->items.size(); ++i) {
            inner(list->items[i], std::to_string(i));
        }
    } else if (const auto* dict = value.dict()) {
        for (const auto& [key, item] : dict->items) {
            const auto* text = key.as<std::string>();
            inner(item, text != nullptr ? *text : "item");
        }
    } else if (value.is_none() || value.object()) {
        graph.metadata.push_back(
            {fmt::format("output '{}'", name), value.is_none() ? "None" : "an object"});
    } else {
        auto made = materialize(value);
        auto id = builder_.resolve(made);
        if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) {
            Draft draft;
            draft.spec.type = "alias";
            draft.spec.overload = "default";
            builder_.add_argument(draft, "self", made);
            made = builder_.add_output(draft, builder_.entry(made).kind, name);
            builder_.append(std::move(draft));
            id = builder_.resolve(made);
        }
        outputs.push_back(id);
    }
}

void Interpreter::add_outputs(const Value& result) {
    auto& graph = builder_.root().graph;
    builder_.set_place({"", "", ""});
    std::vector<TensorId> outputs;
    flatten(result, "", outputs, 0);
    const auto update = [&](const Value& value, const std::string& what) {
        const auto from = outputs.size();
        flatten(value, what, outputs, 0);
        for (auto i = from; i < outputs.size(); ++i) {
            graph.tensor_from_file(outputs[i]).metadata.push_back({"updates", what});
        }
    };
    const auto attributes = world_.attributes;
    for (const auto& [key, value] : attributes) {
        const auto& object = by_number_[key.first];
        if (object->pickled == nullptr) {
            continue;
        }
        const auto path = joined_name(object->path, key.second);
        const auto kind = kind_of(settled(value));
        if (kind == "T" || is_number(kind)) {
            update(value, fmt::format("attribute '{}'", path));
        } else {
            graph.metadata.push_back({fmt::format("attribute '{}'", path), "is set"});
        }
    }
    const auto versions = world_.versions;
    for (const auto& [place, version] : versions) {
        const auto& entry = builder_.entry({place});
        const auto id = entry.depth == 0 ? graph.find_tensor(entry.name) : std::nullopt;
        if (!id) {
            continue;
        }
        const auto& tensor = graph.tensor(*id);
        const auto name = entry.name;
        if (tensor.is_input) {
            update(Runtime{place}, fmt::format("input '{}'", name));
        } else if (tensor.constant) {
            update(Runtime{place}, fmt::format("buffer '{}'", name));
        }
    }
    graph.set_outputs(std::move(outputs));
}

Graph Interpreter::read(const std::string& method) {
    const auto& root = contents_.data.root();
    if (root.kind != Pickled::Kind::object && root.kind != Pickled::Kind::state) {
        fail("its pickle is no module");
    }
    find_changed_attributes(method);
    const auto self = object_of(root, "");
    const auto object = self.object();
    const auto found = object->of->methods.find(method);
    if (found == object->of->methods.end()) {
        fail(fmt::format("{} has no method '{}'", object->of->name, method));
    }
    const auto& function = found->second;
    if (function.parameters.empty()) {
        fail(fmt::format("the method '{}' has no object", method));
    }
    Frame frame;
    frame.function = &function;
    frame.names[function.parameters[0].name] = self;
    add_inputs(function, frame);
    add_parameters(object, 0);
    const auto result = execute(function.body, frame);
    place_.clear();
    add_outputs(result.value_or(Value()));
    auto& graph = builder_.root().graph;
    Builder::tidy(graph);
    graph.mark_read();
    return std::move(graph);
}

}  // namespace trocar::torchscript
