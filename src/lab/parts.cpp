#include "trocar/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "trocar/error.h"
#include "util/op_label.h"

namespace trocar {

namespace {

constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

std::string cut_module(const std::string& module, std::size_t depth) {
    std::size_t end = std::string::npos;
    for (std::size_t level = 0; depth > 0 && level < depth; ++level) {
        end = module.find('.', level == 0 ? 0 : end + 1);
        if (end == std::string::npos) {
            break;
        }
    }
    return module.substr(0, end);
}

// What an op reads: inputs and what its bodies capture.
template <class Work>
void each_read(const Op& op, const Work& work) {
    for (const auto* list : {&op.inputs, &op.captures}) {
        for (const auto id : *list) {
            if (id != TensorId::none) {
                work(id);
            }
        }
    }
}

// A topological order that stays in a module as long as it can.
std::vector<OpId> by_modules(const Graph& graph, const std::vector<OpId>& order,
                             const std::vector<std::string>& modules) {
    std::unordered_map<std::size_t, std::size_t> place;
    for (std::size_t i = 0; i < order.size(); ++i) {
        place[index(order[i])] = i;
    }
    std::vector<std::size_t> waits(order.size(), 0);
    std::vector<std::vector<std::size_t>> followers(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        for (const auto producer : graph.producers(order[i])) {
            if (const auto found = place.find(index(producer)); found != place.end()) {
                followers[found->second].push_back(i);
                ++waits[i];
            }
        }
    }
    using Ready = std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>>;
    Ready ready;
    std::unordered_map<std::string, Ready> in_module;
    std::vector<bool> done(order.size(), false);
    const auto offer = [&](std::size_t i) {
        ready.push(i);
        in_module[modules[i]].push(i);
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (waits[i] == 0) {
            offer(i);
        }
    }
    const auto take = [&](Ready& queue) {
        while (!queue.empty() && done[queue.top()]) {
            queue.pop();
        }
        if (queue.empty()) {
            return nowhere;
        }
        const auto i = queue.top();
        queue.pop();
        return i;
    };
    std::vector<OpId> sorted;
    std::string module;
    while (sorted.size() < order.size()) {
        auto i = sorted.empty() ? nowhere : take(in_module[module]);
        i = i == nowhere ? take(ready) : i;
        done[i] = true;
        module = modules[i];
        sorted.push_back(order[i]);
        for (const auto follower : followers[i]) {
            if (--waits[follower] == 0) {
                offer(follower);
            }
        }
    }
    return sorted;
}

}  // namespace

Chain::Chain(const Model& model, Order order, std::size_t module_depth) : model_(model) {
    const auto& graph = model.graph;
    plan_ = make_plan(model, [](OpId) { return CutAt{.around = true}; });
    for (const auto& segment : plan_.segments) {
        order_.insert(order_.end(), segment.ops.begin(), segment.ops.end());
    }
    const auto name_modules = [&] {
        modules_.clear();
        for (const auto id : order_) {
            modules_.push_back(cut_module(graph.op(id).origin.module, module_depth));
        }
    };
    name_modules();
    if (order == Order::modules) {
        order_ = by_modules(graph, order_, modules_);
        name_modules();
    }
    written_.assign(graph.tensor_limit(), nowhere);
    last_read_.assign(graph.tensor_limit(), nowhere);
    for (std::size_t i = 0; i < order_.size(); ++i) {
        const auto& op = graph.op(order_[i]);
        each_read(op, [&](TensorId id) { last_read_[index(id)] = i; });
        for (const auto id : op.outputs) {
            if (id != TensorId::none) {
                written_[index(id)] = i;
            }
        }
    }
}

Part Chain::part(std::size_t first, std::size_t last) const {
    const auto& graph = model_.graph;
    Part part;
    part.first = first;
    part.last = last;
    std::vector<TensorId> unread;
    const auto add_once = [](std::vector<TensorId>& list, TensorId id) {
        if (std::find(list.begin(), list.end(), id) == list.end()) {
            list.push_back(id);
        }
    };
    for (auto i = first; i <= last; ++i) {
        const auto& op = graph.op(order_[i]);
        part.ops.push_back(order_[i]);
        each_read(op, [&](TensorId id) {
            const auto at = written_[index(id)];
            if (constant(id) != nullptr || (at != nowhere && at >= first)) {
                return;
            }
            add_once(part.inputs, id);
            if (last_read_[index(id)] <= last && !graph.tensor(id).is_output) {
                add_once(part.dead, id);
            }
        });
        for (const auto id : op.outputs) {
            if (id == TensorId::none) {
                continue;
            }
            const auto read = last_read_[index(id)];
            if ((read != nowhere && read > last) || graph.tensor(id).is_output) {
                part.outputs.push_back(id);
            } else if (read == nowhere) {
                unread.push_back(id);
            }
        }
    }
    if (part.outputs.empty()) {  // nobody reads it; it can be seen all the same
        part.outputs = unread;
        part.dead.insert(part.dead.end(), unread.begin(), unread.end());
    }
    const auto& start = graph.op(order_[first]);
    const auto& end = graph.op(order_[last]);
    part.module = modules_[first];
    if (std::any_of(part.ops.begin(), part.ops.end(), [&](OpId id) {
            const auto& module = graph.op(id).origin.module;
            return !module.starts_with(part.module);
        })) {
        part.module.clear();
    }
    part.type = first == last ? start.type : fmt::format("{}…{}", start.type, end.type);
    part.name = first == last         ? op_label(graph, order_[first])
                : part.module.empty() ? op_label(graph, order_[last])
                                      : part.module;
    return part;
}

std::vector<TensorId> Chain::crossing(std::size_t place) const {
    std::vector<TensorId> found;
    for (std::size_t i = 0; i <= place; ++i) {
        for (const auto id : model_.graph.op(order_[i]).outputs) {
            if (id != TensorId::none && last_read_[index(id)] != nowhere &&
                last_read_[index(id)] > place) {
                found.push_back(id);
            }
        }
    }
    return found;
}

Model Chain::extract(const Part& part, std::span<const Value> inputs) const {
    auto made = extract_ops(model_, part.ops, part.outputs, plan_.constants);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto id = made.graph.find_tensor(model_.graph.tensor(part.inputs[i]).name);
        if (id && inputs[i].kind() != Value::Kind::none) {
            made.graph.set_type(*id, type_of(inputs[i]));
        }
    }
    return made;
}

