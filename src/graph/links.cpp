// Uses, producers and names: the links between ops and tensors, and the checks before them.
#include <fmt/format.h>

#include <algorithm>

#include "graph/graph_edit.h"
#include "trocar/error.h"

namespace trocar {

void GraphEdit::add_use(OpId op, std::uint32_t slot) {
    auto& node = g.ops_[index(op)];
    const auto tensor = node.op.inputs[slot];
    if (node.use_at.size() <= slot) {
        node.use_at.resize(slot + 1, 0);
    }
    if (tensor != TensorId::none) {
        auto& uses = g.tensors_[index(tensor)].tensor.uses;
        node.use_at[slot] = static_cast<std::uint32_t>(uses.size());
        uses.push_back({op, slot});
    }
}

void GraphEdit::add_capture_use(OpId op, std::size_t at) {
    auto& node = g.ops_[index(op)];
    auto& uses = g.tensors_[index(node.op.captures[at])].tensor.uses;
    node.capture_use_at.resize(node.op.captures.size());
    node.capture_use_at[at] = static_cast<std::uint32_t>(uses.size());
    uses.push_back({op, Use::captured});
}

// The last use takes the place of the dropped one, and its op notes where it is now.
void GraphEdit::drop_use_at(TensorId tensor, std::uint32_t at) {
    auto& uses = g.tensors_[index(tensor)].tensor.uses;
    uses[at] = uses.back();
    const auto moved = uses[at];
    uses.pop_back();
    auto& other = g.ops_[index(moved.op)];
    if (moved.slot != Use::captured) {
        other.use_at[moved.slot] = at;
        return;
    }
    const auto& captures = other.op.captures;
    const auto place = std::lower_bound(captures.begin(), captures.end(), tensor);
    other.capture_use_at[static_cast<std::size_t>(place - captures.begin())] = at;
}

void GraphEdit::drop_use(OpId op, std::uint32_t slot) {
    const auto tensor = g.ops_[index(op)].op.inputs[slot];
    if (tensor != TensorId::none) {
        drop_use_at(tensor, g.ops_[index(op)].use_at[slot]);
    }
}

void GraphEdit::drop_capture_use(OpId op, std::size_t at) {
    const auto& node = g.ops_[index(op)];
    drop_use_at(node.op.captures[at], node.capture_use_at[at]);
}

void GraphEdit::connect(OpId id) {
    auto& node = g.ops_[index(id)];
    node.use_at.assign(node.op.inputs.size(), 0);
    for (std::uint32_t slot = 0; slot < node.op.inputs.size(); ++slot) {
        add_use(id, slot);
    }
    for (std::size_t i = 0; i < node.op.captures.size(); ++i) {
        add_capture_use(id, i);
    }
    for (std::uint32_t slot = 0; slot < node.op.outputs.size(); ++slot) {
        const auto output = node.op.outputs[slot];
        if (output != TensorId::none) {
            g.tensors_[index(output)].tensor.producer = id;
            g.tensors_[index(output)].tensor.producer_slot = slot;
        }
    }
}

void GraphEdit::disconnect(OpId id) {
    auto& node = g.ops_[index(id)];
    for (std::uint32_t slot = 0; slot < node.op.inputs.size(); ++slot) {
        drop_use(id, slot);
    }
    for (std::size_t i = node.op.captures.size(); i-- > 0;) {
        drop_capture_use(id, i);
    }
    node.op.captures.clear();
    node.capture_use_at.clear();
    for (const auto output : node.op.outputs) {
        if (output != TensorId::none && g.tensors_[index(output)].tensor.producer == id) {
            g.tensors_[index(output)].tensor.producer = OpId::none;
        }
    }
}

void GraphEdit::need(TensorId tensor, const char* doing) const {
    if (!g.contains(tensor)) {
        throw Error(Fault::usage, fmt::format("cannot {}: the graph has no tensor with handle {}",
                                              doing, index(tensor)));
    }
}

void GraphEdit::need(OpId op, const char* doing) const {
    if (!g.contains(op)) {
        throw Error(Fault::usage,
                    fmt::format("cannot {}: the graph has no op with handle {}", doing, index(op)));
    }
}

std::vector<TensorId> GraphEdit::captures_of(const OpSpec& spec) const {
    std::vector<TensorId> captures;
    const Op probe{OpSpec{.type = {}, .attributes = spec.attributes}, {}, {}};
    for (const auto& graph : probe.subgraphs()) {
        for (const auto inner : graph->captured()) {
            const auto& wanted = graph->tensor(inner).name;
            const auto outer = g.find_tensor(wanted);
            if (!outer) {
                throw Error(Fault::usage,
                            fmt::format("a subgraph of {} '{}' reads '{}', which is not defined "
                                        "around it",
                                        spec.type, spec.name, wanted));
            }
            captures.push_back(*outer);
        }
    }
    std::sort(captures.begin(), captures.end());
    captures.erase(std::unique(captures.begin(), captures.end()), captures.end());
    return captures;
}

void GraphEdit::check_spec(const OpSpec& spec, const std::vector<TensorId>& captures, OpId at,
                           OpId taken_over) const {
    const auto what = fmt::format("{} '{}'", spec.type, spec.name);
    for (const auto* list : {&spec.inputs, &captures}) {
        for (const auto input : *list) {
            if (input == TensorId::none) {
                continue;
            }
            need(input, "connect an op");
            const auto& t = g.tensors_[index(input)].tensor;
            if (!known_after(input, at) || (taken_over != OpId::none && t.producer == taken_over)) {
                throw Error(Fault::usage,
                            fmt::format("{} reads '{}', which is not known where it would stand",
                                        what, t.name),
                            "put the op further down, or give it another input");
            }
        }
    }
    std::vector<TensorId> seen;
    for (const auto output : spec.outputs) {
        if (output == TensorId::none) {
            continue;
        }
        need(output, "connect an op");
        const auto& t = g.tensors_[index(output)].tensor;
        if ((t.producer != OpId::none && t.producer != taken_over) || t.is_input || t.is_captured ||
            t.constant || std::find(seen.begin(), seen.end(), output) != seen.end()) {
            throw Error(Fault::usage, fmt::format("{} cannot write '{}', which is already defined",
                                                  what, t.name));
        }
        seen.push_back(output);
    }
}

void GraphEdit::check_captured_name(OpId op, std::string_view old_name,
                                    std::string_view new_name) const {
    for (const auto& graph : g.ops_[index(op)].op.subgraphs()) {
        const auto inner = graph->find_tensor(old_name);
        if (!inner || !graph->tensor(*inner).is_captured) {
            continue;
        }
        const auto clash = graph->find_tensor(new_name);
        if (clash && !graph->tensor(*clash).is_captured) {
            throw Error(Fault::usage, fmt::format("a subgraph of {} has a tensor '{}' of its own",
                                                  g.describe(op), new_name));
        }
        for (const auto& use : graph->tensor(*inner).uses) {
            if (use.slot == Use::captured) {
                GraphEdit{*graph}.check_captured_name(use.op, old_name, new_name);
            }
        }
    }
}

void GraphEdit::rename_in(Graph& graph, std::string_view old_name, const std::string& new_name) {
    const auto inner = graph.find_tensor(old_name);
    if (!inner || !graph.tensor(*inner).is_captured) {
        return;
    }
    GraphEdit edit{graph};
    if (const auto existing = graph.find_tensor(new_name)) {
        // Both were captured: now they are one.
        const auto uses = graph.tensor(*inner).uses;
        for (const auto& use : uses) {
            edit.redirect(use, *inner, *existing);
        }
        std::erase(graph.captured_, *inner);
        std::replace(graph.outputs_.begin(), graph.outputs_.end(), *inner, *existing);
        graph.by_name_.erase(graph.tensors_[index(*inner)].tensor.name);
        graph.tensors_[index(*inner)].live = false;
        --graph.tensor_count_;
        edit.touch();
        return;
    }
    edit.set_name(*inner, new_name);
}

void GraphEdit::rename_captured(OpId op, std::string_view old_name, const std::string& new_name) {
    const std::string old(old_name);
    for (const auto& graph : g.ops_[index(op)].op.subgraphs()) {
        rename_in(*graph, old, new_name);
    }
    touch(op);
}

void GraphEdit::touch(OpId op) {
    g.ops_[index(op)].op.source.edited = true;
    touch();
}

OpId GraphEdit::add(OpSpec spec, std::vector<TensorId> captures, OpId before, OpId after) {
    const auto id = static_cast<OpId>(g.ops_.size());
    auto& node = g.ops_.emplace_back();
    static_cast<OpSpec&>(node.op) = std::move(spec);
    node.op.captures = std::move(captures);
    node.live = true;
    ++g.op_count_;
    link_between(id, before, after);
    connect(id);
    g.op_names_stale_ = true;
    touch();
    return id;
}

TensorId GraphEdit::new_tensor(std::string name, Type type) {
    if (name.empty()) {
        name = g.fresh_name("tensor");
    }
    if (g.by_name_.contains(name)) {
        throw Error(Fault::usage, fmt::format("the graph already has a tensor '{}'", name));
    }
    const auto id = static_cast<TensorId>(g.tensors_.size());
    auto& node = g.tensors_.emplace_back();
    node.tensor.name = name;
    node.tensor.type = std::move(type);
    node.live = true;
    ++g.tensor_count_;
    g.by_name_.emplace(std::move(name), id);
    touch();
    return id;
}

// Everything that mentions the tensor is written anew.
void GraphEdit::set_name(TensorId id, std::string name) {
    auto& tensor = g.tensors_[index(id)].tensor;
    const auto old = tensor.name;
    const auto uses = tensor.uses;
    for (const auto& use : uses) {
        touch(use.op);
        if (use.slot == Use::captured) {
            rename_captured(use.op, old, name);
        }
    }
    if (tensor.producer != OpId::none) {
        touch(tensor.producer);
    }
    g.by_name_.erase(old);
    g.by_name_.emplace(name, id);
    tensor.name = std::move(name);
    tensor.declaration.edited = true;
    tensor.constant_source.edited = true;
    touch();
}

void GraphEdit::redirect(const Use& use, TensorId from, TensorId to) {
    auto& node = g.ops_[index(use.op)];
    if (use.slot != Use::captured) {
        drop_use(use.op, use.slot);
        node.op.inputs[use.slot] = to;
        add_use(use.op, use.slot);
        touch(use.op);
        return;
    }
    rename_captured(use.op, g.tensors_[index(from)].tensor.name, g.tensors_[index(to)].tensor.name);
    g.update_captures(use.op);
}

}  // namespace trocar
