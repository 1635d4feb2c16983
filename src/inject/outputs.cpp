#include "inject/outputs.h"

#include <cstring>
#include <optional>

#include "trocar/statistics.h"

namespace trocar::inject {

std::vector<NamedValue> outputs_of(const Circuit& circuit, const Golden& golden, const Lane* lane) {
    std::vector<NamedValue> outputs;
    for (const auto id : circuit.graph().outputs()) {
        const auto* patch = lane != nullptr ? lane->patch(id) : nullptr;
        const auto* constant = circuit.constant(id);
        const auto& value = golden.values[index(id)];
        std::optional<Constant> other;
        if (lane != nullptr && constant != nullptr) {
            for (const auto& c : lane->constants) {
                if (c.step == no_step && c.tensor == id) {
                    other = changed(*constant, c);
                }
            }
        }
        outputs.push_back({circuit.graph().tensor(id).name,
                           patch != nullptr ? complete(value, golden.geometries[index(id)], *patch)
                           : other          ? Value::of(*other)
                           : constant != nullptr ? Value::of(*constant)
                                                 : value});
        const auto layout = circuit.layout(id);
        if (layout.block > 0) {
            outputs.back().value = to_plain(outputs.back().value, layout);
        }
    }
    return outputs;
}

bool same_bits(const std::vector<NamedValue>& a, const std::vector<NamedValue>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        const auto& x = a[i].value;
        const auto& y = b[i].value;
        if (x.kind() != y.kind()) {
            return false;
        }
        if (!x.is_tensor() || bits(x.dtype()) == 0) {
            continue;
        }
        const auto p = x.bytes();
        const auto q = y.bytes();
        if (x.shape() != y.shape() || x.dtype() != y.dtype() || p.size() != q.size() ||
            (!p.empty() && std::memcmp(p.data(), q.data(), p.size()) != 0)) {
            return false;
        }
    }
    return true;
}

bool has_nan(const std::vector<NamedValue>& outputs) {
    for (const auto& output : outputs) {
        if (output.value.is_tensor() && is_float(output.value.dtype())) {
            StatisticsOptions options;
            options.spread = StatisticsOptions::Spread::none;
            if (statistics(output.value, options).nans > 0) {
                return true;
            }
        }
    }
    return false;
}

std::string key_of(const Lane& lane) {
    std::string key;
    const auto add = [&](const auto& number) {
        key.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    for (const auto& c : lane.constants) {
        if (c.constant) {
            return {};
        }
        add(c.step);
        add(c.tensor);
        add(c.pokes.size());
        for (const auto& poke : c.pokes) {
            add(poke.stored);
            add(poke.word);
        }
    }
    for (const auto& c : lane.tensors) {
        add(c.tensor);
        add(c.reader);
        add(c.places.size());
        for (const auto place : c.places) {
            add(place);
        }
        add(c.effect.kind);
        add(c.effect.mask);
        add(c.effect.a);
        add(c.effect.b);
        add(c.effect.key);
        key += c.effect.name;
    }
    return key;
}

}  // namespace trocar::inject