std::vector<Part> make_parts(const Chain& chain, const PartsOptions& options) {
    const auto ends = [&](std::size_t i) {
        switch (options.by) {
            case PartsOptions::By::module:
                return chain.module(i).empty() || chain.module(i) != chain.module(i + 1);
            case PartsOptions::By::segment:
                return options.cut(chain.model().graph, chain.op(i));
            default:
                return true;
        }
    };
    std::vector<Part> parts;
    std::size_t first = 0;
    for (std::size_t i = 0; i < chain.size(); ++i) {
        const bool last = i + 1 == chain.size();
        if (last || (ends(i) && (!options.may_end || options.may_end(i)))) {
            auto part = chain.part(first, i);
            if (!part.outputs.empty()) {
                parts.push_back(std::move(part));
            }
            first = i + 1;
        }
    }
    return parts;
}

std::function<bool(std::size_t)> shared_places(const Chain& chain, const Model& other) {
    std::vector<bool> shared;
    for (std::size_t place = 0; place < chain.size(); ++place) {
        const auto crossing = chain.crossing(place);
        shared.push_back(std::all_of(crossing.begin(), crossing.end(), [&](TensorId id) {
            return other.graph.find_tensor(chain.model().graph.tensor(id).name).has_value();
        }));
    }
    return [shared = std::move(shared)](std::size_t place) { return shared[place]; };
}

Model matching_part(const Chain& chain, const Part& part, const Model& other,
                    std::span<const Value> inputs) {
    const auto& graph = chain.model().graph;
    const auto find = [&](TensorId id) {
        const auto& name = graph.tensor(id).name;
        const auto found = other.graph.find_tensor(name);
        if (!found) {
            throw Error(Fault::unsupported,
                        fmt::format("the other model has no tensor '{}'", name));
        }
        return *found;
    };
    std::vector<TensorId> from;
    std::vector<TensorId> to;
    std::transform(part.inputs.begin(), part.inputs.end(), std::back_inserter(from), find);
    std::transform(part.outputs.begin(), part.outputs.end(), std::back_inserter(to), find);
    try {
        auto made = extract(other, from, to);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const auto id = made.graph.find_tensor(graph.tensor(part.inputs[i]).name);
            if (id && made.graph.tensor(*id).is_input && inputs[i].kind() != Value::Kind::none) {
                made.graph.set_type(*id, type_of(inputs[i]));
            }
        }
        return made;
    } catch (const Error& error) {
        throw Error(Fault::unsupported,
                    fmt::format("the other model does not compute this part: {}", error.what()));
    }
}

}  // namespace trocar
