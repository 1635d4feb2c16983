#include <algorithm>
#include <deque>
#include <unordered_map>

#include "graph/fingerprints.h"
#include "graph/op_meaning.h"
#include "trocar/graph_diff.h"

namespace trocar {

namespace {

using Keys = std::vector<std::uint64_t>;

class DiffMatcher {
public:
    DiffMatcher(const Graph& a, const Graph& b)
        : a_(a),
          b_(b),
          of_a_(a),
          of_b_(b),
          lone_a_(lone(a, of_a_.strong)),
          lone_b_(lone(b, of_b_.strong)) {
        made_.to_b.assign(a.op_limit(), OpId::none);
        made_.to_a.assign(b.op_limit(), OpId::none);
    }

    // From what is surest to what is least sure.
    OpMatches run() {
        const auto strong_a = both(of_a_.strong_forward, of_a_.strong_backward);
        const auto strong_b = both(of_b_.strong_forward, of_b_.strong_backward);
        const auto weak_a = both(of_a_.weak_forward, of_a_.weak_backward);
        const auto weak_b = both(of_b_.weak_forward, of_b_.weak_backward);
        unique(strong_a, strong_b);
        unique(of_a_.strong_forward, of_b_.strong_forward);
        unique(of_a_.strong_backward, of_b_.strong_backward);
        around(of_a_.strong, of_b_.strong);
        unique(weak_a, weak_b);
        unique(names(a_), names(b_));
        grow(true);
        // What is computed twice, in its order: the first with the first.
        in_order(strong_a, strong_b);
        unique(of_a_.weak_forward, of_b_.weak_forward);
        unique(of_a_.weak_backward, of_b_.weak_backward);
        grow(true);
        around(of_a_.weak, of_b_.weak);
        in_order(weak_a, weak_b);
        in_order(of_a_.strong_forward, of_b_.strong_forward);
        // Another type in the same place.
        unique(plain_names(a_), plain_names(b_));
        grow(false);
        return std::move(made_);
    }

private:
    static Keys both(const Keys& x, const Keys& y) {
        Keys made(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            made[i] = mixed(x[i], y[i]);
        }
        return made;
    }
    // By name and type, else by the name of the first output; 0: none.
    static Keys names(const Graph& graph) {
        auto keys = plain_names(graph);
        for (const auto id : graph.ops()) {
            auto& key = keys[index(id)];
            key = key == 0 ? 0
                           : mixed(key, std::hash<std::string>{}(graph.op(id).domain + ":" +
                                                                 graph.op(id).type));
        }
        return keys;
    }
    static Keys plain_names(const Graph& graph) {
        Keys keys(graph.op_limit(), 0);
        for (const auto id : graph.ops()) {
            const auto& op = graph.op(id);
            if (!op.name.empty()) {
                keys[index(id)] = mixed(1, std::hash<std::string>{}(op.name));
            } else if (!op.outputs.empty() && op.outputs[0] != TensorId::none) {
                keys[index(id)] =
                    mixed(2, std::hash<std::string>{}(graph.tensor(op.outputs[0]).name));
            }
        }
        return keys;
    }

    void pair(OpId x, OpId y) {
        made_.to_b[index(x)] = y;
        made_.to_a[index(y)] = x;
        fresh_.push_back(x);
    }
    bool free_a(OpId id) const { return made_.to_b[index(id)] == OpId::none; }
    bool free_b(OpId id) const { return made_.to_a[index(id)] == OpId::none; }

    // Ops whose key no other op that is left has, in both graphs.
    void unique(const Keys& keys_a, const Keys& keys_b, bool beside = false) {
        struct Found {
            OpId a = OpId::none;
            OpId b = OpId::none;
            bool several = false;
        };
        std::unordered_map<std::uint64_t, Found> found;
        for (const auto id : a_.ops()) {
            if (free_a(id) && keys_a[index(id)] != 0) {
                auto& one = found[keys_a[index(id)]];
                one.several = one.several || one.a != OpId::none;
                one.a = id;
            }
        }
        for (const auto id : b_.ops()) {
            if (free_b(id) && keys_b[index(id)] != 0) {
                const auto at = found.find(keys_b[index(id)]);
                if (at != found.end()) {
                    at->second.several = at->second.several || at->second.b != OpId::none;
                    at->second.b = id;
                }
            }
        }
        for (const auto id : a_.ops()) {
            if (!free_a(id)) {
                continue;
            }
            const auto at = found.find(keys_a[index(id)]);
            if (at != found.end() && !at->second.several && at->second.b != OpId::none &&
                at->second.a == id &&
                (!beside || same_weights(id, at->second.b) || touches(id, at->second.b))) {
                pair(id, at->second.b);
            }
        }
    }

