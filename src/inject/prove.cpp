#include <fmt/format.h>

#include <algorithm>

#include "inject/runner_parts.h"
#include "trocar/error.h"

namespace trocar::inject {

namespace {

// The constants that a step of a lane is compiled with, with the bits they have without faults.
Variant unchanged(const Circuit& circuit, std::size_t number,
                  std::span<const ConstantChange> changes) {
    Variant variant;
    for (const auto& c : changes) {
        if (c.step == number) {
            const auto& constant = *circuit.constant(c.tensor);
            const bool plain = !constant.is_sparse() && bits(constant.dtype()) > 0;
            variant.constants.emplace_back(
                c.tensor, plain ? changed(constant, ConstantChange{number, c.tensor}) : constant);
        }
    }
    return variant;
}

}  // namespace

// Compiles a step once more, and runs it without faults. Throws Error(engine) where that does not
// give the golden bits.
void Runner::try_step(const Golden& golden, std::size_t number,
                      std::span<const ConstantChange> changes) {
    const auto& step = circuit_.steps()[number];
    auto fresh = circuit_.compile(step, golden.values, unchanged(circuit_, number, changes));
    const auto outputs = run_program(fresh, step, golden.values);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const auto id = index(step.outputs[i]);
        if (!compare(golden.values[id], golden.geometries[id], outputs[i]).same) {
            throw Error(Fault::engine,
                        fmt::format("{}: compiled again, it has other bits than before",
                                    circuit_.graph().describe(step.op)));
        }
    }
}

void Runner::prove(const Golden& golden, std::size_t number, const Lane& lane, const Error& error) {
    std::string key(reinterpret_cast<const char*>(&number), sizeof number);
    for (const auto& c : lane.constants) {
        if (c.step == number) {
            key.append(reinterpret_cast<const char*>(&c.tensor), sizeof c.tensor);
        }
    }
    if (parts_->proven.contains(key)) {
        return;
    }
    try {
        try_step(golden, number, lane.constants);
    } catch (const Error& e) {
        throw Error(Fault::engine,
                    fmt::format("the engine fails without a fault, too, so that nothing can be "
                                "said of faults: {}",
                                e.what()),
                    e.hint().empty() ? error.hint() : e.hint());
    }
    parts_->proven.insert(std::move(key));
}

void Runner::rehearse(const Golden& golden) {
    constexpr std::size_t enough = 3;  // of those with constants, and of those without
    std::size_t with = 0;
    std::size_t without = 0;
    for (std::size_t s = 0; s < circuit_.steps().size() && (with < enough || without < enough);
         ++s) {
        const auto& step = circuit_.steps()[s];
        const auto is_here = [&](TensorId id) {
            return golden.values[index(id)].kind() != Value::Kind::none;
        };
        if (!std::all_of(step.inputs.begin(), step.inputs.end(), is_here) ||
            !std::all_of(step.outputs.begin(), step.outputs.end(), is_here)) {
            continue;  // too large to be kept
        }
        std::vector<ConstantChange> changes;
        for (const auto id : circuit_.graph().op(step.op).inputs) {
            if (id != TensorId::none && circuit_.constant(id) != nullptr) {
                changes.push_back({s, id});
            }
        }
        if ((changes.empty() ? without : with)++ < enough) {
            try_step(golden, s, changes);
        }
    }
}

}  // namespace trocar::inject
