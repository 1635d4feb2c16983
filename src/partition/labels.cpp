#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <set>

#include "partition/order.h"
#include "trocar/counting.h"
#include "trocar/error.h"
#include "util/op_label.h"

namespace trocar {

namespace {

using partitioning::nowhere;
using partitioning::Ops;

constexpr int anywhere = -1;

// Takes ops that are ready, device by device.
class Taking {
public:
    Taking(const Ops& ops, const std::vector<int>& labels)
        : ops_(ops), labels_(labels), waits_(ops.size()) {
        for (std::size_t i = 0; i < ops.size(); ++i) {
            waits_[i] = ops.waits(i);
            if (waits_[i] == 0) {
                ready_[labels[i]].insert(i);
            }
        }
    }

    bool done() const {
        return std::all_of(ready_.begin(), ready_.end(),
                           [](const auto& one) { return one.second.empty(); });
    }
    std::vector<int> choices() const {
        std::vector<int> all;
        for (const auto& [label, ops] : ready_) {
            if (label != anywhere && !ops.empty()) {
                all.push_back(label);
            }
        }
        return all;
    }
    // All that can run on a device now, and what becomes ready by that.
    std::vector<std::size_t> take(int label) {
        std::vector<std::size_t> taken;
        for (;;) {
            auto* from = &ready_[label];
            from = from->empty() ? &ready_[anywhere] : from;
            if (from->empty()) {
                return taken;
            }
            const auto one = *from->begin();
            from->erase(from->begin());
            taken.push_back(one);
            for (const auto reader : ops_.readers(one)) {
                if (--waits_[reader] == 0) {
                    ready_[labels_[reader]].insert(reader);
                }
            }
        }
    }

private:
    const Ops& ops_;
    const std::vector<int>& labels_;
    std::vector<std::size_t> waits_;
    std::map<int, std::set<std::size_t>> ready_;
};

struct Labelled {
    std::vector<std::vector<std::size_t>> parts;
    std::vector<int> labels;
};

// From a first device on, always all that can run, then the device on which most can.
Labelled greedy(const Ops& ops, const std::vector<int>& labels, int first) {
    Labelled made;
    Taking taking(ops, labels);
    int label = first;
    while (!taking.done()) {
        if (!made.parts.empty()) {
            const auto choices = taking.choices();
            std::size_t best = 0;
            label = choices.empty() ? label : choices.front();
            for (const auto choice : choices.size() > 1 ? choices : std::vector<int>{}) {
                auto ahead = taking;
                if (const auto count = ahead.take(choice).size(); count > best) {
                    best = count;
                    label = choice;
                }
            }
        }
        auto taken = taking.take(label);
        if (taken.empty()) {
            return {};  // nothing can begin on this device
        }
        made.parts.push_back(std::move(taken));
        made.labels.push_back(label);
    }
    return made;
}

Labelled fewest(const Ops& ops, const std::vector<int>& labels, std::size_t devices) {
    Labelled best;
    for (std::size_t first = 0; first < devices; ++first) {
        auto made = greedy(ops, labels, static_cast<int>(first));
        if (!made.parts.empty() && (best.parts.empty() || made.parts.size() < best.parts.size())) {
            best = std::move(made);
        }
    }
    return best;
}

// Does the op compute with constants alone?
std::vector<bool> derived_ops(const Ops& ops) {
    std::vector<bool> derived(ops.size(), false);
    std::map<OpId, std::size_t> place;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        place[ops.op(i)] = i;
        const auto reads = ops.reads(i);
        derived[i] = !ops.graph().op(ops.op(i)).inputs.empty() &&
                     std::all_of(reads.begin(), reads.end(), [&](TensorId id) {
                         const auto at = place.find(ops.graph().tensor(id).producer);
                         return at != place.end() && derived[at->second];
                     });
    }
    return derived;
}

// Weights that an op reads: what must not be anywhere else.
std::vector<const Constant*> weights(const Ops& ops, std::size_t place) {
    std::vector<const Constant*> all;
    const auto& op = ops.graph().op(ops.op(place));
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const auto* constant = op.inputs[slot] == TensorId::none
                                   ? nullptr
                                   : ops.plan().constants[index(op.inputs[slot])];
        // A number or two is no secret of a layer.
        if (constant != nullptr && constant->element_count() > 2 &&
            is_parameter(
                role(op, slot, constant->dtype(), constant->shape(), ops.model().dialect))) {
            all.push_back(constant);
        }
    }
    // What bodies read from outside may be anything there.
    for (const auto id : op.captures) {
        const auto* constant = ops.plan().constants[index(id)];
        if (constant != nullptr && constant->element_count() > 2 && is_float(constant->dtype())) {
            all.push_back(constant);
        }
    }
    return all;
}

}  // namespace

