#include "run/deployed_map.h"

#include <algorithm>

#include "run/twins.h"

namespace trocar {

namespace {

// The name of a blocked op is that of the tensor it stands for, with this behind.
constexpr std::string_view blocked_suffix = "_nchwc";

// Ops that an engine leaves out rather than computes.
bool passes_through(const Op& op) {
    return op.domain.empty() && (op.type == "Identity" || op.type == "Dropout");
}

bool same_type(const Op& a, const Op& b) {
    return a.type == b.type && a.domain == b.domain;
}

// Finds for each tensor of the deployed graph the model's tensor with the same value, then shares
// out the model's ops: what lies between an op's outputs and what other deployed ops give is
// computed by it.
class Mapper {
public:
    Mapper(const Model& model, Deployed& to)
        : source_(model.graph),
          made_(to.model.graph),
          to_(to),
          plan_(make_plan(model, {})),
          twins_(find_twins(source_, plan_)) {}

    void map() {
        to_.sources.resize(made_.op_limit());
        to_.source_tensors.assign(made_.tensor_limit(), TensorId::none);
        owner_.assign(source_.op_limit(), OpId::none);
        given_.assign(source_.tensor_limit(), false);
        giver_.assign(source_.tensor_limit(), OpId::none);
        unfolded_.assign(made_.tensor_limit(), TensorId::none);
        for (const auto id : made_.inputs()) {
            link(id, named(made_.tensor(id).name));
        }
        for (const auto id : made_.ops()) {
            map_outputs(id);
        }
        own_by_name();
        for (const auto id : made_.ops()) {
            walk(id);
        }
        own_twins();
        share_out();
    }

private:
    TensorId named(std::string_view name) const {
        return source_.find_tensor(name).value_or(TensorId::none);
    }
    TensorId source_of(TensorId made) const {
        return made == TensorId::none ? TensorId::none : to_.source_tensors[index(made)];
    }
    TensorId twin(TensorId source) const {
        return source == TensorId::none ? source : twins_[index(source)];
    }
    bool equal(TensorId a, TensorId b) const { return a != TensorId::none && twin(a) == twin(b); }

    // `made` has the value of `source`. The first one to have it computes it.
    void link(TensorId made, TensorId source, OpId by = OpId::none) {
        to_.source_tensors[index(made)] = source;
        if (source == TensorId::none) {
            return;
        }
        const auto producer = source_.tensor(source).producer;
        if (by != OpId::none && producer != OpId::none && !given_[index(twin(source))] &&
            owner_[index(producer)] == OpId::none) {
            owner_[index(producer)] = by;
        }
        if (!given_[index(twin(source))]) {
            given_[index(twin(source))] = true;
            giver_[index(twin(source))] = by;
        }
    }

    void map_outputs(OpId id) {
        const auto& op = made_.op(id);
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            const auto output = op.outputs[slot];
            if (output != TensorId::none) {
                auto source = named(made_.tensor(output).name);
                if (source == TensorId::none) {
                    source = unnamed_output(op, slot);
                }
                link(output, source, id);
            }
        }
        unfold(id);
    }

    // The value of an output that has a name of the engine's making.
    TensorId unnamed_output(const Op& op, std::size_t slot) const {
        const auto input = op.inputs.empty() ? TensorId::none : op.inputs[0];
        if (is_blocked_domain(op) && op.type == "ReorderInput") {
            return op.integer("channels_last", 0) == 0
                       ? source_of(input)
                       : after(source_of(input), [](const Op& o) { return o.type == "Transpose"; });
        }
        if (is_blocked_domain(op) && op.name.ends_with(blocked_suffix)) {
            const std::string_view name = op.name;
            return with_sum_and_activation(
                op, named(name.substr(0, name.size() - blocked_suffix.size())));
        }
        if (input != TensorId::none && unfolded_[index(input)] != TensorId::none) {
            return op.type == "Reshape" ? unfolded_[index(input)] : TensorId::none;
        }
        const auto same = find_op(op);
        if (same != OpId::none && source_.op(same).outputs.size() > slot && reads_alike(op, same)) {
            return source_.op(same).outputs[slot];
        }
        if (const auto last = last_of_fusion(op); last != TensorId::none) {
            return last;
        }
        return after(
            source_of(input), [&](const Op& o) { return same_type(o, op); }, &op);
    }

    // The source op of the same name and type.
    OpId find_op(const Op& op) const {
        const auto found = op.name.empty() ? std::nullopt : source_.find_op(op.name);
        return found && same_type(source_.op(*found), op) ? *found : OpId::none;
    }

