#include "mapping/layout.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "mapping/values.h"

namespace trocar::mapping {

namespace {

using Order = std::vector<std::int64_t>;

Order inverse(const Order& order) {
    Order made(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        made[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    }
    return made;
}
bool is_identity(const Order& order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (order[i] != static_cast<std::int64_t>(i)) {
            return false;
        }
    }
    return true;
}
bool is_order(const Order& order) {
    auto sorted = order;
    std::sort(sorted.begin(), sorted.end());
    return is_identity(sorted);
}

class Tidier {
public:
    Tidier(Graph& graph, const Layout& layout) : graph_(graph), layout_(layout) {}

    void run() {
        // Each step takes a transpose out or moves it further down, so this ends; the bound is for
        // graphs in which it would take long.
        const auto most = 20 * (graph_.op_count() + 10);
        std::size_t steps = 0;
        for (auto op = graph_.first(); op != OpId::none && steps < most;) {
            const auto next = graph_.next(op);
            const auto changed = step(op);
            steps += changed ? 1 : 0;
            op = changed && graph_.contains(op) ? op : next;
        }
        graph_.remove_unused();
    }

private:
    // The order of axes that makes a tensor from another, where a transpose makes it.
    struct Turned {
        TensorId from = TensorId::none;
        Order order;
    };
    std::optional<Turned> turned(TensorId tensor) const {
        if (tensor == TensorId::none) {
            return std::nullopt;
        }
        const auto producer = graph_.tensor(tensor).producer;
        if (producer == OpId::none) {
            return std::nullopt;
        }
        const auto& op = graph_.op(producer);
        if (op.type != layout_.transpose || !op.domain.empty() || op.inputs.empty()) {
            return std::nullopt;
        }
        auto order = order_of(op);
        if (order.empty() || !is_order(order)) {
            return std::nullopt;
        }
        return Turned{op.inputs[0], std::move(order)};
    }

    Order order_of(const Op& op) const {
        if (!layout_.slot) {
            return op.integers(layout_.attribute);
        }
        const auto slot = static_cast<std::size_t>(*layout_.slot);
        if (slot >= op.inputs.size() || op.inputs[slot] == TensorId::none ||
            !graph_.tensor(op.inputs[slot]).constant) {
            return {};
        }
        Order order;
        const auto all = elements(*graph_.tensor(op.inputs[slot]).constant);
        for (const auto& item : *all.items()) {
            order.push_back(item.integer() != nullptr ? *item.integer() : -1);
        }
        return order;
    }
    TensorId order_constant(const Order& order) {
        const std::vector<std::int32_t> numbers(order.begin(), order.end());
        return graph_.add_constant(
            graph_.fresh_name("order"),
            Constant::of(DType::i32, {static_cast<std::int64_t>(order.size())}, numbers));
    }

    bool step(OpId id) {
        const auto& op = graph_.op(id);
        if (op.outputs.empty() || op.outputs[0] == TensorId::none) {
            return false;
        }
        if (op.type == layout_.transpose && op.domain.empty()) {
            return joined(id);
        }
        const auto rule = std::find_if(layout_.through.begin(), layout_.through.end(),
                                       [&](const LayoutOp& one) { return one.type == op.type; });
        return op.domain.empty() && rule != layout_.through.end() && sunk(id, *rule);
    }

