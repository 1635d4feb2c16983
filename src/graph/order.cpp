// The order of ops: a linked list whose nodes carry ascending labels, so that "which comes first"
// is a comparison. Labels are spread out when an insertion finds no room (Dietz and Sleator).
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "graph/graph_edit.h"
#include "trocar/error.h"

namespace trocar {

namespace {
constexpr std::uint64_t step = std::uint64_t{1} << 32;
constexpr std::uint64_t middle = std::uint64_t{1} << 62;
constexpr std::uint64_t top = std::uint64_t{1} << 63;
}  // namespace

void GraphEdit::relabel_all() {
    auto at = middle;
    const auto gap = std::max<std::uint64_t>(2, std::min(step, (top - middle) / (g.op_count_ + 2)));
    for (auto op = g.first_; op != OpId::none; op = g.next(op)) {
        g.ops_[index(op)].label = at;
        at += gap;
    }
}

void GraphEdit::make_room_after(OpId at) {
    const auto base = label(at);
    std::uint64_t count = 1;
    auto node = g.next(at);
    while (node != OpId::none && label(node) - base <= count * count) {
        ++count;
        node = g.next(node);
    }
    const auto end = node != OpId::none ? label(node) : base + (count + 1) * step;
    if (end > top) {
        relabel_all();
        return;
    }
    const auto gap = (end - base) / count;
    auto next = base + gap;
    for (auto op = g.next(at); op != node; op = g.next(op)) {
        g.ops_[index(op)].label = next;
        next += gap;
    }
}

void GraphEdit::link_between(OpId op, OpId before, OpId after) {
    if (before == OpId::none && after == OpId::none) {
        g.ops_[index(op)].label = middle;
    } else if (after == OpId::none) {
        if (label(before) > top) {
            relabel_all();
        }
        g.ops_[index(op)].label = label(before) + step;
    } else if (before == OpId::none) {
        if (label(after) < step) {
            relabel_all();
        }
        g.ops_[index(op)].label = label(after) - step;
    } else {
        if (label(after) - label(before) < 2) {
            make_room_after(before);
        }
        g.ops_[index(op)].label = label(before) + (label(after) - label(before)) / 2;
    }
    auto& node = g.ops_[index(op)];
    node.previous = before;
    node.next = after;
    (before != OpId::none ? g.ops_[index(before)].next : g.first_) = op;
    (after != OpId::none ? g.ops_[index(after)].previous : g.last_) = op;
}

void GraphEdit::unlink(OpId op) {
    auto& node = g.ops_[index(op)];
    (node.previous != OpId::none ? g.ops_[index(node.previous)].next : g.first_) = node.next;
    (node.next != OpId::none ? g.ops_[index(node.next)].previous : g.last_) = node.previous;
    node.previous = node.next = OpId::none;
}

bool GraphEdit::known_after(TensorId tensor, OpId at) const {
    const auto& t = g.tensors_[index(tensor)].tensor;
    if (t.producer == OpId::none) {
        return t.is_input || t.is_captured || t.constant.has_value();
    }
    return at != OpId::none && label(t.producer) <= label(at);
}

void GraphEdit::order_after(OpId op, OpId producer) {
    if (label(producer) < label(op)) {
        return;
    }
    // What depends on `op` and stands before `producer` moves behind it, in the same order.
    std::vector<OpId> reached{op};
    std::unordered_set<std::uint32_t> seen{static_cast<std::uint32_t>(op)};
    for (std::size_t i = 0; i < reached.size(); ++i) {
        if (reached[i] == producer) {
            throw Error(Fault::usage,
                        fmt::format("{} cannot read an output of {}, which depends on it",
                                    g.describe(op), g.describe(producer)));
        }
        for (const auto output : g.ops_[index(reached[i])].op.outputs) {
            if (output == TensorId::none) {
                continue;
            }
            for (const auto& use : g.tensors_[index(output)].tensor.uses) {
                if (label(use.op) <= label(producer) &&
                    seen.insert(static_cast<std::uint32_t>(use.op)).second) {
                    reached.push_back(use.op);
                }
            }
        }
    }
    std::sort(reached.begin(), reached.end(), [&](OpId a, OpId b) { return label(a) < label(b); });
    auto at = producer;
    for (const auto moved : reached) {
        unlink(moved);
        link_between(moved, at, g.next(at));
        at = moved;
    }
}

}  // namespace trocar
