#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "prune/flow.h"
#include "util/elements.h"

// How channels go through ops that move numbers without changing them.
namespace trocar::pruning {

void Flow::concat(OpId id) {
    const auto out = output(id);
    const auto rank = shape(out)->size();
    const auto at = axis_of(op(id).integer("axis", 1), rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
        if (axis != at) {
            same_axis(id, axis, rank, *shape(out));
        }
    }
    std::vector<Atom> all;
    bool any = false;
    for (const auto in : op(id).inputs) {
        const auto& known = shape(in);
        if (!known || known->size() != rank) {
            return freeze_inputs(
                id, fmt::format("the shape of '{}' is not known", graph_.tensor(in).name));
        }
        auto list = channels(in, at);
        any = any || list != nullptr;
        if (list == nullptr) {
            list = fixed(static_cast<std::size_t>((*known)[at]),
                         fmt::format("the channels of '{}' stay", graph_.tensor(in).name));
        }
        all.insert(all.end(), list->begin(), list->end());
    }
    if (any) {
        give(out, at, std::make_shared<const std::vector<Atom>>(std::move(all)));
    }
}

// Axes in and out that have the same product belong together, as few of them as can be.
Axes Flow::reshaped(TensorId from, const Shape& in, const Shape& out, const std::string& by) {
    Axes made(out.size());
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < in.size() && j < out.size()) {
        std::vector<std::size_t> left{i};
        std::vector<std::size_t> right{j};
        auto a = in[i++];
        auto b = out[j++];
        while (a != b) {
            if (a < b && i < in.size()) {
                left.push_back(i);
                a *= in[i++];
            } else if (j < out.size()) {
                right.push_back(j);
                b *= out[j++];
            } else {
                break;
            }
        }
        std::erase_if(left, [&](std::size_t k) { return in[k] == 1; });
        std::erase_if(right, [&](std::size_t k) { return out[k] == 1; });
        std::size_t lists = 0;
        std::size_t carrier = 0;
        for (std::size_t k = 0; k < left.size(); ++k) {
            if (channels(from, left[k]) != nullptr) {
                ++lists;
                carrier = k;
            }
        }
        if (lists == 0) {
            continue;
        }
        const auto list = channels(from, left[carrier]);
        if (lists == 1 && right.size() == 1 && a == b) {
            std::size_t inner = 1;
            for (std::size_t k = carrier + 1; k < left.size(); ++k) {
                inner *= static_cast<std::size_t>(in[left[k]]);
            }
            if (left.size() == 1) {
                made[right[0]] = list;
                continue;
            }
            auto merged = std::make_shared<std::vector<Atom>>(static_cast<std::size_t>(b));
            for (std::size_t k = 0; k < merged->size(); ++k) {
                (*merged)[k] = (*list)[k / inner % list->size()];
            }
            made[right[0]] = std::move(merged);
        } else if (lists == 1 && left.size() == 1 && right.size() > 1 && a == b) {
            // One of the new axes can lose places: heads of attention, or what is in a group.
            const auto chosen = left[0] + 1 == in.size() ? std::size_t{0} : right.size() - 1;
            std::size_t inner = 1;
            for (std::size_t k = chosen + 1; k < right.size(); ++k) {
                inner *= static_cast<std::size_t>(out[right[k]]);
            }
            const auto size = static_cast<std::size_t>(out[right[chosen]]);
            auto parts = std::make_shared<std::vector<Atom>>(size);
            std::vector<bool> known(size, false);
            for (std::size_t k = 0; k < list->size(); ++k) {
                const auto place = k / inner % size;
                if (known[place]) {
                    unite((*parts)[place], (*list)[k]);
                } else {
                    (*parts)[place] = (*list)[k];
                    known[place] = true;
                }
            }
            made[right[chosen]] = std::move(parts);
        } else {
            for (const auto k : left) {
                freeze(channels(from, k), fmt::format("'{}' mixes its places", by));
            }
        }
    }
    // What is left has axes of 1 alone.
    for (std::size_t k = 0; k < in.size(); ++k) {
        if (in[k] == 1) {
            freeze(channels(from, k), "it is one channel");
        }
    }
    return made;
}