    // A transpose of a transpose is one, or none; one of a constant is a constant.
    bool joined(OpId id) {
        const auto output = graph_.op(id).outputs[0];
        const auto last = turned(output);
        if (!last) {
            return false;
        }
        const auto name = graph_.tensor(output).name;
        const auto is_output = graph_.tensor(output).is_output;
        if (const auto& from = graph_.tensor(last->from);
            from.constant && !from.is_input && !is_output) {
            const auto made =
                graph_.add_constant(graph_.fresh_name(name), permuted(*from.constant, last->order));
            graph_.replace_uses(output, made);
            graph_.remove(id);
            return true;
        }
        auto order = last->order;
        auto from = last->from;
        if (const auto first = turned(last->from)) {
            for (auto& axis : order) {
                axis = first->order[static_cast<std::size_t>(axis)];
            }
            from = first->from;
        } else if (!is_identity(order)) {
            return false;
        }
        if (is_identity(order) && !is_output) {
            graph_.replace_uses(output, from);
            graph_.remove(id);
            return true;
        }
        if (from == last->from) {
            return false;
        }
        graph_.set_input(id, 0, from);
        if (layout_.slot) {
            graph_.set_input(id, static_cast<std::size_t>(*layout_.slot), order_constant(order));
        } else {
            graph_.set_attribute(id, layout_.attribute, order);
        }
        return true;
    }

    // op(turn(x), turn(y)) becomes turn(op(x, y)).
    bool sunk(OpId id, const LayoutOp& rule) {
        const auto op = static_cast<const OpSpec&>(graph_.op(id));
        if (op.outputs.size() != 1 || (!rule.keep.empty() && kept(id, rule) != 1)) {
            return false;
        }
        const auto& scales = graph_.tensor(op.outputs[0]).quantization;
        if (scales && scales->scales.size() != 1) {
            return false;  // they belong to an axis
        }
        std::optional<Order> order;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (const auto one = turned(op.inputs[slot])) {
                if (order && *order != one->order) {
                    return false;
                }
                order = one->order;
            }
        }
        if (!order) {
            return false;
        }
        OpSpec made = op;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const auto input = turned_back(op.inputs[slot], slot, *order, rule);
            if (!input) {
                return false;
            }
            made.inputs[slot] = *input;
        }
        if (!rule.axis.empty() && !axes_attribute(made, rule.axis, *order)) {
            return false;
        }
        return put(id, std::move(made), *order);
    }
    std::int64_t kept(OpId id, const LayoutOp& rule) const {
        return graph_.op(id).integer(rule.keep, 1);
    }

