// Graph's edits. Each checks everything before it changes anything.
#include <fmt/format.h>

#include <algorithm>

#include "graph/graph_edit.h"
#include "trocar/error.h"

namespace trocar {

TensorId Graph::add_tensor(std::string tensor_name, Type type) {
    return GraphEdit{*this}.new_tensor(std::move(tensor_name), std::move(type));
}

TensorId Graph::add_constant(std::string tensor_name, Constant value) {
    auto type = Type::tensor(value.dtype(), value.shape());
    const auto id = GraphEdit{*this}.new_tensor(std::move(tensor_name), std::move(type));
    tensors_[index(id)].tensor.constant = std::move(value);
    return id;
}

TensorId Graph::add_input(std::string tensor_name, Type type) {
    const auto id = GraphEdit{*this}.new_tensor(std::move(tensor_name), std::move(type));
    tensors_[index(id)].tensor.is_input = true;
    inputs_.push_back(id);
    return id;
}

TensorId Graph::add_capture(std::string tensor_name) {
    const auto id = GraphEdit{*this}.new_tensor(std::move(tensor_name), {});
    tensors_[index(id)].tensor.is_captured = true;
    captured_.push_back(id);
    return id;
}

OpId Graph::append(OpSpec spec) {
    GraphEdit edit{*this};
    auto captures = edit.captures_of(spec);
    edit.check_spec(spec, captures, last_, OpId::none);
    return edit.add(std::move(spec), std::move(captures), last_, OpId::none);
}

OpId Graph::insert_before(OpId at, OpSpec spec) {
    GraphEdit edit{*this};
    edit.need(at, "insert an op");
    auto captures = edit.captures_of(spec);
    edit.check_spec(spec, captures, previous(at), OpId::none);
    return edit.add(std::move(spec), std::move(captures), previous(at), at);
}

OpId Graph::insert_after(OpId at, OpSpec spec) {
    GraphEdit edit{*this};
    edit.need(at, "insert an op");
    auto captures = edit.captures_of(spec);
    edit.check_spec(spec, captures, at, OpId::none);
    return edit.add(std::move(spec), std::move(captures), at, next(at));
}

OpId Graph::insert_on(TensorId on, OpSpec spec) {
    GraphEdit edit{*this};
    edit.need(on, "insert an op");
    if (spec.inputs.empty()) {
        spec.inputs.push_back(on);
    }
    spec.inputs[0] = on;
    auto captures = edit.captures_of(spec);
    auto place = tensor(on).producer;
    for (const auto* list : {&spec.inputs, &captures}) {
        for (const auto input : *list) {
            if (input != TensorId::none && contains(input) &&
                tensor(input).producer != OpId::none &&
                (place == OpId::none || before(place, tensor(input).producer))) {
                place = tensor(input).producer;
            }
        }
    }
    edit.check_spec(OpSpec{.type = spec.type, .name = spec.name, .inputs = spec.inputs}, captures,
                    place, OpId::none);
    const auto uses = tensor(on).uses;
    const bool at_output = tensor(on).is_output;
    const auto old_name = tensor(on).name;
    const auto other_name = fresh_name(old_name + (at_output ? "_before" : "_after"));
    for (const auto& use : uses) {
        if (place != OpId::none && !before(place, use.op)) {
            throw Error(Fault::usage,
                        fmt::format("{} '{}' cannot stand before {}, which reads '{}'", spec.type,
                                    spec.name, describe(use.op), old_name));
        }
        if (use.slot == Use::captured) {
            edit.check_captured_name(use.op, old_name, other_name);
        }
    }
    if (at_output && (tensor(on).is_input || tensor(on).is_captured || tensor(on).constant)) {
        throw Error(
            Fault::usage,
            fmt::format("'{}' is an output of the graph and no op writes it: an op put on it "
                        "could not give the output under its name",
                        old_name));
    }
    // The graph's output keeps its name: the new tensor takes it over.
    const auto made = edit.new_tensor(other_name, tensor(on).type);
    tensors_[index(made)].tensor.quantization = tensor(on).quantization;
    for (const auto& use : uses) {
        edit.redirect(use, on, made);
    }
    if (at_output) {
        std::replace(outputs_.begin(), outputs_.end(), on, made);
        tensors_[index(on)].tensor.is_output = false;
        tensors_[index(made)].tensor.is_output = true;
        const auto aside = fresh_name(old_name + "_aside");
        edit.set_name(made, aside);
        edit.set_name(on, other_name);
        edit.set_name(made, old_name);
        std::swap(tensors_[index(made)].tensor.declaration, tensors_[index(on)].tensor.declaration);
        tensors_[index(made)].tensor.declaration.edited = false;
        tensors_[index(on)].tensor.declaration.edited = true;
    }
    if (spec.outputs.empty()) {
        spec.outputs.push_back(made);
    } else {
        spec.outputs[0] = made;
    }
    return edit.add(std::move(spec), std::move(captures), place,
                    place == OpId::none ? first_ : next(place));
}

namespace {

// The tensor that stands for an output of an op that goes, when nobody said which.
TensorId natural_replacement(const Graph& graph, OpId op) {
    TensorId found = TensorId::none;
    for (const auto input : graph.op(op).inputs) {
        if (input == TensorId::none || graph.tensor(input).constant) {
            continue;
        }
        if (found != TensorId::none && found != input) {
            return TensorId::none;
        }
        found = input;
    }
    return found;
}

}  // namespace

void Graph::remove(OpId id, const std::vector<std::pair<TensorId, TensorId>>& replacements) {
    GraphEdit edit{*this};
    edit.need(id, "remove an op");
    const auto outputs = op(id).outputs;
    std::vector<std::pair<TensorId, TensorId>> steps;
    std::size_t read = 0;
    for (const auto output : outputs) {
        if (output != TensorId::none &&
            (!tensor(output).uses.empty() || tensor(output).is_output)) {
            ++read;
        }
    }
    for (const auto output : outputs) {
        if (output == TensorId::none ||
            (tensor(output).uses.empty() && !tensor(output).is_output)) {
            continue;
        }
        const auto stated = std::find_if(replacements.begin(), replacements.end(),
                                         [&](const auto& pair) { return pair.first == output; });
        const auto instead = stated != replacements.end() ? stated->second
                             : read == 1                  ? natural_replacement(*this, id)
                                                          : TensorId::none;
        if (instead == TensorId::none) {
            throw Error(Fault::usage,
                        fmt::format("removing {} leaves '{}' without a value", describe(id),
                                    tensor(output).name),
                        "say which tensor its readers shall read instead");
        }
        edit.need(instead, "remove an op");
        const auto& other = tensor(instead);
        if (other.producer == id) {
            throw Error(Fault::usage,
                        fmt::format("'{}' goes together with {}", other.name, describe(id)));
        }
        for (const auto& use : tensor(output).uses) {
            if (!edit.known_after(instead, previous(use.op)) || use.op == other.producer) {
                throw Error(Fault::usage,
                            fmt::format("'{}' is not known at {}", other.name, describe(use.op)));
            }
            if (use.slot == Use::captured) {
                edit.check_captured_name(use.op, tensor(output).name, other.name);
            }
        }
        if (tensor(output).is_output && (other.producer == OpId::none || other.is_output)) {
            throw Error(Fault::usage,
                        fmt::format("removing {} would make '{}', an output of the graph, the same "
                                    "as '{}'",
                                    describe(id), tensor(output).name, other.name),
                        "replace the op by an Identity instead");
        }
        steps.emplace_back(output, instead);
    }
    edit.disconnect(id);
    edit.unlink(id);
    ops_[index(id)].live = false;
    --op_count_;
    op_names_stale_ = true;
    edit.touch();
    for (const auto& [output, instead] : steps) {
        const auto uses = tensor(output).uses;
        for (const auto& use : uses) {
            edit.redirect(use, output, instead);
        }
        if (tensor(output).is_output) {
            // The output keeps its name: what stands for it is renamed.
            const auto kept = tensor(output).name;
            const auto declaration = tensor(output).declaration;
            std::replace(outputs_.begin(), outputs_.end(), output, instead);
            tensors_[index(output)].tensor.is_output = false;
            tensors_[index(instead)].tensor.is_output = true;
            edit.set_name(output, fresh_name(kept + "_removed"));
            edit.set_name(instead, kept);
            tensors_[index(instead)].tensor.declaration = declaration;
            tensors_[index(instead)].tensor.type = tensor(output).type;
        }
    }
    for (const auto output : outputs) {
        if (output != TensorId::none && contains(output)) {
            remove_tensor(output);
        }
    }
}

OpId Graph::replace(OpId id, OpSpec spec) {
    GraphEdit edit{*this};
    edit.need(id, "replace an op");
    if (spec.outputs.empty()) {
        spec.outputs = op(id).outputs;
    }
    auto captures = edit.captures_of(spec);
    edit.check_spec(spec, captures, previous(id), id);
    for (const auto output : op(id).outputs) {
        if (output == TensorId::none ||
            std::find(spec.outputs.begin(), spec.outputs.end(), output) != spec.outputs.end()) {
            continue;
        }
        if (!tensor(output).uses.empty() || tensor(output).is_output) {
            throw Error(Fault::usage, fmt::format("replacing {} leaves '{}' without a value",
                                                  describe(id), tensor(output).name));
        }
    }
    const auto outputs = op(id).outputs;
    const auto before_it = previous(id);
    const auto after_it = next(id);
    edit.disconnect(id);
    edit.unlink(id);
    ops_[index(id)].live = false;
    --op_count_;
    const auto made = edit.add(std::move(spec), std::move(captures), before_it, after_it);
    for (const auto output : outputs) {
        if (output != TensorId::none && tensor(output).producer == OpId::none) {
            remove_tensor(output);
        }
    }
    return made;
}

void Graph::set_input(OpId id, std::size_t slot, TensorId to) {
    GraphEdit edit{*this};
    edit.need(id, "connect an input");
    if (slot > op(id).inputs.size()) {
        throw Error(Fault::usage, fmt::format("{} has {} inputs; input {} cannot be set",
                                              describe(id), op(id).inputs.size(), slot));
    }
    if (to != TensorId::none) {
        edit.need(to, "connect an input");
        const auto& t = tensor(to);
        if (t.producer == OpId::none && !edit.known_after(to, OpId::none)) {
            throw Error(Fault::usage, fmt::format("nothing writes '{}'", t.name));
        }
        if (t.producer != OpId::none) {
            edit.order_after(id, t.producer);
        }
    }
    auto& node = ops_[index(id)];
    if (slot == node.op.inputs.size()) {
        node.op.inputs.push_back(TensorId::none);
    }
    edit.drop_use(id, static_cast<std::uint32_t>(slot));
    node.op.inputs[slot] = to;
    edit.add_use(id, static_cast<std::uint32_t>(slot));
    edit.touch(id);
}

void Graph::drop_trailing_input(OpId id) {
    GraphEdit edit{*this};
    edit.need(id, "drop an input");
    if (op(id).inputs.empty()) {
        throw Error(Fault::usage, fmt::format("{} has no inputs", describe(id)));
    }
    edit.drop_use(id, static_cast<std::uint32_t>(op(id).inputs.size() - 1));
    ops_[index(id)].op.inputs.pop_back();
    ops_[index(id)].use_at.pop_back();
    edit.touch(id);
}

void Graph::replace_uses(TensorId from, TensorId to) {
    GraphEdit edit{*this};
    edit.need(from, "replace uses");
    edit.need(to, "replace uses");
    if (from == to) {
        return;
    }
    const auto uses = tensor(from).uses;
    for (const auto& use : uses) {
        if (tensor(to).producer == use.op || !edit.known_after(to, previous(use.op))) {
            throw Error(Fault::usage,
                        fmt::format("'{}' is not known at {}, which reads '{}'", tensor(to).name,
                                    describe(use.op), tensor(from).name));
        }
        if (use.slot == Use::captured) {
            edit.check_captured_name(use.op, tensor(from).name, tensor(to).name);
        }
    }
    if (tensor(from).is_output && !edit.known_after(to, last_)) {
        throw Error(Fault::usage, fmt::format("nothing writes '{}'", tensor(to).name));
    }
    for (const auto& use : uses) {
        edit.redirect(use, from, to);
    }
    if (tensor(from).is_output) {
        std::replace(outputs_.begin(), outputs_.end(), from, to);
        tensors_[index(from)].tensor.is_output = false;
        tensors_[index(to)].tensor.is_output = true;
        edit.touch();
    }
}

}  // namespace trocar