// The numbers of a shape that an op is told, where each of them is written.
std::vector<Flow::Written> Flow::written_shape(OpId id) const {
    std::vector<Written> all;
    const auto add = [&](OpId reader, std::size_t slot) {
        if (const auto numbers = integers(reader, slot)) {
            for (std::size_t i = 0; i < numbers->size(); ++i) {
                all.push_back({(*numbers)[i], reader, slot, i});
            }
            return true;
        }
        return false;
    };
    if (op(id).type == "Reshape" && input(id, 1) == TensorId::none) {
        return all;  // an attribute, before version 5
    }
    if (add(id, 1)) {
        return all;
    }
    const auto& told = graph_.tensor(input(id, 1));
    if (told.producer == OpId::none || op(told.producer).type != "Concat" ||
        told.uses.size() != 1) {
        return all;
    }
    const auto maker = told.producer;
    for (std::size_t slot = 0; slot < op(maker).inputs.size(); ++slot) {
        if (!add(maker, slot)) {
            const auto& known = shape(op(maker).inputs[slot]);
            all.resize(all.size() + (known && !known->empty()
                                         ? static_cast<std::size_t>((*known)[0])
                                         : std::size_t{1}));
        }
    }
    return all;
}

void Flow::reshape(OpId id) {
    const auto in = input(id, 0);
    const auto out = output(id);
    if (!shape(in) || element_count(*shape(in)) == 0) {
        return freeze_inputs(id,
                             fmt::format("the shape of '{}' is not known", graph_.tensor(in).name));
    }
    const auto made = reshaped(in, *shape(in), *shape(out), label(id));
    const bool told = op(id).type == "Reshape";
    const auto numbers = told ? written_shape(id) : std::vector<Written>{};
    for (std::size_t axis = 0; axis < made.size(); ++axis) {
        if (made[axis] == nullptr) {
            continue;
        }
        if (told) {
            const auto none = Written{};
            const auto& entry = axis < numbers.size() ? numbers[axis] : none;
            if (!entry.value || numbers.size() != made.size()) {
                freeze(made[axis], fmt::format("the shape that '{}' makes is computed", label(id)));
            } else if (*entry.value == 0 && channels(in, axis) != made[axis]) {
                freeze(made[axis], fmt::format("'{}' takes its size from elsewhere", label(id)));
            } else if (*entry.value > 0) {
                entries_.push_back({entry.op, entry.slot, entry.at, made[axis]});
            }
        }
        give(out, axis, made[axis]);
    }
}

void Flow::transpose(OpId id) {
    const auto rank = shape(output(id))->size();
    auto turned = op(id).integers("perm");
    if (turned.empty()) {
        turned.resize(rank);
        std::iota(turned.rbegin(), turned.rend(), 0);
    }
    for (std::size_t axis = 0; axis < rank && axis < turned.size(); ++axis) {
        give(output(id), axis, channels(input(id, 0), axis_of(turned[axis], rank)));
    }
}

void Flow::gather(OpId id) {
    const auto& data = shape(input(id, 0));
    const auto& picked = shape(input(id, 1));
    if (!data || !picked) {
        return freeze_inputs(id, fmt::format("the shapes of '{}' are not known", label(id)));
    }
    const auto at = axis_of(op(id).integer("axis", 0), data->size());
    freeze_tensor(input(id, 1), fmt::format("'{}' takes it for places", label(id)));
    for (std::size_t axis = 0; axis < data->size(); ++axis) {
        if (axis == at) {
            freeze(channels(input(id, 0), axis), fmt::format("'{}' picks places of it", label(id)));
        } else {
            give(output(id), axis < at ? axis : axis + picked->size() - 1,
                 channels(input(id, 0), axis));
        }
    }
}

void Flow::resize(OpId id) {
    const bool newer = op(id).type == "Resize" && model_.opset() >= 11;
    const auto& all = tensors_[index(input(id, 0))];
    const auto sizes = newer ? integers(id, 3) : std::nullopt;
    std::vector<double> scales;
    if (const auto read = input(id, newer ? 2 : 1); read != TensorId::none) {
        if (const auto place = constant_behind(model_, read)) {
            scales = numbers_of(value_at(graph_, *place));
        }
    }
    const bool some = newer && op(id).attribute("axes") != nullptr;
    for (std::size_t axis = 0; axis < all.size(); ++axis) {
        if (all[axis] == nullptr) {
            continue;
        }
        if (!some && axis < scales.size() && scales[axis] == 1) {
            give(output(id), axis, all[axis]);
        } else if (!some && sizes && axis < sizes->size() &&
                   static_cast<std::size_t>((*sizes)[axis]) == all[axis]->size()) {
            entries_.push_back({id, 3, axis, all[axis]});
            give(output(id), axis, all[axis]);
        } else {
            freeze(all[axis], fmt::format("the sizes that '{}' makes are computed", label(id)));
        }
    }
}

