#include <algorithm>
#include <cstring>

#include "inject/runner_parts.h"
#include "trocar/error.h"

namespace trocar::inject {

namespace {

// Below this a run costs more in calls than in work.
constexpr double worth_stacking = 3e-4;
constexpr int trusted_after = 3;

}  // namespace

bool Runner::can_stack(const Golden& golden, std::size_t number, const Lane& lane) const {
    const auto& step = circuit_.steps()[number];
    if (!step.footprint.batched || accelerate_.batch < 2 || !accelerate_.dead ||
        golden.seconds[number] > worth_stacking || step.outputs.size() != 1) {
        return false;
    }
    const auto& out = golden.values[index(step.outputs[0])];
    const auto fits = [&](TensorId id) {
        const auto& value = golden.values[index(id)];
        const auto* patch = lane.patch(id);
        return value.is_tensor() && bits(value.dtype()) >= 8 && !value.shape().empty() &&
               value.shape()[0] == out.shape()[0] && value.element_count() > 0 &&
               (patch == nullptr || !patch->is_whole() ||
                (patch->whole.is_tensor() && patch->whole.shape() == value.shape()));
    };
    if (!out.is_tensor() || out.shape().empty() || bits(out.dtype()) < 8) {
        return false;
    }
    return std::all_of(step.inputs.begin(), step.inputs.end(), fits) &&
           !sees_nan(golden, step, lane) &&
           (step.footprint.kind != Footprint::Kind::local ||
            std::all_of(step.inputs.begin(), step.inputs.end(), [&](TensorId id) {
                return golden.values[index(id)].shape().size() == out.shape().size();
            }));
}

void Runner::run_stacked(const Golden& golden, std::size_t number, std::span<Lane*> lanes,
                         const Watch& watch) {
    auto& seen = parts_->stacked[number].seen;
    for (const std::size_t count : {32, 16, 8, 4, 2}) {
        while (lanes.size() >= count && seen[count] >= 0) {
            if (!run_some_stacked(golden, number, lanes.first(count), watch)) {
                break;
            }
            lanes = lanes.subspan(count);
        }
    }
    for (auto* lane : lanes) {
        run_whole(golden, number, *lane, watch);
    }
}

// False where the batch does not give what each lane alone gives: then nothing was done.
bool Runner::run_some_stacked(const Golden& golden, std::size_t number, std::span<Lane*> lanes,
                              const Watch& watch) {
    const auto start = now_seconds();
    const auto& step = circuit_.steps()[number];
    auto& parts = parts_->stacked[number];
    auto& values = parts_->values;
    values.resize(golden.values.size());
    parts.inputs.resize(step.inputs.size());
    const auto count = lanes.size();
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        const auto id = step.inputs[i];
        const auto& value = golden.values[index(id)];
        const auto& g = golden.geometries[index(id)];
        const auto size = value.bytes().size();
        auto& buffer = parts.inputs[i];
        buffer.resize(size * count);
        for (std::size_t k = 0; k < count; ++k) {
            auto* to = buffer.data() + k * size;
            const auto* patch = lanes[k]->patch(id);
            const auto& from = patch != nullptr && patch->is_whole() ? patch->whole : value;
            std::memcpy(to, from.bytes().data(), size);
            if (patch != nullptr && !patch->is_whole()) {
                overlay(g, *patch, to);
            }
        }
        auto shape = value.shape();
        shape[0] *= static_cast<std::int64_t>(count);
        values[index(id)] = Value::borrow(value.dtype(), std::move(shape), buffer, nullptr);
    }
    const auto clear = [&] {
        for (const auto id : step.inputs) {
            values[index(id)] = {};
        }
    };
    const auto id = step.outputs[0];
    const auto& wanted = golden.values[index(id)];
    const auto size = wanted.bytes().size();
    Value made;
    try {
        made = run_program(program(number, golden), step, values)[0];
    } catch (const Error&) {
        clear();
        parts.seen[count] = -1;  // each alone says what is wrong
        return false;
    }
    clear();
    if (made.bytes().size() != size * count) {
        parts.seen[count] = -1;
        return false;
    }
    const auto part = [&](std::size_t k) { return made.bytes().subspan(k * size, size); };
    auto& seen = parts.seen[count];
    if (seen < trusted_after) {
        for (std::size_t k = 0; k < count; ++k) {
            for (const auto input : step.inputs) {
                const auto* patch = lanes[k]->patch(input);
                values[index(input)] =
                    patch == nullptr ? golden.values[index(input)] : lend(golden, input, *patch);
            }
            Value alone;
            bool failed = false;
            try {
                alone = run_program(program(number, golden), step, values)[0];
            } catch (const Error&) {
                failed = true;
            }
            for (const auto input : step.inputs) {
                if (const auto* patch = lanes[k]->patch(input)) {
                    give_back(golden, input, *patch);
                }
            }
            clear();
            if (failed) {
                return false;  // it says what is wrong when it is run alone
            }
            if (alone.bytes().size() != size ||
                std::memcmp(alone.bytes().data(), part(k).data(), size) != 0) {
                ++saved_.uncalibrated;
                seen = -1;
                return false;
            }
        }
        ++seen;
    }
    saved_.stacked += count;
    for (std::size_t k = 0; k < count; ++k) {
        auto compared =
            compare(wanted, golden.geometries[index(id)],
                    aligned(Value::borrow(wanted.dtype(), wanted.shape(), part(k), made.body())));
        std::vector<std::pair<TensorId, Patch>> outputs;
        if (!compared.same) {
            outputs.emplace_back(id, std::move(compared.patch));
        }
        finish(golden, number, *lanes[k], std::move(outputs), watch);
    }
    saved_.seconds_stacked += now_seconds() - start;
    return true;
}

}  // namespace trocar::inject
