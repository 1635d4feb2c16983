// Edits of names, types, attributes, the graph's inputs and outputs, and of tensors nobody needs.
#include <fmt/format.h>

#include <algorithm>

#include "graph/graph_edit.h"
#include "trocar/error.h"

namespace trocar {

void Graph::rename(TensorId id, std::string new_name) {
    GraphEdit edit{*this};
    edit.need(id, "rename a tensor");
    if (new_name == tensor(id).name) {
        return;
    }
    if (new_name.empty() || by_name_.contains(new_name)) {
        throw Error(Fault::usage,
                    new_name.empty()
                        ? "a tensor needs a name"
                        : fmt::format("the graph already has a tensor '{}'", new_name));
    }
    if (tensor(id).is_captured) {
        throw Error(Fault::usage,
                    fmt::format("'{}' is defined in the graph around this one", tensor(id).name),
                    "rename it there");
    }
    for (const auto& use : tensor(id).uses) {
        if (use.slot == Use::captured) {
            edit.check_captured_name(use.op, tensor(id).name, new_name);
        }
    }
    edit.set_name(id, std::move(new_name));
}

void Graph::rename(OpId id, std::string new_name) {
    GraphEdit edit{*this};
    edit.need(id, "rename an op");
    ops_[index(id)].op.name = std::move(new_name);
    op_names_stale_ = true;
    edit.touch(id);
}

void Graph::set_type(TensorId id, Type type) {
    GraphEdit edit{*this};
    edit.need(id, "set a type");
    tensors_[index(id)].tensor.type = std::move(type);
    tensors_[index(id)].tensor.declaration.edited = true;
    edit.touch();
}

void Graph::set_constant(TensorId id, Constant value) {
    GraphEdit edit{*this};
    edit.need(id, "set a constant");
    auto& t = tensors_[index(id)].tensor;
    if (t.producer != OpId::none || t.is_captured) {
        throw Error(
            Fault::usage,
            fmt::format("'{}' cannot be made constant: it is {}", t.name,
                        t.is_captured ? "defined outside" : "written by " + describe(t.producer)));
    }
    t.type = Type::tensor(value.dtype(), value.shape());
    t.constant = std::move(value);
    t.constant_source.edited = true;
    t.declaration.edited = true;
    edit.touch();
}

void Graph::set_quantization(TensorId id, std::shared_ptr<const Quantization> quantization) {
    GraphEdit edit{*this};
    edit.need(id, "set a quantization");
    auto& t = tensors_[index(id)].tensor;
    t.quantization = std::move(quantization);
    t.declaration.edited = true;
    edit.touch();
}

void Graph::set_attribute(OpId id, std::string attribute_name, Attribute::Value value) {
    GraphEdit edit{*this};
    edit.need(id, "set an attribute");
    const auto is_graph = [](const Attribute::Value& v) {
        return std::holds_alternative<std::shared_ptr<Graph>>(v) ||
               std::holds_alternative<std::vector<std::shared_ptr<Graph>>>(v);
    };
    auto changed = static_cast<const OpSpec&>(op(id));
    auto found = std::find_if(changed.attributes.begin(), changed.attributes.end(),
                              [&](const Attribute& a) { return a.name == attribute_name; });
    const bool graphs =
        is_graph(value) || (found != changed.attributes.end() && is_graph(found->value));
    if (found == changed.attributes.end()) {
        found = changed.attributes.insert(found, Attribute{std::move(attribute_name), {}, {}, {}});
    }
    found->value = std::move(value);
    found->reference.clear();
    found->source.edited = true;
    if (graphs) {
        for (const auto capture : edit.captures_of(changed)) {
            if (!edit.known_after(capture, previous(id))) {
                throw Error(Fault::usage,
                            fmt::format("a subgraph for {} reads '{}', which is not known there",
                                        describe(id), tensor(capture).name));
            }
        }
    }
    ops_[index(id)].op.attributes = std::move(changed.attributes);
    edit.touch(id);
    if (graphs) {
        update_captures(id);
    }
}

void Graph::remove_attribute(OpId id, std::string_view attribute_name) {
    GraphEdit edit{*this};
    edit.need(id, "remove an attribute");
    if (op(id).attribute(attribute_name) == nullptr) {
        throw Error(Fault::usage,
                    fmt::format("{} has no attribute '{}'", describe(id), attribute_name));
    }
    std::erase_if(ops_[index(id)].op.attributes,
                  [&](const Attribute& a) { return a.name == attribute_name; });
    edit.touch(id);
    update_captures(id);
}

void Graph::set_metadata(OpId id, std::vector<Property> properties) {
    GraphEdit edit{*this};
    edit.need(id, "set metadata");
    ops_[index(id)].op.metadata = std::move(properties);
    edit.touch(id);
}

void Graph::set_inputs(std::vector<TensorId> wanted) {
    GraphEdit edit{*this};
    for (const auto id : wanted) {
        edit.need(id, "set the graph's inputs");
        if (tensor(id).producer != OpId::none || tensor(id).is_captured) {
            throw Error(Fault::usage, fmt::format("'{}' cannot be an input: it is defined already",
                                                  tensor(id).name));
        }
        if (std::count(wanted.begin(), wanted.end(), id) > 1) {
            throw Error(Fault::usage, fmt::format("'{}' is given twice", tensor(id).name));
        }
    }
    for (const auto id : inputs_) {
        const auto& t = tensor(id);
        if (std::find(wanted.begin(), wanted.end(), id) == wanted.end() && !t.constant &&
            (!t.uses.empty() || t.is_output)) {
            throw Error(Fault::usage, fmt::format("input '{}' is still read", t.name));
        }
    }
    for (const auto id : inputs_) {
        tensors_[index(id)].tensor.is_input = false;
    }
    inputs_ = std::move(wanted);
    for (const auto id : inputs_) {
        tensors_[index(id)].tensor.is_input = true;
    }
    edit.touch();
}

void Graph::set_outputs(std::vector<TensorId> wanted) {
    GraphEdit edit{*this};
    for (const auto id : wanted) {
        edit.need(id, "set the graph's outputs");
        if (!edit.known_after(id, last_)) {
            throw Error(Fault::usage, fmt::format("nothing writes '{}'", tensor(id).name));
        }
    }
    for (const auto id : outputs_) {
        tensors_[index(id)].tensor.is_output = false;
    }
    outputs_ = std::move(wanted);
    for (const auto id : outputs_) {
        tensors_[index(id)].tensor.is_output = true;
    }
    edit.touch();
}

void Graph::remove_tensor(TensorId id) {
    GraphEdit edit{*this};
    edit.need(id, "remove a tensor");
    const auto& t = tensor(id);
    if (!t.uses.empty() || t.producer != OpId::none || t.is_output) {
        throw Error(Fault::usage,
                    fmt::format("'{}' cannot be removed: it is {}", t.name,
                                t.is_output      ? "an output of the graph"
                                : t.uses.empty() ? "written by " + describe(t.producer)
                                                 : "read by " + describe(t.uses.front().op)));
    }
    std::erase(inputs_, id);
    std::erase(captured_, id);
    by_name_.erase(t.name);
    tensors_[index(id)] = {};
    --tensor_count_;
    edit.touch();
}

std::size_t Graph::remove_unused() {
    std::size_t removed = 0;
    GraphEdit edit{*this};
    for (auto id = last_; id != OpId::none;) {
        const auto before_it = previous(id);
        const auto& outputs = op(id).outputs;
        const bool needed = std::any_of(outputs.begin(), outputs.end(), [&](TensorId output) {
            return output != TensorId::none &&
                   (!tensor(output).uses.empty() || tensor(output).is_output);
        });
        if (!needed) {
            edit.disconnect(id);
            edit.unlink(id);
            ops_[index(id)].live = false;
            --op_count_;
            ++removed;
        }
        id = before_it;
    }
    std::erase_if(captured_,
                  [&](TensorId id) { return tensor(id).uses.empty() && !tensor(id).is_output; });
    for (auto& node : tensors_) {
        const auto& t = node.tensor;
        if (node.live && t.uses.empty() && t.producer == OpId::none && !t.is_input &&
            !t.is_output) {
            by_name_.erase(t.name);
            node = {};
            --tensor_count_;
            edit.touch();
        }
    }
    if (removed != 0) {
        op_names_stale_ = true;
        edit.touch();
    }
    return removed;
}

void Graph::update_captures(OpId id) {
    GraphEdit edit{*this};
    edit.need(id, "update captures");
    auto captures = edit.captures_of(op(id));
    auto& node = ops_[index(id)];
    for (std::size_t i = node.op.captures.size(); i-- > 0;) {
        edit.drop_capture_use(id, i);
    }
    node.op.captures = std::move(captures);
    node.capture_use_at.assign(node.op.captures.size(), 0);
    for (std::size_t i = 0; i < node.op.captures.size(); ++i) {
        edit.add_capture_use(id, i);
    }
}

}  // namespace trocar