    bool same_weights(OpId x, OpId y) const {
        return of_a_.strong[index(x)] == of_b_.strong[index(y)] &&
               of_a_.strong[index(x)] != of_a_.weak[index(x)];
    }
    // Is an op before or behind one matched with the one in the same place of the other?
    bool touches(OpId x, OpId y) const {
        const auto& op_a = a_.op(x);
        const auto& op_b = b_.op(y);
        for (std::size_t i = 0; i < std::min(op_a.inputs.size(), op_b.inputs.size()); ++i) {
            const auto before = producer(a_, op_a.inputs[i]);
            if (before != OpId::none && !free_a(before) &&
                made_.to_b[index(before)] == producer(b_, op_b.inputs[i])) {
                return true;
            }
        }
        for (std::size_t i = 0; i < std::min(op_a.outputs.size(), op_b.outputs.size()); ++i) {
            if (op_a.outputs[i] == TensorId::none || op_b.outputs[i] == TensorId::none) {
                continue;
            }
            const auto& uses = b_.tensor(op_b.outputs[i]).uses;
            for (const auto& use : a_.tensor(op_a.outputs[i]).uses) {
                const auto other = made_.to_b[index(use.op)];
                if (other != OpId::none &&
                    std::find(uses.begin(), uses.end(), Use{other, use.slot}) != uses.end()) {
                    return true;
                }
            }
        }
        return false;
    }

    // By what is a few steps around an op, the widest first.
    void around(const Keys& keys_a, const Keys& keys_b) {
        std::vector<Keys> near_a{keys_a};
        std::vector<Keys> near_b{keys_b};
        for (int step = 0; step < 3; ++step) {
            near_a.push_back(of_a_.widened(near_a.back()));
            near_b.push_back(of_b_.widened(near_b.back()));
        }
        for (std::size_t step = near_a.size(); step-- > 0;) {
            // What is alike in many places must stand beside something that is matched, or have
            // the same weights.
            unique(near_a[step], near_b[step], true);
            grow(true);
        }
    }

    // One after the other, and after each what follows from it.
    void in_order(const Keys& keys_a, const Keys& keys_b) {
        std::unordered_map<std::uint64_t, std::deque<OpId>> left;
        for (const auto id : b_.ops()) {
            if (free_b(id)) {
                left[keys_b[index(id)]].push_back(id);
            }
        }
        for (const auto id : a_.ops()) {
            const auto at = free_a(id) ? left.find(keys_a[index(id)]) : left.end();
            if (at == left.end()) {
                continue;
            }
            auto& queue = at->second;
            while (!queue.empty() && !free_b(queue.front())) {
                queue.pop_front();
            }
            if (!queue.empty()) {
                pair(id, queue.front());
                grow(true);
            }
        }
    }

    // From ops that are matched to those around them. `same`: only ops of the same type; else such
    // as are left alone between two that are matched.
    void grow(bool same) {
        if (!same) {
            for (const auto id : a_.ops()) {
                if (!free_a(id)) {
                    fresh_.push_back(id);
                }
            }
        }
        while (!fresh_.empty()) {
            const auto x = fresh_.front();
            fresh_.pop_front();
            const auto y = made_.to_b[index(x)];
            const auto& op_a = a_.op(x);
            const auto& op_b = b_.op(y);
            const bool exchanged = are_exchanged(op_a, op_b);
            for (std::size_t i = 0; i < std::min(op_a.inputs.size(), op_b.inputs.size()); ++i) {
                follow(producer(a_, op_a.inputs[i]),
                       producer(b_, op_b.inputs[exchanged ? 1 - i : i]), same);
            }
            for (std::size_t i = 0; i < std::min(op_a.outputs.size(), op_b.outputs.size()); ++i) {
                readers(op_a.outputs[i], op_b.outputs[i], same);
            }
        }
    }

    // Do the inputs of two ops fit better crosswise? Where their order tells, by names alone.
    bool are_exchanged(const Op& x, const Op& y) const {
        if (x.inputs.size() != 2 || y.inputs.size() != 2) {
            return false;
        }
        if (!commutes(x) || !commutes(y)) {
            const auto named_alike = [&](std::size_t i, std::size_t j) {
                const auto from = producer(a_, x.inputs[i]);
                const auto to = producer(b_, y.inputs[j]);
                return from != OpId::none && to != OpId::none && !a_.op(from).name.empty() &&
                       a_.op(from).name == b_.op(to).name;
            };
            return named_alike(0, 1) && named_alike(1, 0) && !named_alike(0, 0);
        }
        const auto fit = [&](std::size_t i, std::size_t j) {
            const auto from = producer(a_, x.inputs[i]);
            const auto to = producer(b_, y.inputs[j]);
            if (from == OpId::none || to == OpId::none) {
                return from == to ? 1 : -2;
            }
            if (!free_a(from) || !free_b(to)) {
                return made_.to_b[index(from)] == to ? 2 : -2;
            }
            return (of_a_.weak[index(from)] == of_b_.weak[index(to)] ? 1 : 0) +
                   (of_a_.strong[index(from)] == of_b_.strong[index(to)] ? 1 : 0);
        };
        return fit(0, 1) + fit(1, 0) > fit(0, 0) + fit(1, 1);
    }

