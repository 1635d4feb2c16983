#include <fmt/format.h>

#include <algorithm>

#include "formats/torchscript/interpreter.h"
#include "util/elements.h"

// Objects of the archive: modules with parameters and attributes, and the state that code changes.
namespace trocar::torchscript {

namespace {

constexpr int deepest_objects = 200;

bool is_among(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// Names that code calls, and attributes that it sets.
struct Effects {
    std::set<std::string> called;
    std::set<std::string> own;     // of its own object
    std::set<std::string> others;  // of any object
};

void collect(const Expression& e, Effects& effects) {
    if (e.kind == Expression::Kind::call && e.children[0]->kind != Expression::Kind::name) {
        effects.called.insert(e.children[0]->text);
    }
    if (e.kind == Expression::Kind::attribute) {
        effects.called.insert(e.text);  // a function may be called by another name
    }
    for (const auto& child : e.children) {
        if (child) {
            collect(*child, effects);
        }
    }
}
void collect(const std::vector<Statement>& body, const std::string& self, Effects& effects) {
    for (const auto& line : body) {
        for (const auto& target : line.targets) {
            if (target->kind == Expression::Kind::attribute) {
                (dotted(*target->children[0]) == self ? effects.own : effects.others)
                    .insert(target->text);
            }
        }
        if (line.value) {
            collect(*line.value, effects);
        }
        collect(line.body, self, effects);
        collect(line.otherwise, self, effects);
    }
}

}  // namespace

std::string joined_name(const std::string& path, const std::string& name) {
    return path.empty() ? name : fmt::format("{}.{}", path, name);
}

// By names alone: which object a method is called of is known only when the code is followed.
void Interpreter::find_changed_attributes(const std::string& method) {
    std::multimap<std::string, std::pair<const Function*, const Class*>> all;
    for (const auto& [name, function] : contents_.code.functions) {
        all.emplace(function.name, std::pair(&function, nullptr));
    }
    for (const auto& [name, of] : contents_.code.classes) {
        for (const auto& [label, function] : of.methods) {
            all.emplace(label, std::pair(&function, &of));
        }
    }
    std::set<std::string> seen{method};
    std::vector<std::string> waiting{method};
    while (!waiting.empty()) {
        const auto name = waiting.back();
        waiting.pop_back();
        for (auto [at, end] = all.equal_range(name); at != end; ++at) {
            const auto& [function, of] = at->second;
            Effects effects;
            collect(function->body,
                    of == nullptr || function->parameters.empty() ? std::string()
                                                                  : function->parameters[0].name,
                    effects);
            for (const auto& attribute : effects.own) {
                changed_.emplace(of == nullptr ? std::string() : of->name, attribute);
            }
            changed_anywhere_.insert(effects.others.begin(), effects.others.end());
            for (const auto& called : effects.called) {
                if (seen.insert(called).second) {
                    waiting.push_back(called);
                }
            }
        }
    }
}

bool Interpreter::is_changed(const ObjectValue& object, const std::string& name) const {
    return changed_anywhere_.contains(name) ||
           (object.of != nullptr && changed_.contains({object.of->name, name}));
}

Value Interpreter::object_of(const Pickled& pickled, const std::string& path) {
    if (const auto found = objects_.find(&pickled); found != objects_.end()) {
        return found->second;
    }
    const auto of = contents_.code.classes.find(pickled.text);
    if (of == contents_.code.classes.end()) {
        fail(fmt::format("'{}' is of the class {}, which is not in the archive", path,
                         pickled.text));
    }
    auto made = std::make_shared<ObjectValue>();
    made->of = &of->second;
    made->pickled = &pickled;
    made->path = path;
    made->number = by_number_.size();
    by_number_.push_back(made);
    objects_.emplace(&pickled, made);
    return made;
}

// Parameters and buffers of a module and all modules in it, in their order.
void Interpreter::add_parameters(const std::shared_ptr<ObjectValue>& object, int depth) {
    if (depth > deepest_objects) {
        refuse("its modules lie too deep in one another");
    }
    if (object->pickled->kind != Pickled::Kind::object) {
        return;  // it restores itself by code
    }
    const auto& items = object->pickled->items;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        if (items[i]->kind != Pickled::Kind::text) {
            continue;
        }
        const auto& name = items[i]->text;
        const auto& value = *items[i + 1];
        if (value.kind == Pickled::Kind::tensor && tensors_.contains(&value)) {
            note_name(tensors_.at(&value), joined_name(object->path, name));
        } else if (value.kind == Pickled::Kind::tensor && !is_changed(*object, name)) {
            tensor_of(value, "data", joined_name(object->path, name),
                      is_among(object->of->parameters, name) ? "parameter"
                      : is_among(object->of->buffers, name)  ? "buffer"
                                                             : "attribute");
        }
        if (value.kind == Pickled::Kind::object && !objects_.contains(&value)) {
            add_parameters(object_of(value, joined_name(object->path, name)).object(), depth + 1);
        }
    }
}

void Interpreter::note_name(Runtime tensor, const std::string& name) {
    auto& graph = builder_.root().graph;
    const auto id = *graph.find_tensor(builder_.entry(tensor).name);
    graph.tensor_from_file(id).metadata.push_back({"also named", name});
}

Runtime Interpreter::tensor_of(const Pickled& pickled, const std::string& folder,
                               const std::string& name, const char* kind) {
    if (const auto found = tensors_.find(&pickled); found != tensors_.end()) {
        return found->second;
    }
    auto& graph = builder_.root().graph;
    auto stored = contents_.load(*pickled.tensor, folder, name);
    // Tied parameters are one tensor: the first name is its name, the others are noted.
    if (const auto known = by_identity_.find(stored.identity);
        !stored.identity.empty() && known != by_identity_.end()) {
        tensors_.emplace(&pickled, known->second);
        note_name(known->second, name);
        return known->second;
    }
    const auto made = builder_.add_constant(name, std::move(stored.constant), "T");
    const auto id = *graph.find_tensor(builder_.entry(made).name);
    auto& tensor = graph.tensor_from_file(id);
    tensor.metadata.push_back({"kind", kind});
    if (pickled.tensor->device != "cpu") {
        tensor.metadata.push_back({"device", pickled.tensor->device});
    }
    if (pickled.tensor->requires_grad) {
        tensor.metadata.push_back({"requires_grad", "true"});
    }
    if (pickled.tensor->quantized) {
        auto how = std::make_shared<Quantization>();
        if (pickled.tensor->scales != nullptr) {
            const auto scales =
                contents_.load(*pickled.tensor->scales->tensor, folder, name + ".scales");
            const auto zeros =
                contents_.load(*pickled.tensor->zero_points->tensor, folder, name + ".zero_points");
            for (const double scale : numbers_of(scales.constant)) {
                how->scales.push_back(static_cast<float>(scale));
            }
            for (const double zero : numbers_of(zeros.constant)) {
                how->zero_points.push_back(static_cast<std::int64_t>(zero));
            }
            how->axis = static_cast<int>(pickled.tensor->axis);
        } else {
            how->scales = {static_cast<float>(pickled.tensor->scale)};
            how->zero_points = {pickled.tensor->zero_point};
        }
        tensor.quantization = std::move(how);
    }
    tensors_.emplace(&pickled, made);
    if (!stored.identity.empty()) {
        by_identity_.emplace(stored.identity, made);
    }
    return made;
}

Value Interpreter::of_pickle(const Pickled& pickled, const std::string& path, int depth) {
    spend();
    if (depth > deepest_objects) {
        refuse(fmt::format("the values of '{}' lie too deep in one another", path));
    }
    const auto items = [&] {
        std::vector<Value> all;
        for (std::size_t i = 0; i < pickled.items.size(); ++i) {
            all.push_back(of_pickle(*pickled.items[i], fmt::format("{}.{}", path, i), depth + 1));
        }
        return all;
    };
    switch (pickled.kind) {
        case Pickled::Kind::none:
            return {};
        case Pickled::Kind::truth:
            return pickled.integer != 0;
        case Pickled::Kind::integer:
            return pickled.integer;
        case Pickled::Kind::real:
            return pickled.real;
        case Pickled::Kind::complex:
            return std::complex<double>(pickled.real, pickled.imaginary);
        case Pickled::Kind::text:
            return pickled.text;
        case Pickled::Kind::device:
            return Device{pickled.text};
        case Pickled::Kind::tensor:
            return tensor_of(pickled, "data", path, "attribute");
        case Pickled::Kind::object:
        case Pickled::Kind::state:
            return object_of(pickled, path);
        case Pickled::Kind::list: {
            auto made = std::make_shared<ListValue>();
            made->items = items();
            made->element = made->items.empty() ? "" : kind_of(made->items[0]);
            constexpr std::pair<std::string_view, const char*> kinds[] = {
                {"int", "i"}, {"double", "f"}, {"bool", "b"}, {"tensor", "T"}};
            for (const auto& [name, kind] : kinds) {
                if (pickled.text == name) {
                    made->element = kind;
                }
            }
            return made;
        }
        case Pickled::Kind::tuple: {
            auto made = std::make_shared<TupleValue>();
            made->items = items();
            if (const auto of = contents_.code.classes.find(pickled.text);
                of != contents_.code.classes.end()) {
                made->of = &of->second;
                if (of->second.base == "Enum" && !made->items.empty()) {
                    return made->items[0];
                }
            }
            return made;
        }
        case Pickled::Kind::dict: {
            auto made = std::make_shared<DictValue>();
            const auto all = items();
            for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
                made->items.emplace_back(all[i], all[i + 1]);
            }
            made->kind = made->items.empty() ? "<s T>"
                                             : fmt::format("<{} {}>", kind_of(made->items[0].first),
                                                           kind_of(made->items[0].second));
            return made;
        }
        case Pickled::Kind::global:
        case Pickled::Kind::storage:
            break;
    }
    fail(fmt::format("'{}' is of a kind that is not known", path));
}

