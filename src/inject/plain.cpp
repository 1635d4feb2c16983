#include <fmt/format.h>

#include "inject/runner_parts.h"
#include "trocar/error.h"

namespace trocar::inject {

void Runner::run_plainly(const Golden& whole, Lane& lane, const Watch& watch) {
    std::optional<Golden> along;
    if (whole.partial) {
        along = whole;
        along->id = next_golden();
    }
    const auto& golden = along ? *along : whole;
    std::vector<Value> values(golden.values.size());
    for (const auto id : circuit_.graph().inputs()) {
        values[index(id)] = golden.values[index(id)];
    }
    const auto note = [&](TensorId id) {
        auto compared =
            compare(golden.values[index(id)], golden.geometries[index(id)], values[index(id)]);
        if (compared.same) {
            return;
        }
        look(circuit_, golden, id, compared.patch, watch, lane);
        if (watch.ranges == Ranges::clip) {
            values[index(id)] =
                complete(golden.values[index(id)], golden.geometries[index(id)], compared.patch);
        }
        if (circuit_.last_read(id) == no_step) {
            lane.patches.emplace_back(id, std::move(compared.patch));
        }
    };
    const auto change = [&](std::size_t written_at, std::size_t reader) {
        for (const auto& c : lane.tensors) {
            if (c.reader == reader &&
                (reader != no_step || circuit_.written_at(c.tensor) == written_at)) {
                auto other = copy_of(values[index(c.tensor)]);
                change_all(c, circuit_.layout(c.tensor), other);
                values[index(c.tensor)] = std::move(other);
            }
        }
    };
    change(no_step, no_step);
    for (const auto id : circuit_.graph().inputs()) {
        if (values[index(id)].kind() != Value::Kind::none) {
            note(id);
        }
    }
    for (std::size_t s = 0; s < circuit_.steps().size(); ++s) {
        const auto& step = circuit_.steps()[s];
        if (along) {
            run_golden(*along, s);
        }
        Variant variant;
        for (const auto& c : lane.constants) {
            if (c.step == s) {
                variant.constants.emplace_back(c.tensor, changed(*circuit_.constant(c.tensor), c));
            }
        }
        std::vector<std::pair<TensorId, Value>> kept;
        for (const auto& c : lane.tensors) {
            if (c.reader == s) {
                kept.emplace_back(c.tensor, values[index(c.tensor)]);
            }
        }
        try {
            OpProgram rebuilt;
            if (!variant.constants.empty()) {
                rebuilt = circuit_.compile(step, golden.values, variant);
            }
            change(no_step, s);
            auto outputs =
                run_program(rebuilt.program ? rebuilt : program(s, golden), step, values);
            for (std::size_t i = 0; i < outputs.size(); ++i) {
                values[index(step.outputs[i])] = std::move(outputs[i]);
            }
        } catch (const Error& e) {
            prove(golden, s, lane, e);
            take_failure(lane, e);
            return;
        }
        for (auto it = kept.rbegin(); it != kept.rend(); ++it) {
            values[index(it->first)] = std::move(it->second);
        }
        change(s, no_step);
        for (const auto id : step.outputs) {
            note(id);
        }
        for (const auto id : step.inputs) {
            if (circuit_.last_read(id) <= s) {
                values[index(id)] = {};
            }
        }
        if (along) {
            forget_read(*along, s);
        }
    }
    lane.done = true;
}

}  // namespace trocar::inject
