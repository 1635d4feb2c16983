#include <algorithm>
#include <cmath>
#include <cstring>

#include "inject/runner_parts.h"
#include "util/elements.h"

namespace trocar::inject {

namespace {

// Calls `f(numbers, golden numbers, bytes)` for each run of bytes of a patch that stands in one
// piece, here and in the golden tensor.
template <class F>
void each_piece(const Golden& golden, TensorId id, Patch& patch, const F& f) {
    const auto& value = golden.values[index(id)];
    const auto& g = golden.geometries[index(id)];
    if (patch.is_whole()) {
        f(patch.whole.bytes(), value.bytes(), std::span<std::byte>());
        return;
    }
    std::size_t at = 0;
    for (const auto position : patch.positions) {
        for (auto group = patch.low; group < patch.high; ++group) {
            auto here = std::span(patch.cells).subspan(at, g.cell);
            f(Bytes(here),
              value.bytes().subspan(g.at(position) + static_cast<std::size_t>(group) * g.group_step,
                                    g.cell),
              here);
            at += g.cell;
        }
    }
}

// Drops positions that have their golden bits again.
void drop_same(const Golden& golden, TensorId id, Patch& patch) {
    const auto& value = golden.values[index(id)];
    const auto& g = golden.geometries[index(id)];
    auto compared = compare(value, g, complete(value, g, patch));
    patch = compared.same ? Patch{} : std::move(compared.patch);
}

}  // namespace

void look(const Circuit& circuit, const Golden& golden, TensorId id, Patch& patch,
          const Watch& watch, Lane& lane) {
    const auto& value = golden.values[index(id)];
    const bool output = circuit.last_read(id) == no_step;
    const auto* bounds = index(id) < watch.bounds.size() && watch.bounds[index(id)]
                             ? &*watch.bounds[index(id)]
                             : nullptr;
    const bool nan = watch.nan_everywhere || output;
    if ((!nan && bounds == nullptr && lane.effects == nullptr) || !value.is_tensor() ||
        !is_numeric(value.dtype()) ||
        (patch.is_whole() && (!patch.whole.is_tensor() || patch.whole.shape() != value.shape()))) {
        return;
    }
    LayerEffect effect;
    bool clips = false;
    std::vector<double> a;
    std::vector<double> b;
    const auto dtype = value.dtype();
    const auto element_bits = bits(dtype);
    const bool complex = number_count(dtype, 1) == 2;
    const auto measure = [&](Bytes here, Bytes there, std::span<std::byte>) {
        const auto count = number_count(dtype, here.size() * 8 / element_bits);
        a.resize(count);
        b.resize(count);
        decode(dtype, there, 0, a);
        decode(dtype, here, 0, b);
        for (std::size_t i = 0; i < count; ++i) {
            const bool bad = !std::isfinite(b[i]) && std::isfinite(a[i]);
            const bool out = bounds != nullptr && !(b[i] >= bounds->low && b[i] <= bounds->high);
            lane.bad = lane.bad || (bad && nan);
            lane.detected = lane.detected || out;
            clips = clips || out;
            effect.bad += bad ? 1 : 0;
            if (a[i] != b[i] && std::isfinite(b[i])) {
                effect.max_abs = std::max(effect.max_abs, std::abs(b[i] - a[i]));
            }
        }
        if (lane.effects != nullptr) {
            for (std::size_t i = 0; i < here.size() * 8 / element_bits; ++i) {
                if (element_bits >= 8) {
                    const auto size = element_bits / 8;
                    effect.changed +=
                        std::memcmp(here.data() + i * size, there.data() + i * size, size) != 0 ? 1
                                                                                                : 0;
                } else {
                    const auto k = complex ? 2 * i : i;
                    effect.changed += a[k] != b[k] ? 1 : 0;
                }
            }
        }
    };
    each_piece(golden, id, patch, measure);
    if (lane.effects != nullptr && effect.changed > 0) {
        const auto producer = circuit.graph().tensor(id).producer;
        effect.tensor = circuit.graph().tensor(id).name;
        effect.op = producer == OpId::none ? "" : circuit.graph().op(producer).name;
        lane.effects->push_back(effect);
    }
    if (clips && watch.ranges == Ranges::clip) {
        if (patch.is_whole()) {
            patch.whole = Value::copy(dtype, patch.whole.shape(), patch.whole.bytes());
        }
        const auto clip = [&](Bytes here, Bytes, std::span<std::byte> to) {
            const auto count = number_count(dtype, here.size() * 8 / element_bits);
            b.resize(count);
            decode(dtype, here, 0, b);
            for (auto& number : b) {
                number = std::isnan(number) ? 0 : std::clamp(number, bounds->low, bounds->high);
            }
            encode(dtype, b, 0, to.empty() ? patch.whole.mutable_bytes() : to);
        };
        each_piece(golden, id, patch, clip);
        drop_same(golden, id, patch);
    }
}

}  // namespace trocar::inject