    // A fusion is named after the last of its ops: "/swish/Mul/QuickGeluFusion/".
    TensorId last_of_fusion(const Op& op) const {
        const auto end = op.name.find_last_not_of('/');
        const auto slash = op.name.rfind('/', end);
        if (slash == std::string::npos || op.outputs.size() != 1 ||
            !std::string_view(op.name).substr(0, end + 1).ends_with("Fusion")) {
            return TensorId::none;
        }
        const auto last = source_.find_op(std::string_view(op.name).substr(0, slash));
        return last && source_.op(*last).outputs.size() == 1 ? source_.op(*last).outputs[0]
                                                             : TensorId::none;
    }

    // An op without blocks of its own is given blocked tensors with the block as a further
    // dimension, and what it writes is put back. Such a tensor has no twin in the model; remembers
    // whose elements it holds.
    void unfold(OpId id) {
        const auto& op = made_.op(id);
        const auto input = op.inputs.empty() ? TensorId::none : op.inputs[0];
        const auto output = op.outputs.empty() ? TensorId::none : op.outputs[0];
        if (input == TensorId::none || output == TensorId::none ||
            source_of(output) != TensorId::none) {
            return;
        }
        if (op.type == "Reshape" && find_op(op) == OpId::none) {
            unfolded_[index(output)] = source_of(input);
        } else if (unfolded_[index(input)] != TensorId::none) {
            const auto same = find_op(op);
            if (same != OpId::none) {
                unfolded_[index(output)] = source_.op(same).outputs[0];
                owner_[index(same)] = id;
            }
        }
    }

    // Does the source op read what `op` reads, constants apart?
    bool reads_alike(const Op& op, OpId source) const {
        const auto& other = source_.op(source);
        for (const auto input : op.inputs) {
            const auto wanted = source_of(input);
            if (input == TensorId::none || made_.tensor(input).constant) {
                continue;
            }
            const bool there =
                std::any_of(other.inputs.begin(), other.inputs.end(),
                            [&](TensorId t) { return equal(behind(t), behind(wanted)); });
            if (!there) {
                return false;
            }
        }
        return op.outputs.size() <= other.outputs.size();
    }

    // Through ops that only pass their input on, back to what they were given.
    TensorId behind(TensorId tensor) const {
        while (tensor != TensorId::none) {
            const auto producer = source_.tensor(tensor).producer;
            if (producer == OpId::none || !passes_through(source_.op(producer))) {
                break;
            }
            tensor = source_.op(producer).inputs[0];
        }
        return tensor;
    }

    // What an op that reads `tensor`, or what passes it on, writes. None where it is not the only
    // such op. `like`: it must read what that deployed op reads.
    template <class Wanted>
    TensorId after(TensorId tensor, Wanted&& wanted, const Op* like = nullptr) const {
        auto found = TensorId::none;
        if (tensor == TensorId::none) {
            return found;
        }
        for (const auto& use : source_.tensor(tensor).uses) {
            const auto& op = source_.op(use.op);
            auto next = TensorId::none;
            if (passes_through(op)) {
                next = after(op.outputs[0], wanted, like);
            } else if (use.slot != Use::captured && wanted(op) &&
                       (like == nullptr || reads_alike(*like, use.op))) {
                next = op.outputs[0];
            }
            if (next != TensorId::none && found != TensorId::none && !equal(next, found)) {
                return TensorId::none;
            }
            found = next != TensorId::none ? next : found;
        }
        return found;
    }

    // A blocked convolution is named before a sum is taken into it, and the activation behind that.
    TensorId with_sum_and_activation(const Op& op, TensorId tensor) const {
        const auto sum = op.inputs.size() > 3 ? source_of(op.inputs[3]) : TensorId::none;
        if (op.inputs.size() > 3 && op.inputs[3] != TensorId::none) {
            tensor = after(tensor, [&](const Op& o) {
                return (o.type == "Add" || o.type == "Sum") &&
                       std::any_of(o.inputs.begin(), o.inputs.end(),
                                   [&](TensorId t) { return equal(behind(t), behind(sum)); });
            });
        }
        const auto activation = op.text("activation", "");
        if (tensor == TensorId::none || activation.empty()) {
            return tensor;
        }
        const auto producer = source_.tensor(behind(tensor)).producer;
        if (producer != OpId::none && source_.op(producer).type == activation) {
            return tensor;
        }
        return after(tensor, [&](const Op& o) { return o.type == activation; });
    }

