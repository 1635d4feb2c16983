#include <algorithm>
#include <cmath>
#include <numeric>

#include "engines/reference/call.h"

namespace trocar::reference {

namespace {

// NaN counts as larger than all.
template <class T>
bool before(const T& a, const T& b, bool largest) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(a) || std::isnan(b)) {
            return largest ? std::isnan(a) && !std::isnan(b) : !std::isnan(a) && std::isnan(b);
        }
    }
    return largest ? a > b : a < b;
}

void top_k(Call& call) {
    const auto shape = call.shape(0);
    const auto axis = axis_of(call.integer("axis", -1), shape.size());
    const auto k = call.input_count() > 1 ? call.integer(std::size_t{1}) : call.integer("k", 0);
    require(k >= 0 && k <= shape[axis], "k is more than there is along the axis");
    const bool largest = call.integer("largest", 1) != 0;
    auto to = shape;
    to[axis] = k;
    const auto from = lines_along(shape, {axis});
    const auto into = lines_along(to, {axis});
    with_number(call.dtype(0), [&](auto zero) {
        using T = decltype(zero);
        const auto x = read<T>(call.tensor(0));
        std::vector<T> values(count(to));
        Integers indices(values.size());
        Indices order(from.steps.size());
        for (std::size_t l = 0; k > 0 && l < from.starts.size(); ++l) {
            std::iota(order.begin(), order.end(), std::size_t{0});
            const auto at = [&](std::size_t i) { return x[from.starts[l] + from.steps[i]]; };
            // Equal ones in the order of their places.
            std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                return before(at(a), at(b), largest);
            });
            for (std::size_t i = 0; i < to_size(k); ++i) {
                values[into.starts[l] + into.steps[i]] = at(order[i]);
                indices[into.starts[l] + into.steps[i]] = to_integer(order[i]);
            }
        }
        call.give(0, call.dtype(0), to, values);
        call.give(1, DType::i64, to, indices);
    });
}

// --- Unique -------------------------------------------------------------------------------------

struct Groups {
    Indices first;    // of each group: the first member
    Indices inverse;  // of each member: its group
    Integers counts;
};

// Members are numbered; `less` orders them.
template <class Less>
Groups grouped(std::size_t members, bool sorted, Less&& less) {
    Indices order(members);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), less);
    Groups groups;
    groups.inverse.resize(members);
    for (std::size_t i = 0; i < members; ++i) {
        if (i == 0 || less(order[i - 1], order[i])) {
            groups.first.push_back(order[i]);
            groups.counts.push_back(0);
        }
        ++groups.counts.back();
        groups.inverse[order[i]] = groups.first.size() - 1;
    }
    if (sorted) {
        return groups;
    }
    // In the order of their first members.
    Indices by_first(groups.first.size());
    std::iota(by_first.begin(), by_first.end(), std::size_t{0});
    std::sort(by_first.begin(), by_first.end(),
              [&](std::size_t a, std::size_t b) { return groups.first[a] < groups.first[b]; });
    Indices rank(by_first.size());
    Groups result;
    for (std::size_t i = 0; i < by_first.size(); ++i) {
        rank[by_first[i]] = i;
        result.first.push_back(groups.first[by_first[i]]);
        result.counts.push_back(groups.counts[by_first[i]]);
    }
    for (const auto group : groups.inverse) {
        result.inverse.push_back(rank[group]);
    }
    return result;
}

void unique(Call& call) {
    auto value = call.tensor(0);
    const bool flat = call.attribute("axis") == nullptr;
    if (flat) {
        value = reshaped(value, {to_integer(count(value.shape()))});
    }
    auto shape = value.shape();
    const auto axis = axis_of(call.integer("axis", 0), shape.size());
    const bool sorted = call.integer("sorted", 1) != 0;
    Indices others = all_axes(shape.size());
    others.erase(others.begin() + to_integer(axis));
    // A member is all that stands at one place of the axis.
    const auto members = lines_along(shape, others);
    Groups groups;
    const auto group = [&](const auto& x) {
        groups = grouped(members.starts.size(), sorted, [&](std::size_t a, std::size_t b) {
            for (const auto step : members.steps) {
                const auto& left = x[members.starts[a] + step];
                const auto& right = x[members.starts[b] + step];
                if (before(left, right, false) || before(right, left, false)) {
                    return before(left, right, false);
                }
            }
            return false;
        });
    };
    if (value.dtype() == DType::string) {
        group(value.string_values());
    } else {
        with_number(value.dtype(), [&](auto zero) { group(read<decltype(zero)>(value)); });
    }
    const auto strides = strides_of(shape);
    shape[axis] = to_integer(groups.first.size());
    auto steps = strides;
    steps[axis] = 0;
    auto from = strided(shape, steps);
    const auto own = strides_of(shape);
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto place = to_integer(i) / own[axis] % shape[axis];
        from[i] += groups.first[to_size(place)] * to_size(strides[axis]);
    }
    call.give(0, take(value, shape, from));
    call.give(1, integers_value(Integers(groups.first.begin(), groups.first.end())));
    call.give(2, integers_value(Integers(groups.inverse.begin(), groups.inverse.end())));
    call.give(3, integers_value(groups.counts));
}

}  // namespace

std::span<const Entry> sorting_ops() {
    static constexpr Entry ops[]{
        {"TopK", top_k},
        {"Unique", unique},
    };
    return ops;
}

}  // namespace trocar::reference
