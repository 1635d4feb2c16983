#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "inject/bits.h"
#include "inject/universe.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::inject {

namespace {

TensorId find_tensor(const Circuit& circuit, const std::string& name) {
    if (const auto id = circuit.graph().find_tensor(name)) {
        return *id;
    }
    std::vector<std::string> names;
    for (const auto id : circuit.graph().tensors()) {
        names.push_back(circuit.graph().tensor(id).name);
    }
    const auto near = did_you_mean(name, names);
    throw Error(Fault::usage,
                fmt::format("there is no tensor '{}' in the {} view of the model", name,
                            circuit.deployed() != nullptr ? "deployed" : "source"),
                near.empty() ? "faults name tensors of the view that the campaign is in" : near);
}

// Is `id` the constant, or what Identity makes of it?
bool passes_on(const Graph& graph, TensorId id, TensorId constant) {
    while (id != constant) {
        const auto producer = graph.tensor(id).producer;
        if (producer == OpId::none || graph.op(producer).inputs.size() != 1) {
            return false;
        }
        id = graph.op(producer).inputs[0];
    }
    return true;
}

// The tensors through which a step reads a constant.
std::vector<TensorId> aliases_at(const Circuit& circuit, std::size_t step, TensorId constant) {
    const auto& op = circuit.graph().op(circuit.steps()[step].op);
    std::vector<TensorId> found;
    for (const auto* list : {&op.inputs, &op.captures}) {
        for (const auto id : *list) {
            if (id != TensorId::none && circuit.constant(id) != nullptr &&
                passes_on(circuit.graph(), id, constant) &&
                std::find(found.begin(), found.end(), id) == found.end()) {
                found.push_back(id);
            }
        }
    }
    return found;
}

bool reads_it(const Circuit& circuit, std::size_t step, TensorId tensor) {
    const auto& op = circuit.graph().op(circuit.steps()[step].op);
    return std::find(op.inputs.begin(), op.inputs.end(), tensor) != op.inputs.end() ||
           std::find(op.captures.begin(), op.captures.end(), tensor) != op.captures.end() ||
           (circuit.constant(tensor) != nullptr && !aliases_at(circuit, step, tensor).empty());
}

std::size_t find_reader(const Circuit& circuit, const std::string& name, TensorId tensor) {
    std::size_t step = no_step;
    if (name.starts_with('#')) {
        std::from_chars(name.data() + 1, name.data() + name.size(), step);
    } else if (const auto op = circuit.graph().find_op(name)) {
        step = circuit.step_of(*op);
    }
    if (step >= circuit.steps().size() || !reads_it(circuit, step, tensor)) {
        std::vector<std::string> readers;
        for (const auto& use : circuit.graph().tensor(tensor).uses) {
            readers.push_back(circuit.graph().op(use.op).name);
        }
        throw Error(Fault::usage,
                    fmt::format("there is no op '{}' that reads '{}'", name,
                                circuit.graph().tensor(tensor).name),
                    readers.empty() ? "" : fmt::format("it is read by {}", join(readers, ", ")));
    }
    return step;
}

const CustomEffect& custom_of(const Effect& effect,
                              const std::map<std::string, CustomEffect>& effects) {
    static const CustomEffect none;
    const auto found = effects.find(effect.name);
    return found == effects.end() ? none : found->second;
}

// The bytes of dense elements with a fault in place. `filters`: how they stand in memory.
std::vector<std::byte> with_fault(const Constant& constant, const ModelFault& fault,
                                  const FilterLayout& filters, const CustomEffect& custom,
                                  std::vector<std::uint64_t>& stored) {
    std::vector<std::byte> bytes(constant.bytes().begin(), constant.bytes().end());
    const auto at = places(fault.elements, plain_shape(constant.shape(), filters));
    const auto dtype = constant.dtype();
    if (fault.effect.kind == Effect::Kind::rate) {
        for (const auto& [element, bit] : rate_flips(fault.effect, at.size())) {
            stored.push_back(stored_place(at[element], constant.shape(), filters));
            store_bits(dtype, bytes, stored.back(),
                       load_bits(dtype, bytes, stored.back()) ^ std::uint64_t{1} << bit);
        }
        return bytes;
    }
    for (const auto place : at) {
        stored.push_back(stored_place(place, constant.shape(), filters));
        apply(fault.effect, dtype, bytes, stored.back(), place, custom);
    }
    return bytes;
}

// The new bits of few elements, without a copy of all others.
std::vector<ConstantChange::Poke> poke_elements(const Constant& constant, const ModelFault& fault,
                                                const FilterLayout& filters,
                                                const CustomEffect& custom) {
    std::vector<ConstantChange::Poke> pokes;
    for (const auto place : places(fault.elements, plain_shape(constant.shape(), filters))) {
        const auto stored = stored_place(place, constant.shape(), filters);
        const auto before = load_bits(constant.dtype(), constant.bytes(), stored);
        std::array<std::byte, 8> one{};
        store_bits(constant.dtype(), one, 0, before);
        apply(fault.effect, constant.dtype(), one, 0, place, custom);
        const auto after = load_bits(constant.dtype(), one, 0);
        if (after != before) {
            pokes.push_back({stored, after});
        }
    }
    return pokes;
}

// A sparse constant whose indices may say anything: what lies outside is the engine's to refuse.
Constant sparse_with(const Constant& sparse, const ModelFault& fault, const CustomEffect& custom) {
    const bool of_values = fault.part == ModelFault::Part::values;
    const auto& part = of_values ? sparse.values() : sparse.indices();
    std::vector<std::uint64_t> stored;
    auto other =
        Constant::copy(part.dtype(), part.shape(), with_fault(part, fault, {}, custom, stored));
    return Constant::sparse(sparse.shape(), of_values ? other : sparse.values(),
                            of_values ? sparse.indices() : other);
}

void change_constant(const Circuit& circuit, TensorId tensor, std::size_t step,
                     const ModelFault& fault, const CustomEffect& custom, Lane& lane) {
    const auto& original = *circuit.constant(tensor);
    auto existing =
        std::find_if(lane.constants.begin(), lane.constants.end(),
                     [&](const ConstantChange& c) { return c.tensor == tensor && c.step == step; });
    FilterLayout filters;
    if (step != no_step) {
        const auto& op = circuit.graph().op(circuit.steps()[step].op);
        const auto slot = static_cast<std::size_t>(
            std::find(op.inputs.begin(), op.inputs.end(), tensor) - op.inputs.begin());
        filters = circuit.filter_layout(op, slot);
    }
    ConstantChange change{.step = step, .tensor = tensor};
    constexpr std::size_t few = 64;
    if (original.is_sparse() != (fault.part != ModelFault::Part::whole)) {
        throw Error(Fault::usage,
                    original.is_sparse() ? fmt::format("'{}' is stored sparse", fault.tensor)
                                         : fmt::format("'{}' is not stored sparse", fault.tensor),
                    original.is_sparse() ? "name its .values or its .indices" : "");
    }
    if (original.is_sparse()) {
        const auto now = existing != lane.constants.end() ? *existing->constant : original;
        change.constant = sparse_with(now, fault, custom);
    } else if (existing == lane.constants.end() && fault.effect.kind != Effect::Kind::rate &&
               fault.elements.ranges.size() == original.shape().size() &&
               places(fault.elements, plain_shape(original.shape(), filters)).size() <= few) {
        change.pokes = poke_elements(original, fault, filters, custom);
        if (change.pokes.empty()) {
            return;
        }
    } else {
        const auto now = existing != lane.constants.end() ? changed(original, *existing) : original;
        std::vector<std::uint64_t> stored;
        const auto bytes = with_fault(now, fault, filters, custom, stored);
        change.constant = Constant::copy(original.dtype(), original.shape(), bytes);
        if (stored.size() <= few) {
            auto pokes = existing != lane.constants.end() ? existing->pokes
                                                          : std::vector<ConstantChange::Poke>{};
            if (existing == lane.constants.end() || !existing->pokes.empty()) {
                for (const auto at : stored) {
                    std::erase_if(pokes, [&](const auto& p) { return p.stored == at; });
                    pokes.push_back({at, load_bits(original.dtype(), bytes, at)});
                }
                change.pokes = std::move(pokes);
                change.constant.reset();
            }
        }
    }
    if (existing != lane.constants.end()) {
        *existing = std::move(change);
    } else {
        lane.constants.push_back(std::move(change));
    }
}

}  // namespace