    static OpId producer(const Graph& graph, TensorId id) {
        return id == TensorId::none ? OpId::none : graph.tensor(id).producer;
    }
    static bool alike(const Op& x, const Op& y) { return x.type == y.type && x.domain == y.domain; }
    // The first input and the first output stand between matched ops.
    bool same_place(OpId x, OpId y) const {
        const auto& op_a = a_.op(x);
        const auto& op_b = b_.op(y);
        if (op_a.inputs.empty() || op_b.inputs.empty() || op_a.outputs.empty() ||
            op_b.outputs.empty() || op_a.outputs[0] == TensorId::none ||
            op_b.outputs[0] == TensorId::none) {
            return false;
        }
        const auto before_a = producer(a_, op_a.inputs[0]);
        const auto before_b = producer(b_, op_b.inputs[0]);
        const bool before = before_a == OpId::none ? before_b == OpId::none
                                                   : made_.to_b[index(before_a)] == before_b;
        const auto& uses_a = a_.tensor(op_a.outputs[0]).uses;
        const auto& uses_b = b_.tensor(op_b.outputs[0]).uses;
        if (uses_a.empty() || uses_b.empty()) {
            return before && a_.tensor(op_a.outputs[0]).is_output &&
                   b_.tensor(op_b.outputs[0]).is_output;
        }
        return before && std::any_of(uses_a.begin(), uses_a.end(), [&](const Use& use) {
                   const auto other = made_.to_b[index(use.op)];
                   return other != OpId::none &&
                          std::any_of(uses_b.begin(), uses_b.end(), [&](const Use& one) {
                              return one.op == other && one.slot == use.slot;
                          });
               });
    }
    // Is there one other op with the very weights of `x`, though names do not say that it is `y`?
    bool has_twin_elsewhere(OpId x, OpId y) const {
        const auto key = of_a_.strong[index(x)];
        if (key == of_b_.strong[index(y)] || key == of_a_.weak[index(x)] ||
            (!a_.op(x).name.empty() && a_.op(x).name == b_.op(y).name)) {
            return false;
        }
        const auto own = lone_a_.find(key);
        const auto twin = lone_b_.find(key);
        return own != lone_a_.end() && own->second == x && twin != lone_b_.end() &&
               twin->second != OpId::none && free_b(twin->second);
    }
    // Ops by their strong hashes; none: several have it.
    static std::unordered_map<std::uint64_t, OpId> lone(const Graph& graph, const Keys& keys) {
        std::unordered_map<std::uint64_t, OpId> all;
        for (const auto id : graph.ops()) {
            const auto [at, first] = all.emplace(keys[index(id)], id);
            at->second = first ? id : OpId::none;
        }
        return all;
    }

    void follow(OpId x, OpId y, bool same) {
        if (x == OpId::none || y == OpId::none || !free_a(x) || !free_b(y)) {
            return;
        }
        if (has_twin_elsewhere(x, y)) {
            return;
        }
        if (same ? alike(a_.op(x), b_.op(y)) : same_place(x, y)) {
            pair(x, y);
        }
    }
    // Readers of a tensor that differ in type or slot from all others of it.
    void readers(TensorId from_a, TensorId from_b, bool same) {
        if (from_a == TensorId::none || from_b == TensorId::none) {
            return;
        }
        constexpr std::size_t most = 64;  // of a tensor that very many read, nothing follows
        const auto& uses_a = a_.tensor(from_a).uses;
        const auto& uses_b = b_.tensor(from_b).uses;
        if (uses_a.size() > most || uses_b.size() > most) {
            return;
        }
        for (const auto& use : uses_a) {
            if (!free_a(use.op)) {
                continue;
            }
            const auto fits = [&](const Use& one, const Graph& graph, bool is_free) {
                return is_free && one.slot == use.slot &&
                       (!same || alike(graph.op(one.op), a_.op(use.op)));
            };
            const auto own = std::count_if(uses_a.begin(), uses_a.end(), [&](const Use& one) {
                return fits(one, a_, free_a(one.op));
            });
            OpId other = OpId::none;
            std::size_t others = 0;
            for (const auto& one : uses_b) {
                if (fits(one, b_, free_b(one.op))) {
                    other = one.op;
                    ++others;
                }
            }
            if (own == 1 && others == 1) {
                follow(use.op, other, same);
            }
        }
    }

    const Graph& a_;
    const Graph& b_;
    Fingerprints of_a_;
    Fingerprints of_b_;
    std::unordered_map<std::uint64_t, OpId> lone_a_;
    std::unordered_map<std::uint64_t, OpId> lone_b_;
    OpMatches made_;
    std::deque<OpId> fresh_;
};

}  // namespace

OpMatches match_ops(const Graph& a, const Graph& b) {
    return DiffMatcher(a, b).run();
}

}  // namespace trocar
