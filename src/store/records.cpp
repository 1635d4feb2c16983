#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "trocar/campaign_store.h"
#include "trocar/error.h"

namespace trocar {

namespace {

std::string effect_name(Effect::Kind kind) {
    switch (kind) {
        case Effect::Kind::flip:
            return "flip";
        case Effect::Kind::stuck0:
            return "stuck0";
        case Effect::Kind::stuck1:
            return "stuck1";
        case Effect::Kind::set:
            return "set";
        case Effect::Kind::random:
            return "random";
        case Effect::Kind::add:
            return "add";
        case Effect::Kind::multiply:
            return "multiply";
        case Effect::Kind::noise:
            return "noise";
        case Effect::Kind::gain:
            return "gain";
        case Effect::Kind::rate:
            return "rate";
        case Effect::Kind::custom:
            return "custom";
    }
    return {};
}

// The one bit that a fault changes; -1: several or none.
int bit_of(const Effect& effect) {
    const bool bits = effect.kind == Effect::Kind::flip || effect.kind == Effect::Kind::stuck0 ||
                      effect.kind == Effect::Kind::stuck1;
    return bits && std::has_single_bit(effect.mask) ? std::countr_zero(effect.mask) : -1;
}

double rate_of(const Effect& effect) {
    return effect.kind == Effect::Kind::rate ? effect.a : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

FaultRecord fault_record(const Trial& trial) {
    FaultRecord record;
    record.trial = trial.number;
    record.stratum = trial.stratum;
    record.weight = trial.weight;
    record.target = trial.target;
    record.layer = trial.layer;
    record.text = text(trial.faults);
    record.hash = hash(trial.faults);
    if (trial.faults.empty()) {
        return record;
    }
    const auto& first = trial.faults[0];
    const auto agree = [&](const auto& what) {
        return std::all_of(trial.faults.begin(), trial.faults.end(),
                           [&](const ModelFault& fault) { return what(fault) == what(first); });
    };
    if (agree([](const ModelFault& fault) { return fault.tensor; })) {
        record.tensor = first.tensor;
    }
    if (agree([](const ModelFault& fault) { return fault.effect.kind; })) {
        record.effect = effect_name(first.effect.kind);
    }
    if (agree([](const ModelFault& fault) { return bit_of(fault.effect); })) {
        record.bit = bit_of(first.effect);
    }
    if (agree([](const ModelFault& fault) { return fault.effect.a; }) &&
        agree([](const ModelFault& fault) { return fault.effect.kind; })) {
        record.rate = rate_of(first.effect);
    }
    return record;
}

GoldenOutput golden_output(const NamedValue& value) {
    if (!value.value.is_tensor() || bits(value.value.dtype()) == 0 ||
        !value.value.device().is_host()) {
        throw Error(Fault::unsupported,
                    fmt::format("the output '{}' ({}) cannot be kept in the store of a campaign",
                                value.name, value_text(value.value)),
                    "tensors of numbers can");
    }
    const auto bytes = value.value.bytes();
    return {value.name, value.value.dtype(), value.value.shape(), {bytes.begin(), bytes.end()}};
}

NamedValue golden_value(const GoldenOutput& output) {
    // Of a damaged store they may not fit; Value::copy would take them as they are.
    if (output.bytes.size() != byte_size(output.dtype, element_count(output.shape))) {
        throw Error(Fault::input, fmt::format("the store is damaged: the golden output '{}' has "
                                              "not as many bytes as its shape",
                                              output.name));
    }
    return {output.name, Value::copy(output.dtype, output.shape, output.bytes)};
}

}  // namespace trocar