void Flow::pad(OpId id) {
    const auto pads = integers(id, 1, "pads");
    const auto& all = tensors_[index(input(id, 0))];
    const auto rank = shape(output(id))->size();
    for (std::size_t axis = 0; axis < all.size(); ++axis) {
        if (pads && pads->size() == 2 * rank && input(id, 3) == TensorId::none &&
            (*pads)[axis] == 0 && (*pads)[axis + rank] == 0) {
            give(output(id), axis, all[axis]);
        } else {
            freeze(all[axis], fmt::format("'{}' adds to it", label(id)));
        }
    }
}

void Flow::slice(OpId id) {
    const auto axes = integers(id, 3, "axes");
    const auto& all = tensors_[index(input(id, 0))];
    const auto rank = shape(output(id))->size();
    for (std::size_t axis = 0; axis < all.size(); ++axis) {
        const bool cut = !axes || std::any_of(axes->begin(), axes->end(), [&](std::int64_t one) {
            return axis_of(one, rank) == axis;
        });
        if (cut) {
            freeze(all[axis], fmt::format("'{}' cuts it", label(id)));
        } else {
            give(output(id), axis, all[axis]);
        }
    }
}

void Flow::split(OpId id) {
    const auto in = input(id, 0);
    const auto& all = tensors_[index(in)];
    const auto rank = shape(in) ? shape(in)->size() : 0;
    const auto at = axis_of(op(id).integer("axis", 0), rank);
    if (at >= rank || (input(id, 1) != TensorId::none && !integers(id, 1))) {
        return freeze_inputs(id, fmt::format("the sizes of '{}' are computed", label(id)));
    }
    Parting parting{id, {}};
    std::size_t first = 0;
    for (const auto out : op(id).outputs) {
        if (out == TensorId::none || !shape(out) || shape(out)->size() != rank) {
            return freeze_inputs(id, fmt::format("the shapes of '{}' are not known", label(id)));
        }
        for (std::size_t axis = 0; axis < all.size(); ++axis) {
            if (axis != at) {
                give(out, axis, all[axis]);
            }
        }
        const auto list = channels(in, at);
        const auto count = static_cast<std::size_t>((*shape(out))[at]);
        if (list != nullptr && first + count <= list->size()) {
            const auto begin = list->begin() + static_cast<std::ptrdiff_t>(first);
            parting.channels.push_back(std::make_shared<const std::vector<Atom>>(
                begin, begin + static_cast<std::ptrdiff_t>(count)));
            give(out, at, parting.channels.back());
        }
        first += count;
    }
    if (!parting.channels.empty()) {
        partings_.push_back(std::move(parting));
    }
}

// Who asks for the size of an axis may do anything with it.
void Flow::ask_shape(OpId id) {
    const auto in = input(id, 0);
    const auto& all = tensors_[index(in)];
    const auto first = axis_of(op(id).integer("start", 0), all.size());
    for (const auto& use : graph_.tensor(output(id)).uses) {
        const auto picked =
            use.slot == 0 && op(use.op).type == "Gather" ? integers(use.op, 1) : std::nullopt;
        const auto rank = shape(output(id))->empty() ? 0 : (*shape(output(id)))[0];
        for (std::size_t axis = 0; axis < all.size(); ++axis) {
            const bool asked =
                !picked || std::any_of(picked->begin(), picked->end(), [&](std::int64_t one) {
                    return first + axis_of(one, static_cast<std::size_t>(rank)) == axis;
                });
            if (asked) {
                freeze(all[axis], fmt::format("'{}' asks for its size", label(use.op)));
            }
        }
    }
    if (graph_.tensor(output(id)).is_output) {
        freeze_tensor(in, fmt::format("'{}' asks for its size", label(id)));
    }
}

}  // namespace trocar::pruning
