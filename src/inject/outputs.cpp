#include "inject/outputs.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "inject/bits.h"
#include "trocar/statistics.h"
#include "util/text.h"

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
    add(lane.constants.size());
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
        add(c.effect.name.size());
        key += c.effect.name;
    }
    return key;
}

namespace {

std::string element_text(const Value& value, std::size_t at) {
    const auto element = bits(value.dtype());
    if (element < 8 || element > 64) {
        return {};
    }
    return fmt::format("{:#0{}x}", load_bits(value.dtype(), value.bytes(), at), element / 4 + 2);
}

// Where two values with other bits differ.
std::string difference_text(const Value& expected, const Value& found) {
    const auto a = type_of(expected);
    const auto b = type_of(found);
    if (!expected.is_tensor() || !found.is_tensor() || type_text(a) != type_text(b)) {
        return fmt::format("{} instead of {}", type_text(b), type_text(a));
    }
    const auto size = std::max<std::size_t>(1, bits(expected.dtype()) / 8);
    const auto x = expected.bytes();
    const auto y = found.bytes();
    std::size_t differing = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i + size <= x.size(); i += size) {
        if (std::memcmp(x.data() + i, y.data() + i, size) != 0) {
            first = differing == 0 ? i / size : first;
            ++differing;
        }
    }
    if (bits(expected.dtype()) < 8) {
        return fmt::format("{} bytes differ, the first is number {}", differing, first);
    }
    auto rest = static_cast<std::int64_t>(first);
    std::vector<std::string> place;
    const auto shape = expected.shape();
    for (auto d = shape.size(); d-- > 0;) {
        place.insert(place.begin(), std::to_string(rest % shape[d]));
        rest /= shape[d];
    }
    return fmt::format("{} of {} elements differ, first at [{}]: {} instead of {}", differing,
                       x.size() / size, join(place, ","), element_text(found, first),
                       element_text(expected, first));
}

}  // namespace

std::string difference_text(const std::vector<NamedValue>& expected,
                            const std::vector<NamedValue>& found) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (!same_bits({expected[i]}, {found[i]})) {
            return fmt::format("output '{}': {}", expected[i].name,
                               difference_text(expected[i].value, found[i].value));
        }
    }
    return {};
}

}  // namespace trocar::inject
