#include "partition/order.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "trocar/error.h"

namespace trocar::partitioning {

namespace {

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

}  // namespace

Ops::Ops(const Model& model) : model_(model) {
    plan_ = make_plan(model, [](OpId) { return CutAt{}; });
    const std::set<OpId> folded(plan_.folded.begin(), plan_.folded.end());
    const auto& graph = model.graph;
    place_.assign(graph.op_limit(), nowhere);
    for (const auto id : graph.ops()) {
        if (!folded.contains(id)) {
            place_[index(id)] = order_.size();
            order_.push_back(id);
        }
    }
    if (order_.empty()) {
        throw Error(Fault::input, "the model has no ops that could be parted");
    }
    readers_.resize(order_.size());
    waits_.assign(order_.size(), 0);
    for (std::size_t i = 0; i < order_.size(); ++i) {
        for (const auto producer : graph.producers(order_[i])) {
            if (const auto from = place_[index(producer)]; from != nowhere) {
                readers_[from].push_back(i);
                ++waits_[i];
            }
        }
    }
}

std::vector<TensorId> Ops::reads(std::size_t place) const {
    std::vector<TensorId> all;
    each_read(graph().op(order_[place]), [&](TensorId id) {
        if (plan_.constants[index(id)] == nullptr &&
            std::find(all.begin(), all.end(), id) == all.end()) {
            all.push_back(id);
        }
    });
    return all;
}

std::vector<const Constant*> Ops::constants(std::size_t place) const {
    std::vector<const Constant*> all;
    each_read(graph().op(order_[place]), [&](TensorId id) {
        if (const auto* constant = plan_.constants[index(id)]) {
            all.push_back(constant);
        }
    });
    return all;
}

Partition Ops::finish(std::vector<std::vector<std::size_t>> parts,
                      const std::vector<std::string>& devices, const PartitionCosts& costs) {
    Partition made;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto& part = made.parts.emplace_back();
        part.device = i < devices.size() ? devices[i] : "";
        // The order of the graph has the inputs of each op before it.
        std::sort(parts[i].begin(), parts[i].end());
        std::set<const Constant*> held;
        for (const auto place : parts[i]) {
            part.ops.push_back(order_[place]);
            part.cost += costs.op ? costs.op(order_[place]) : 0;
            for (const auto* constant : constants(place)) {
                if (held.insert(constant).second) {
                    part.constant_bytes += constant->stored_bytes();
                }
            }
        }
    }
    connect(made);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        made.parts[i].peak_bytes = needs(parts[i], costs);
    }
    made.plan = std::move(plan_);
    return made;
}

void Ops::connect(Partition& made) const {
    const auto& g = graph();
    std::vector<std::size_t> part_of(g.op_limit(), nowhere);
    for (std::size_t i = 0; i < made.parts.size(); ++i) {
        for (const auto id : made.parts[i].ops) {
            part_of[index(id)] = i;
        }
    }
    std::vector<bool> crosses(g.tensor_limit(), false);
    for (std::size_t i = 0; i < made.parts.size(); ++i) {
        auto& part = made.parts[i];
        std::set<TensorId> seen;
        for (const auto op : part.ops) {
            each_read(g.op(op), [&](TensorId id) {
                if (plan_.constants[index(id)] != nullptr) {
                    return;
                }
                const auto producer = g.tensor(id).producer;
                if (producer != OpId::none && part_of[index(producer)] == i) {
                    return;
                }
                crosses[index(id)] = true;
                if (seen.insert(id).second) {
                    part.inputs.push_back(id);
                }
            });
        }
    }
    for (auto& part : made.parts) {
        for (const auto op : part.ops) {
            for (const auto id : g.op(op).outputs) {
                if (id != TensorId::none && (crosses[index(id)] || g.tensor(id).is_output)) {
                    part.outputs.push_back(id);
                }
            }
        }
    }
    // An output of the model that is a constant is given by the last part.
    for (const auto id : g.outputs()) {
        if (plan_.constants[index(id)] != nullptr) {
            auto& last = made.parts.back().outputs;
            if (std::find(last.begin(), last.end(), id) == last.end()) {
                last.push_back(id);
            }
        }
    }
    // A part whose outputs nobody reads shows all the same what it makes.
    for (auto& part : made.parts) {
        for (std::size_t i = 0; part.outputs.empty() && i < part.ops.size(); ++i) {
            for (const auto id : g.op(part.ops[part.ops.size() - 1 - i]).outputs) {
                if (id != TensorId::none) {
                    part.outputs.push_back(id);
                }
            }
        }
    }
}

std::optional<std::uint64_t> Ops::needs(std::span<const std::size_t> places,
                                        const PartitionCosts& costs) const {
    if (!costs.tensor) {
        return std::nullopt;
    }
    constexpr auto stays = nowhere;
    std::unordered_map<TensorId, std::size_t> last;
    std::unordered_set<TensorId> made;
    std::unordered_set<const Constant*> held;
    const std::unordered_set<std::size_t> inside(places.begin(), places.end());
    std::uint64_t constants_held = 0;
    bool known = true;
    const auto size = [&](TensorId id) {
        const auto bytes = costs.tensor(id);
        known = known && bytes.has_value();
        return bytes.value_or(0);
    };
    for (const auto place : places) {
        for (const auto* constant : constants(place)) {
            constants_held += held.insert(constant).second ? constant->stored_bytes() : 0;
        }
        for (const auto id : reads(place)) {
            last[id] = place;
        }
        for (const auto id : graph().op(order_[place]).outputs) {
            if (id != TensorId::none) {
                made.insert(id);
            }
        }
    }
    std::uint64_t now = 0;
    for (const auto& [id, at] : last) {
        now += made.contains(id) ? 0 : size(id);
    }
    for (const auto id : made) {
        const auto& tensor = graph().tensor(id);
        if (tensor.is_output ||
            std::any_of(tensor.uses.begin(), tensor.uses.end(),
                        [&](const Use& use) { return !inside.contains(place_[index(use.op)]); })) {
            last[id] = stays;
        }
    }
    auto most = now;
    for (const auto place : places) {
        for (const auto id : graph().op(order_[place]).outputs) {
            now += id != TensorId::none && last.contains(id) ? size(id) : 0;
        }
        most = std::max(most, now);
        for (const auto id : reads(place)) {
            now -= last.at(id) == place ? size(id) : 0;
        }
    }
    return known ? std::optional(most + constants_held) : std::nullopt;
}

}  // namespace trocar::partitioning
