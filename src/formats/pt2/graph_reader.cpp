#include "formats/pt2/graph_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/keep_unknown.h"
#include "formats/pt2/origin.h"
#include "formats/pt2/symbolic.h"
#include "formats/pt2/types.h"
#include "trocar/error.h"

namespace trocar::pt2 {

namespace {

constexpr int deepest = 32;  // graphs within graphs

// Higher-order ops have no schema, so the file has no names for their arguments.
struct Arguments {
    std::string_view op;
    std::vector<std::string_view> names;
};
const std::vector<Arguments>& higher_order_arguments() {
    static const std::vector<Arguments> all{
        {"associative_scan", {"combine_fn", "xs", "additional_inputs"}},
        {"cond", {"pred", "true_fn", "false_fn", "operands"}},
        {"map_impl", {"f", "xs", "pos_args"}},
        {"scan", {"combine_fn", "init", "xs", "additional_inputs"}},
        {"while_loop", {"cond_fn", "body_fn", "carried_inputs", "additional_inputs"}},
        {"wrap_with_autocast",
         {"device_type", "dtype", "enabled", "cache_enabled", "wrapped_func"}},
        {"wrap_with_set_grad_enabled", {"enable_grad", "wrapped_func"}},
    };
    return all;
}

std::string argument_name(const OpSpec& spec, std::size_t position) {
    if (spec.domain == "higher_order") {
        for (const auto& entry : higher_order_arguments()) {
            if (entry.op == spec.type && position < entry.names.size()) {
                return std::string(entry.names[position]);
            }
        }
    }
    return std::to_string(position);
}

}  // namespace

GraphReader::GraphReader(const JsonPlace& place, const Json& graph, int depth)
    : place_(place), json_(graph), depth_(depth), writes_(graph) {
    if (depth > deepest) {
        place.fail(fmt::format("graphs lie more than {} deep in one another", deepest));
    }
    keep_unknown(
        graph,
        {"inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values",
         "sym_float_values", "custom_obj_values", "is_single_tensor_return"},
        graph_.metadata);
    if (place.flag(graph, "is_single_tensor_return")) {
        graph_.metadata.push_back({"is_single_tensor_return", "true"});
    }
}

GraphReader::Value GraphReader::value_of(const std::string& name) const {
    const auto inside = place_.in(fmt::format("'{}'", name));
    const auto find = [&](const char* table) -> const Json* {
        return place_.object(json_, table).find(name);
    };
    if (const auto* meta = find("tensor_values")) {
        auto read = read_tensor_meta(inside, *meta);
        return {std::move(read.type), std::move(read.metadata)};
    }
    struct Scalar {
        const char* table;
        DType dtype;
    };
    for (const auto& [table, dtype] :
         {Scalar{"sym_int_values", DType::i64}, Scalar{"sym_float_values", DType::f64},
          Scalar{"sym_bool_values", DType::boolean}}) {
        if (const auto* value = find(table)) {
            const auto [kind, inner] = inside.choice(*value);
            auto text = kind == "as_expr"  ? readable(inside.text(*inner, "expr_str"))
                        : inner != nullptr ? dump_json(*inner)
                                           : std::string();
            return {Type::tensor(dtype, {}), {{"expression", std::move(text)}}};
        }
    }
    if (const auto* object = find("custom_obj_values")) {
        return {{.kind = Type::Kind::opaque, .dims = {}, .element = {}},
                {{"class", inside.text(*object, "class_fqn", "")}}};
    }
    return {};
}

TensorId GraphReader::add_value(const std::string& name) {
    auto value = value_of(name);
    const auto id = graph_.add_tensor(graph_.find_tensor(name) ? graph_.fresh_name(name) : name,
                                      std::move(value.type));
    graph_.tensor_from_file(id).metadata = std::move(value.metadata);
    return id;
}

void GraphReader::define(const std::string& name, TensorId id) {
    if (name.empty()) {
        place_.fail("a value has no name");
    }
    if (!values_.emplace(name, id).second) {
        place_.fail(fmt::format("two values have the name '{}'", name));
    }
    writes_.name(id, name);
}

TensorId GraphReader::resolve(const JsonPlace& place, const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) {
        place.fail(fmt::format("it reads '{}', which nothing before it defines", name));
    }
    return found->second;
}