std::string op_name(const Graph& graph, OpId op) {
    return op_label(graph, op);
}

Partition partition_by_devices(const Model& model, const std::vector<DeviceRule>& rules,
                               const PartitionCosts& costs) {
    Ops ops(model);
    std::vector<std::string> devices;
    for (const auto& rule : rules) {
        if (std::find(devices.begin(), devices.end(), rule.device) == devices.end()) {
            devices.push_back(rule.device);
        }
    }
    if (devices.empty()) {
        throw Error(Fault::usage, "no device is named");
    }
    std::vector<int> labels(ops.size(), anywhere);
    for (std::size_t i = 0; i < ops.size(); ++i) {
        for (const auto& rule : rules) {
            if (rule.ops(model.graph, ops.op(i))) {
                labels[i] = static_cast<int>(
                    std::find(devices.begin(), devices.end(), rule.device) - devices.begin());
                break;
            }
        }
    }
    auto made = fewest(ops, labels, devices.size());
    std::vector<std::string> names;
    for (const auto label : made.labels) {
        names.push_back(devices[static_cast<std::size_t>(label)]);
    }
    auto partition = ops.finish(std::move(made.parts), names, costs);
    for (const auto& part : partition.parts) {
        for (const auto id : part.ops) {
            const bool chosen = std::any_of(rules.begin(), rules.end(), [&](const auto& rule) {
                return rule.ops(model.graph, id);
            });
            if (!chosen) {
                partition.joined.emplace_back(id, "no device was named for it");
            }
        }
    }
    return partition;
}

Partition partition_private(const Model& model, const Selector& chosen,
                            const PartitionCosts& costs) {
    Ops ops(model);
    constexpr int hidden = 0;
    constexpr int open = 1;
    std::vector<int> labels(ops.size(), open);
    std::map<OpId, std::size_t> place;
    std::map<const Constant*, std::vector<std::size_t>> readers;
    std::deque<std::size_t> work;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        place[ops.op(i)] = i;
        for (const auto* constant : weights(ops, i)) {
            readers[constant].push_back(i);
        }
        if (chosen(model.graph, ops.op(i))) {
            labels[i] = hidden;
            work.push_back(i);
        }
    }
    if (work.empty()) {
        throw Error(Fault::usage, "no op that runs is chosen to stay private");
    }
    const auto derived = derived_ops(ops);
    std::vector<std::pair<OpId, std::string>> joined;
    const auto join = [&](std::size_t i, std::string why) {
        if (labels[i] == open) {
            labels[i] = hidden;
            work.push_back(i);
            joined.emplace_back(ops.op(i), std::move(why));
        }
    };
    while (!work.empty()) {
        const auto one = work.front();
        work.pop_front();
        const auto name = op_label(model.graph, ops.op(one));
        for (const auto id : ops.reads(one)) {
            const auto at = place.find(model.graph.tensor(id).producer);
            if (at != place.end() && derived[at->second]) {
                join(at->second, fmt::format("it makes weights of '{}'", name));
            }
        }
        for (const auto* constant : weights(ops, one)) {
            for (const auto other : readers[constant]) {
                join(other, fmt::format("it has weights of '{}' too", name));
            }
        }
        if (derived[one]) {
            for (const auto reader : ops.readers(one)) {
                join(reader, fmt::format("it reads the weights that '{}' makes", name));
            }
        }
    }
    auto made = fewest(ops, labels, 2);
    std::vector<std::string> names;
    for (const auto label : made.labels) {
        names.emplace_back(label == hidden ? "private" : "public");
    }
    auto partition = ops.finish(std::move(made.parts), names, costs);
    partition.joined = std::move(joined);
    return partition;
}

}  // namespace trocar
