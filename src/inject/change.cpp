#include <algorithm>
#include <optional>

#include "inject/bits.h"
#include "inject/runner_parts.h"

namespace trocar::inject {

namespace {

// Where element `place` of a tensor of shape `then` is in one of shape `now`; nullopt: nowhere.
std::optional<std::uint64_t> place_in(std::uint64_t place, const Shape& then, const Shape& now) {
    if (then.size() != now.size()) {
        return std::nullopt;
    }
    std::uint64_t moved = 0;
    std::uint64_t step = 1;
    for (auto d = then.size(); d-- > 0;) {
        const auto at = place % static_cast<std::uint64_t>(then[d]);
        place /= static_cast<std::uint64_t>(then[d]);
        if (at >= static_cast<std::uint64_t>(now[d])) {
            return std::nullopt;
        }
        moved += at * step;
        step *= static_cast<std::uint64_t>(now[d]);
    }
    return moved;
}

// Calls `f(number, place, stored)` for each element of a change that a tensor has: its number among
// those of the change, its place in the plain tensor, and where it stands in memory.
template <class F>
void each_element(const TensorChange& change, const Shape& stored_shape, const Layout& layout,
                  const F& f) {
    const auto now = plain_shape(stored_shape, layout);
    for (std::size_t i = 0; i < change.places.size(); ++i) {
        const auto place =
            now == change.shape ? change.places[i] : place_in(change.places[i], change.shape, now);
        if (place) {
            f(i, *place, stored_place(*place, stored_shape, layout));
        }
    }
}

}  // namespace

void change_all(const TensorChange& change, const Layout& layout, Value& value) {
    const CustomEffect none;
    const auto shape = value.shape();
    const auto dtype = value.dtype();
    const auto bytes = value.mutable_bytes();
    if (change.effect.kind == Effect::Kind::rate) {
        std::vector<std::optional<std::size_t>> at(change.places.size());
        each_element(change, shape, layout,
                     [&](std::size_t i, std::uint64_t, std::size_t stored) { at[i] = stored; });
        for (const auto& [element, bit] : rate_flips(change.effect, change.places.size())) {
            if (at[element]) {
                store_bits(dtype, bytes, *at[element],
                           load_bits(dtype, bytes, *at[element]) ^ std::uint64_t{1} << bit);
            }
        }
        return;
    }
    each_element(change, shape, layout, [&](std::size_t, std::uint64_t place, std::size_t stored) {
        apply(change.effect, dtype, bytes, stored, place,
              change.custom != nullptr ? *change.custom : none);
    });
}

namespace {

// The cells that hold some elements of a tensor, as a patch of golden bytes.
Patch cells_of(const Geometry& g, const std::vector<std::size_t>& offsets,
               const std::byte* golden) {
    Patch patch;
    patch.low = g.groups;
    for (const auto offset : offsets) {
        const auto image = static_cast<std::int64_t>(offset / g.outer_step);
        const auto within = offset % g.outer_step;
        const auto group = g.image ? static_cast<std::int64_t>(within / g.group_step) : 0;
        const auto inner =
            static_cast<std::int64_t>((g.image ? within % g.group_step : within) / g.position_step);
        patch.positions.push_back(static_cast<std::int32_t>(image * g.inner() + inner));
        patch.low = std::min(patch.low, group);
        patch.high = std::max(patch.high, group + 1);
    }
    std::sort(patch.positions.begin(), patch.positions.end());
    patch.positions.erase(std::unique(patch.positions.begin(), patch.positions.end()),
                          patch.positions.end());
    for (const auto position : patch.positions) {
        for (auto group = patch.low; group < patch.high; ++group) {
            const auto* from =
                golden + g.at(position) + static_cast<std::size_t>(group) * g.group_step;
            patch.cells.insert(patch.cells.end(), from, from + g.cell);
        }
    }
    return patch;
}

}  // namespace

// Few elements of a tensor that is golden so far are changed in their cells alone.
void Runner::change(const Golden& golden, Lane& lane, const TensorChange& change) const {
    const auto id = change.tensor;
    const auto& value = golden.values[index(id)];
    const auto& g = golden.geometries[index(id)];
    const auto layout = circuit_.layout(id);
    auto* before = lane.patch(id);
    const auto element = bits(value.dtype()) / 8;
    if (before != nullptr || element == 0 || change.places.size() > 64 ||
        change.effect.kind == Effect::Kind::rate) {
        auto all = before != nullptr ? copy_of(complete(value, g, *before)) : copy_of(value);
        change_all(change, layout, all);
        auto compared = compare(value, g, all);
        if (before == nullptr && !compared.same) {
            lane.patches.emplace_back(id, std::move(compared.patch));
        } else if (before != nullptr && compared.same) {
            std::erase_if(lane.patches, [&](const auto& p) { return p.first == id; });
        } else if (before != nullptr) {
            *before = std::move(compared.patch);
        }
        return;
    }
    std::vector<std::size_t> offsets;
    std::vector<std::uint64_t> places;
    each_element(change, value.shape(), layout,
                 [&](std::size_t, std::uint64_t place, std::size_t stored) {
                     offsets.push_back(stored * element);
                     places.push_back(place);
                 });
    if (offsets.empty()) {
        return;
    }
    auto patch = cells_of(g, offsets, value.bytes().data());
    const auto original = patch.cells;
    const CustomEffect none;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        const auto one = cells_of(g, {offsets[i]}, value.bytes().data());
        const auto at = static_cast<std::size_t>(
            std::lower_bound(patch.positions.begin(), patch.positions.end(), one.positions[0]) -
            patch.positions.begin());
        const auto cell = at * static_cast<std::size_t>(patch.high - patch.low) +
                          static_cast<std::size_t>(one.low - patch.low);
        apply(change.effect, value.dtype(), std::span(patch.cells).subspan(cell * g.cell, g.cell),
              offsets[i] % g.cell / element, places[i],
              change.custom != nullptr ? *change.custom : none);
    }
    if (patch.cells != original) {
        lane.patches.emplace_back(id, std::move(patch));
    }
}

// What is changed as soon as it is written by a step; no_step: inputs of the model.
void Runner::change_written(const Golden& golden, std::size_t number, Lane& lane) const {
    for (const auto& c : lane.tensors) {
        if (c.reader == no_step && circuit_.written_at(c.tensor) == number) {
            change(golden, lane, c);
        }
    }
}

}  // namespace trocar::inject