std::optional<std::string> GraphReader::value_name(const JsonPlace& place, const Json& argument) {
    const auto [kind, value] = place.choice(argument);
    if (kind == "as_tensor" || kind == "as_custom_obj") {
        return place.text(*value, "name");
    }
    if (kind == "as_optional_tensor") {
        return value_name(place, *value);
    }
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
        const auto inner = place.choice(*value);
        return inner.kind == "as_name" ? std::optional(place.as_text(*inner.value, "a name"))
                                       : std::nullopt;
    }
    return std::nullopt;
}

TensorId GraphReader::add_input(const std::string& name) {
    auto value = value_of(name);
    const auto id = graph_.add_input(graph_.find_tensor(name) ? graph_.fresh_name(name) : name,
                                     std::move(value.type));
    graph_.tensor_from_file(id).metadata = std::move(value.metadata);
    define(name, id);
    return id;
}

void GraphReader::add_inputs() {
    std::size_t number = 0;
    for (const auto& argument : place_.list(json_, "inputs")) {
        if (const auto name = value_name(place_, argument)) {
            add_input(*name);
        } else {
            graph_.metadata.push_back({fmt::format("input {}", number), dump_json(argument)});
        }
        ++number;
    }
}

void GraphReader::add_ops() {
    std::size_t number = 0;
    for (const auto& node : place_.list(json_, "nodes")) {
        add_op(node, number++);
    }
}

std::vector<TensorId> GraphReader::output(const Json& argument, std::size_t number) {
    const auto inside = place_.in(fmt::format("output {}", number));
    if (const auto name = value_name(inside, argument)) {
        return {resolve(inside, *name)};
    }
    std::vector<TensorId> found;
    const auto [kind, value] = inside.choice(argument);
    if (kind == "as_tensors" && value->is_array()) {
        for (const auto& tensor : *value) {
            found.push_back(resolve(inside, inside.text(tensor, "name")));
        }
        return found;
    }
    graph_.metadata.push_back({fmt::format("output {}", number), dump_json(argument)});
    return found;
}

void GraphReader::add_outputs() {
    std::vector<TensorId> outputs;
    std::size_t number = 0;
    for (const auto& argument : place_.list(json_, "outputs")) {
        const auto more = output(argument, number++);
        outputs.insert(outputs.end(), more.begin(), more.end());
    }
    graph_.set_outputs(std::move(outputs));
}

Graph GraphReader::finish() {
    graph_.mark_read();
    return std::move(graph_);
}

// "torch.ops.aten.conv2d.default": the namespace, the type, the overload. Python's own functions
// have no overload ("_operator.add", "torch.sym_max"), nor have higher-order ops.
void GraphReader::read_target(const JsonPlace& place, const std::string& target,
                              OpSpec& spec) const {
    constexpr std::string_view ops = "torch.ops.";
    std::string_view rest = target;
    if (rest.empty()) {
        place.fail("it has no target");
    }
    if (rest.front() == '#') {  // of a library that extends export: "#namespace:op"
        const auto colon = rest.find(':');
        spec.domain = rest.substr(0, colon);
        spec.type = colon == std::string_view::npos ? rest : rest.substr(colon + 1);
        return;
    }
    if (!rest.starts_with(ops)) {
        const auto dot = rest.rfind('.');
        spec.domain =
            dot == std::string_view::npos ? std::string_view("python") : rest.substr(0, dot);
        spec.type = dot == std::string_view::npos ? rest : rest.substr(dot + 1);
        return;
    }
    rest.remove_prefix(ops.size());
    const auto dot = rest.find('.');
    spec.domain = rest.substr(0, std::min(dot, rest.size()));
    rest.remove_prefix(std::min(dot, rest.size() - 1) + 1);
    const auto overload = rest.find('.');
    spec.type = rest.substr(0, overload);
    if (overload != std::string_view::npos) {
        spec.overload = rest.substr(overload + 1);
    }
    if (spec.domain == "aten") {
        spec.domain.clear();
    }
}

