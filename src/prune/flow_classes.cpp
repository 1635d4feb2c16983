#include <fmt/format.h>

#include <algorithm>

#include "prune/flow.h"
#include "util/elements.h"

// Classes of channels, and the constants that hold them.
namespace trocar::pruning {

// --- Classes ---------------------------------------------------------------------------------

Atom Flow::find(Atom atom) const {
    while (parent_[atom] != atom) {
        parent_[atom] = parent_[parent_[atom]];
        atom = parent_[atom];
    }
    return atom;
}
Atom Flow::fresh_atom() {
    parent_.push_back(static_cast<Atom>(parent_.size()));
    return parent_.back();
}
Axis Flow::fresh(std::size_t count) {
    auto made = std::make_shared<std::vector<Atom>>(count);
    std::generate(made->begin(), made->end(), [this] { return fresh_atom(); });
    return made;
}
Axis Flow::fixed(std::size_t count, const std::string& why) {
    const auto one = fresh_atom();
    why_[one] = why;
    return std::make_shared<std::vector<Atom>>(count, one);
}
void Flow::unite(Atom a, Atom b) {
    a = find(a);
    b = find(b);
    if (a == b) {
        return;
    }
    parent_[b] = a;
    if (const auto at = why_.find(b); at != why_.end()) {
        why_.emplace(a, at->second);
        why_.erase(at);
    }
}
void Flow::unite(const Axis& a, const Axis& b) {
    for (std::size_t i = 0; i < a->size(); ++i) {
        unite((*a)[i], (*b)[i]);
    }
}
void Flow::unite_across(const Axis& list, std::size_t groups) {
    const auto each = list->size() / groups;
    for (std::size_t i = each; i < list->size(); ++i) {
        unite((*list)[i % each], (*list)[i]);
    }
}
const std::string& Flow::why(Atom atom) const {
    static const std::string none;
    const auto at = why_.find(find(atom));
    return at == why_.end() ? none : at->second;
}
void Flow::freeze(const Axis& list, const std::string& why) {
    if (list != nullptr) {
        for (const auto atom : *list) {
            why_.emplace(find(atom), why);
        }
    }
}
void Flow::freeze_tensor(TensorId id, const std::string& why) {
    for (const auto& axis : tensors_[index(id)]) {
        freeze(axis, why);
    }
}
void Flow::freeze_inputs(OpId id, const std::string& why) {
    for (const auto in : op(id).inputs) {
        if (in != TensorId::none) {
            freeze_tensor(in, why);
        }
    }
}
void Flow::freeze_but(TensorId id, std::initializer_list<std::size_t> axes,
                      const std::string& why) {
    for (std::size_t i = 0; id != TensorId::none && i < tensors_[index(id)].size(); ++i) {
        if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
            freeze(tensors_[index(id)][i], why);
        }
    }
}

// --- Constants -------------------------------------------------------------------------------

bool Flow::demand(OpId id, std::size_t slot, std::size_t axis, const Axis& list) {
    const auto read = input(id, slot);
    const auto place = read == TensorId::none ? std::nullopt : constant_behind(model_, read);
    if (!place) {
        return false;
    }
    const auto& value = value_at(graph_, *place);
    const auto at = place->axis(axis);
    if (at >= value.shape().size() || bits(value.dtype()) % 8 != 0 || bits(value.dtype()) == 0 ||
        static_cast<std::size_t>(value.shape()[at]) != list->size()) {
        return false;
    }
    auto& held = constants_[place->tensor];
    held.place = *place;
    held.place.axes.clear();
    held.axes.resize(value.shape().size());
    held.parameter =
        held.parameter ||
        (is_float(value.dtype()) && is_parameter(role(op(id), slot, value.dtype(), value.shape())));
    if (held.axes[at] == nullptr) {
        held.axes[at] = list;
    } else {
        unite(held.axes[at], list);
    }
    demanded_.emplace(id, slot, axis);
    return true;
}

std::optional<Shape> Flow::constant_shape(OpId id, std::size_t slot) const {
    const auto read = input(id, slot);
    const auto place = read == TensorId::none ? std::nullopt : constant_behind(model_, read);
    if (!place) {
        return std::nullopt;
    }
    const auto& stored = value_at(graph_, *place).shape();
    Shape seen(stored.size());
    for (std::size_t i = 0; i < seen.size(); ++i) {
        seen[i] = stored[place->axis(i)];
    }
    return seen;
}

std::optional<std::vector<std::int64_t>> Flow::integers(OpId id, std::size_t slot) const {
    const auto read = input(id, slot);
    const auto place = read == TensorId::none ? std::nullopt : constant_behind(model_, read);
    if (!place || !is_integer(value_at(graph_, *place).dtype()) ||
        value_at(graph_, *place).element_count() > 1024) {
        return std::nullopt;
    }
    const auto numbers = numbers_of(value_at(graph_, *place));
    std::vector<std::int64_t> made;
    std::transform(numbers.begin(), numbers.end(), std::back_inserter(made),
                   [](double x) { return static_cast<std::int64_t>(x); });
    return made;
}
std::optional<std::vector<std::int64_t>> Flow::integers(OpId id, std::size_t slot,
                                                        const char* attribute) const {
    if (input(id, slot) != TensorId::none) {
        return integers(id, slot);
    }
    return op(id).attribute(attribute) != nullptr ? std::optional(op(id).integers(attribute))
                                                  : std::nullopt;
}
std::size_t Flow::axis_of(std::int64_t axis, std::size_t rank) const {
    return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

// A constant that loses places must lose them for all who read it.
void Flow::check_uses(const Held& held) {
    for (std::size_t axis = 0; axis < held.axes.size(); ++axis) {
        std::string where;
        if (held.axes[axis] != nullptr &&
            read_elsewhere(held.place.tensor, held, axis, {}, where)) {
            freeze(held.axes[axis], fmt::format("its constant '{}' is also {}",
                                                graph_.tensor(held.place.tensor).name, where));
        }
    }
}
bool Flow::read_elsewhere(TensorId id, const Held& held, std::size_t axis,
                          const std::vector<std::size_t>& turned, std::string& where) const {
    const auto& tensor = graph_.tensor(id);
    if (tensor.is_output) {
        where = "an output of the model";
        return true;
    }
    for (const auto& use : tensor.uses) {
        const auto& reader = op(use.op);
        where = fmt::format("read by '{}'", label(use.op));
        if (use.slot == Use::captured) {
            return true;
        }
        if (reader.type == "Identity" || reader.type == "Transpose") {
            const auto place = constant_behind(model_, reader.outputs[0]);
            if (!place || place->tensor != held.place.tensor ||
                read_elsewhere(reader.outputs[0], held, axis, place->axes, where)) {
                return true;
            }
            continue;
        }
        auto seen = axis;
        if (!turned.empty()) {
            seen = static_cast<std::size_t>(std::find(turned.begin(), turned.end(), axis) -
                                            turned.begin());
        }
        if (!demanded_.contains({use.op, use.slot, seen})) {
            return true;
        }
    }
    return false;
}

}  // namespace trocar::pruning