Value Interpreter::attribute_of(const std::shared_ptr<ObjectValue>& object,
                                const std::string& name) {
    const auto found = world_.attributes.find({object->number, name});
    return found != world_.attributes.end() ? found->second : first_value(object, name);
}

std::optional<Value> Interpreter::before_all(const Attributed& key) {
    if (key.first >= by_number_.size() || by_number_[key.first]->pickled == nullptr) {
        return std::nullopt;
    }
    return first_value(by_number_[key.first], key.second);
}

Value Interpreter::first_value(const std::shared_ptr<ObjectValue>& object,
                               const std::string& name) {
    const Attributed key{object->number, name};
    if (const auto found = first_values_.find(key); found != first_values_.end()) {
        return found->second;
    }
    const auto path = joined_name(object->path, name);
    const Pickled* pickled = nullptr;
    if (object->pickled != nullptr) {
        if (object->pickled->kind == Pickled::Kind::state) {
            refuse(fmt::format("'{}' is of {}, which restores itself by code", object->path,
                               object->pickled->text));
        }
        pickled = object->pickled->attribute(name);
    }
    Value value;
    const auto* declared = object->of == nullptr ? nullptr : object->of->attribute(name);
    if (pickled != nullptr) {
        const bool held =
            pickled->kind == Pickled::Kind::tensor || pickled->kind == Pickled::Kind::integer ||
            pickled->kind == Pickled::Kind::real || pickled->kind == Pickled::Kind::truth;
        if (held && is_changed(*object, name)) {
            if (pickled->kind == Pickled::Kind::tensor) {
                const auto stored = contents_.load(*pickled->tensor, "data", path);
                value = builder_.add_input(builder_.root(), path, "T");
                auto& graph = builder_.root().graph;
                const auto id = *graph.find_tensor(builder_.entry(*value.as<Runtime>()).name);
                auto& tensor = graph.tensor_from_file(id);
                tensor.type = Type::tensor(stored.constant.dtype());
                tensor.constant = stored.constant;
            } else {
                value = input_with(path, of_pickle(*pickled, path, 0));
            }
            auto& graph = builder_.root().graph;
            const auto id = *graph.find_tensor(builder_.entry(*value.as<Runtime>()).name);
            graph.tensor_from_file(id).metadata.push_back({"kind", "state"});
        } else {
            value = of_pickle(*pickled, path, 0);
        }
    } else if (declared != nullptr && declared->value) {
        Frame none;
        value = evaluate(*declared->value, none);
    } else {
        fail(fmt::format("'{}' has no attribute '{}'",
                         object->path.empty() ? "the module" : object->path, name));
    }
    first_values_.emplace(key, value);
    return value;
}

Value Interpreter::constant(std::size_t number) {
    if (contents_.constants == nullptr || number >= contents_.constants->root().items.size()) {
        fail(fmt::format("the archive has no constant {}", number));
    }
    const auto& held = *contents_.constants->root().items[number];
    if (held.kind == Pickled::Kind::tensor) {
        return tensor_of(held, "constants", fmt::format("CONSTANTS.c{}", number), "constant");
    }
    return of_pickle(held, fmt::format("CONSTANTS.c{}", number), 0);
}

}  // namespace trocar::torchscript