    // What the op reads instead once it works in the layout from before the transpose.
    std::optional<TensorId> turned_back(TensorId input, std::size_t slot, const Order& order,
                                        const LayoutOp& rule) {
        if (input == TensorId::none) {
            return input;
        }
        if (const auto one = turned(input)) {
            return one->from;
        }
        const auto& facts = graph_.tensor(input);
        if (!facts.constant || facts.is_input || facts.constant->is_string()) {
            return std::nullopt;
        }
        const auto constant = *facts.constant;
        const auto is = [&](const std::optional<int>& wanted) {
            return wanted && static_cast<std::size_t>(*wanted) == slot;
        };
        const auto rank = order.size();
        if (is(rule.rows)) {
            const auto all = elements(constant);
            const auto& before = *all.items();
            if (before.size() != 2 * rank) {
                return std::nullopt;
            }
            RuleValue::List rows(rank);
            for (std::size_t i = 0; i < rank; ++i) {
                rows[static_cast<std::size_t>(order[i])] =
                    RuleValue::list({before[2 * i], before[2 * i + 1]});
            }
            return graph_.add_constant(
                graph_.fresh_name(facts.name),
                constant_of(RuleValue::list(std::move(rows)), constant.dtype()));
        }
        if (is(rule.axes) || is(rule.pairs) ||
            std::count(rule.sizes.begin(), rule.sizes.end(), static_cast<int>(slot)) > 0) {
            auto all = elements(constant);
            auto items = *all.items();
            if (is(rule.axes)) {
                for (auto& item : items) {
                    auto axis = item.integer() != nullptr ? *item.integer() : -1;
                    axis += axis < 0 ? static_cast<std::int64_t>(rank) : 0;
                    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) {
                        return std::nullopt;
                    }
                    item = order[static_cast<std::size_t>(axis)];
                }
            } else if (!items.empty()) {
                const auto groups = is(rule.pairs) ? std::size_t{2} : std::size_t{1};
                if (items.size() != groups * rank) {
                    return std::nullopt;
                }
                const auto before = items;
                for (std::size_t i = 0; i < items.size(); ++i) {
                    const auto at = static_cast<std::size_t>(order[i % rank]);
                    items[i / rank * rank + at] = before[i];
                }
            }
            return graph_.add_constant(
                graph_.fresh_name(facts.name),
                constant_of(RuleValue::list(std::move(items)), constant.dtype()));
        }
        if (constant.element_count() == 1) {
            return input;
        }
        // Broadcast from the last axis on.
        auto shape = constant.shape();
        if (shape.size() > rank || constant.is_sparse()) {
            return std::nullopt;
        }
        shape.insert(shape.begin(), rank - shape.size(), 1);
        const auto full =
            Constant::view(constant.dtype(), shape, constant.bytes(), constant.owner());
        return graph_.add_constant(graph_.fresh_name(facts.name), permuted(full, inverse(order)));
    }

    static bool axes_attribute(OpSpec& op, const std::string& name, const Order& order) {
        const auto rank = static_cast<std::int64_t>(order.size());
        const auto turn = [&](std::int64_t axis) -> std::optional<std::int64_t> {
            axis += axis < 0 ? rank : 0;
            return axis < 0 || axis >= rank ? std::nullopt
                                            : std::optional(order[static_cast<std::size_t>(axis)]);
        };
        for (auto& attribute : op.attributes) {
            if (attribute.name != name) {
                continue;
            }
            if (auto* axis = std::get_if<std::int64_t>(&attribute.value)) {
                const auto turned = turn(*axis);
                if (turned) {
                    *axis = *turned;
                }
                return turned.has_value();
            }
            if (auto* axes = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
                for (auto& axis : *axes) {
                    const auto turned = turn(axis);
                    if (!turned) {
                        return false;
                    }
                    axis = *turned;
                }
                return true;
            }
        }
        return false;  // what it is by default depends on the layout
    }

    bool put(OpId id, OpSpec made, const Order& order) {
        const auto output = made.outputs[0];
        const auto type = graph_.tensor(output).type;
        Type before = type;
        if (type.dims && type.dims->size() == order.size()) {
            for (std::size_t i = 0; i < order.size(); ++i) {
                (*before.dims)[static_cast<std::size_t>(order[i])] = (*type.dims)[i];
            }
        } else {
            before.dims.reset();
        }
        const auto inner =
            graph_.add_tensor(graph_.fresh_name(graph_.tensor(output).name + "/turned"), before);
        graph_.set_quantization(inner, graph_.tensor(output).quantization);
        OpSpec turn;
        turn.type = layout_.transpose;
        turn.name = made.name + "/" + layout_.transpose;
        turn.origin = made.origin;
        turn.metadata = made.metadata;
        made.outputs = {inner};
        // The old op gives its output up to the transpose that now makes it.
        graph_.insert_before(id, std::move(made));
        turn.inputs = {inner};
        if (layout_.slot) {
            turn.inputs.resize(static_cast<std::size_t>(*layout_.slot), TensorId::none);
            turn.inputs.push_back(order_constant(order));
        } else {
            turn.attributes = {{layout_.attribute, order, {}, {}}};
        }
        graph_.replace(id, std::move(turn));
        return true;
    }

    Graph& graph_;
    const Layout& layout_;
};

}  // namespace

std::size_t count_transposes(const Graph& graph, const Layout& layout) {
    std::size_t count = 0;
    for (const auto op : graph.ops()) {
        count += graph.op(op).type == layout.transpose && graph.op(op).domain.empty() ? 1 : 0;
    }
    return count;
}

void tidy_layout(Graph& graph, const Layout& layout) {
    if (layout.transpose.empty()) {
        return;
    }
    auto tidied = graph.clone();
    Tidier(tidied, layout).run();
    if (count_transposes(tidied, layout) <= count_transposes(graph, layout)) {
        graph = std::move(tidied);
    }
}

}  // namespace trocar::mapping