void GraphReader::add_op(const Json& node, std::size_t number) {
    const auto& target = place_.text(node, "target");
    const auto inside = place_.in(fmt::format("op {} ({})", number, target));
    Draft draft;
    read_target(inside, target, draft.spec);
    if (draft.spec.type.empty()) {
        inside.fail("it has no type");
    }
    const auto& metadata = inside.object(node, "metadata");
    for (const auto& [key, value] : metadata.items()) {
        draft.spec.metadata.push_back({key, dump_json(value)});
    }
    draft.spec.origin = read_origin(inside.text(metadata, "nn_module_stack", ""),
                                    inside.text(metadata, "stack_trace", ""));
    keep_unknown(node, {"target", "inputs", "outputs", "metadata", "name"}, draft.spec.metadata);
    std::size_t position = 0;
    for (const auto& argument : inside.list(node, "inputs")) {
        auto name = inside.text(argument, "name", "");
        if (name.empty()) {
            name = argument_name(draft.spec, position);
        }
        add_argument(inside, draft, name, inside.member(argument, "arg"));
        ++position;
    }
    while (!draft.spec.inputs.empty() && draft.spec.inputs.back() == TensorId::none) {
        draft.spec.inputs.pop_back();
        draft.slots.pop_back();
    }
    position = 0;
    for (const auto& argument : inside.list(node, "outputs")) {
        add_return(inside, draft, argument, position++);
    }
    if (!draft.slots.empty()) {
        draft.spec.attributes.insert(
            draft.spec.attributes.begin(),
            {.name = "inputs", .value = std::move(draft.slots), .reference = {}, .source = {}});
    }
    if (draft.grouped) {
        set_attribute(draft, "outputs", std::move(draft.returns));
    }
    follow_memory(draft, number);
    auto& spec = draft.spec;
    spec.name = inside.text(node, "name", "");
    if (spec.name.empty() && !spec.outputs.empty() && spec.outputs[0] != TensorId::none) {
        spec.name = graph_.tensor(spec.outputs[0]).name;
    }
    graph_.append(std::move(spec));
}

void GraphReader::follow_memory(Draft& draft, std::size_t number) {
    const auto& spec = draft.spec;
    if (spec.inputs.empty() || spec.inputs[0] == TensorId::none) {
        return;
    }
    const auto first = spec.inputs[0];
    if (makes_view(spec)) {
        for (const auto output : spec.outputs) {
            if (output != TensorId::none) {
                writes_.view(output, first);
            }
        }
        return;
    }
    if (!Writes::in_place(spec)) {
        return;
    }
    if (spec.outputs.size() != 1 || spec.outputs[0] == TensorId::none) {
        set_attribute(draft, "writes", graph_.tensor(first).name);
        return;
    }
    std::vector<std::string> renamed;
    const auto shared = writes_.write(number, first, spec.outputs[0], renamed);
    for (const auto& name : renamed) {
        values_[name] = spec.outputs[0];
    }
    if (shared != TensorId::none) {
        set_attribute(draft, "writes", graph_.tensor(shared).name);
    }
}

void GraphReader::add_return(const JsonPlace& place, Draft& draft, const Json& argument,
                             std::size_t number) {
    const auto add = [&](const std::string& name, std::string label) {
        const auto id = add_value(name);
        define(name, id);
        draft.spec.outputs.push_back(id);
        draft.returns.push_back(std::move(label));
    };
    const auto skip = [&](std::string label) {
        draft.spec.outputs.push_back(TensorId::none);
        draft.returns.push_back(std::move(label));
    };
    if (const auto name = value_name(place, argument)) {
        add(*name, std::to_string(number));
        return;
    }
    const auto [kind, value] = place.choice(argument);
    const bool tensors = kind == "as_tensors" || kind == "as_optional_tensors";
    const bool symbols = kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools";
    if ((!tensors && !symbols) || !value->is_array()) {
        skip(std::to_string(number));  // None, or a number that export knew
        if (kind != "as_none" && value != nullptr) {
            draft.spec.metadata.push_back({fmt::format("output {}", number), dump_json(argument)});
        }
        return;
    }
    draft.grouped = true;
    for (std::size_t i = 0; i < value->size(); ++i) {
        const auto& item = (*value)[i];
        auto label = fmt::format("{}[{}]", number, i);
        if (kind == "as_tensors") {
            add(place.text(item, "name"), std::move(label));
            continue;
        }
        const auto inner = place.choice(item);
        if (inner.kind == "as_tensor") {
            add(place.text(*inner.value, "name"), std::move(label));
        } else if (inner.kind == "as_name") {
            add(place.as_text(*inner.value, "a name"), std::move(label));
        } else {
            skip(std::move(label));
        }
    }
}

}  // namespace trocar::pt2