Lane make_lane(const Circuit& circuit, const std::vector<Type>& types,
               const std::vector<ModelFault>& faults, std::uint64_t run,
               const std::map<std::string, CustomEffect>& effects) {
    Lane lane;
    lane.first = no_step;
    const auto reach = [&](std::size_t step) {
        lane.first = std::min(lane.first, step);
        lane.pending = std::max(lane.pending, step);
    };
    for (const auto& fault : faults) {
        if (!fault.duration.active(run)) {
            continue;
        }
        const auto tensor = find_tensor(circuit, fault.tensor);
        const auto& custom = custom_of(fault.effect, effects);
        if (circuit.constant(tensor) != nullptr) {
            const auto only =
                fault.reader.empty() ? no_step : find_reader(circuit, fault.reader, tensor);
            for (std::size_t step = 0; step < circuit.steps().size(); ++step) {
                if (only != no_step && step != only) {
                    continue;
                }
                for (const auto alias : aliases_at(circuit, step, tensor)) {
                    change_constant(circuit, alias, step, fault, custom, lane);
                    reach(step);
                }
            }
            if (only == no_step) {
                for (const auto output : circuit.graph().outputs()) {
                    if (circuit.constant(output) != nullptr &&
                        passes_on(circuit.graph(), output, tensor)) {
                        change_constant(circuit, output, no_step, fault, custom, lane);
                    }
                }
            }
            continue;
        }
        const auto& type = types[index(tensor)];
        if (type.kind != Type::Kind::tensor || bits(type.dtype) == 0) {
            throw Error(Fault::usage, fmt::format("'{}' is {}, which has no bits to change",
                                                  fault.tensor, type_text(type)));
        }
        TensorChange change{.tensor = tensor};
        change.reader = fault.reader.empty() ? no_step : find_reader(circuit, fault.reader, tensor);
        change.shape = plain_shape(type.shape().value(), circuit.layout(tensor));
        change.places = places(fault.elements, change.shape);
        change.effect = fault.effect;
        change.custom = custom ? &custom : nullptr;
        // Refused now rather than in the run.
        std::array<std::byte, 16> probe{};
        apply(change.effect, type.dtype, probe, 0, 0, custom);
        const auto at = change.reader != no_step ? change.reader : circuit.written_at(tensor);
        reach(at == no_step ? 0 : at);
        lane.tensors.push_back(std::move(change));
    }
    if (lane.first == no_step) {
        lane.first = circuit.steps().size();
    }
    return lane;
}

}  // namespace trocar::inject