    // Ops whose values are not the model's (a transposition was moved past them) but that are its
    // ops all the same.
    void own_by_name() {
        for (const auto id : made_.ops()) {
            const auto& op = made_.op(id);
            const bool mapped = std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId t) {
                return source_of(t) != TensorId::none;
            });
            const auto same = mapped ? OpId::none : find_op(op);
            if (same != OpId::none && owner_[index(same)] == OpId::none) {
                owner_[index(same)] = id;
            }
        }
    }

    bool is_constant(TensorId source) const {
        if (plan_.constants[index(source)] != nullptr) {
            return true;
        }
        const auto made = made_.find_tensor(source_.tensor(source).name);
        return made && made_.tensor(*made).constant.has_value();
    }

    // Gives `by` the unowned ops between what it writes and what others give.
    void walk(OpId by) {
        const auto& op = made_.op(by);
        std::vector<OpId> open;
        for (const auto output : op.outputs) {
            const auto source = source_of(output);
            const auto root =
                source == TensorId::none ? OpId::none : source_.tensor(source).producer;
            if (root != OpId::none && owner_[index(root)] == by) {
                open.push_back(root);
            }
        }
        while (!open.empty()) {
            const auto at = open.back();
            open.pop_back();
            const auto& reached = source_.op(at);
            for (std::size_t slot = 0; slot < reached.inputs.size(); ++slot) {
                if (!(same_type(reached, op) && became_constant(op, slot))) {
                    reach(reached.inputs[slot], by, open);
                }
            }
            for (const auto captured : reached.captures) {
                reach(captured, by, open);
            }
        }
    }

    // The engine knew at once what this input of the op is.
    bool became_constant(const Op& op, std::size_t slot) const {
        return slot < op.inputs.size() && op.inputs[slot] != TensorId::none &&
               made_.tensor(op.inputs[slot]).constant.has_value();
    }

    void reach(TensorId tensor, OpId by, std::vector<OpId>& open) {
        if (tensor == TensorId::none || given_[index(twin(tensor))] || is_constant(tensor)) {
            return;
        }
        const auto producer = source_.tensor(tensor).producer;
        if (producer != OpId::none && owner_[index(producer)] == OpId::none) {
            owner_[index(producer)] = by;
            open.push_back(producer);
        }
    }

    // What is computed once for several: the op that gives the first gives all.
    void own_twins() {
        for (const auto id : source_.ops()) {
            const auto& op = source_.op(id);
            if (owner_[index(id)] != OpId::none || op.outputs.empty() ||
                op.outputs[0] == TensorId::none) {
                continue;
            }
            const auto producer = source_.tensor(twin(op.outputs[0])).producer;
            if (producer != OpId::none && producer != id) {
                owner_[index(id)] = owner_[index(producer)];
            } else {
                owner_[index(id)] = giver_[index(op.outputs[0])];
            }
        }
    }

    // An op on nothing but constants is done when the engine compiles, unless it is there to be
    // run.
    void share_out() {
        std::vector<bool> fixed(source_.tensor_limit(), false);
        for (const auto id : source_.ops()) {
            const auto& op = source_.op(id);
            const bool on_constants =
                !op.inputs.empty() && op.captures.empty() &&
                std::all_of(op.inputs.begin(), op.inputs.end(), [&](TensorId t) {
                    return t == TensorId::none || fixed[index(t)] || is_constant(t);
                });
            const auto by = owner_[index(id)];
            const bool runs = by != OpId::none && same_type(made_.op(by), op);
            if (by == OpId::none || ((on_constants || passes_through(op)) && !runs)) {
                to_.folded.push_back(id);
                for (const auto output : op.outputs) {
                    if (output != TensorId::none && on_constants) {
                        fixed[index(output)] = true;
                    }
                }
            } else {
                to_.sources[index(by)].push_back(id);
            }
        }
    }

    const Graph& source_;
    const Graph& made_;
    Deployed& to_;
    Plan plan_;
    std::vector<TensorId> twins_;
    std::vector<OpId> owner_;         // by OpId of the model: the deployed op that computes it
    std::vector<bool> given_;         // by TensorId of the model: a deployed tensor has the value
    std::vector<OpId> giver_;         // and the first op that writes it
    std::vector<TensorId> unfolded_;  // by TensorId of the deployed graph: see `unfold`
};

}  // namespace

void map_to_sources(const Model& model, Deployed& deployed) {
    Mapper(model, deployed).map();
}

}  // namespace trocar
