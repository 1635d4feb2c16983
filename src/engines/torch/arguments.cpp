#include "engines/torch/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "trocar/error.h"
#include "util/elements.h"

namespace trocar::libtorch {

namespace {

using Names = std::vector<std::string>;

// "size[0]" → "size"; whether it is an element of a list.
std::pair<std::string, bool> argument_name(const std::string& text) {
    const auto at = text.find('[');
    return {text.substr(0, at), at != std::string::npos};
}

std::vector<BridgeParameter> parameters_of(const Bridge& bridge, const BridgeOp* schema) {
    std::vector<BridgeParameter> all;
    bridge.parameters(
        schema,
        [](void* into, const BridgeParameter& one) {
            static_cast<std::vector<BridgeParameter>*>(into)->push_back(one);
        },
        &all);
    return all;
}

Names names_by_schema(const Op& op, const std::vector<BridgeParameter>& parameters) {
    const auto count = op.inputs.size();
    const auto takes_one = [&](const BridgeParameter& one) {
        return one.kind == BridgeKind::tensor ||
               (one.kind == BridgeKind::other && one.required && op.attribute(one.name) == nullptr);
    };
    Names names;
    for (std::size_t i = 0; i < parameters.size() && names.size() < count; ++i) {
        const auto& one = parameters[i];
        if (op.attribute(one.name) != nullptr) {
            continue;
        }
        if (one.kind == BridgeKind::tensors) {
            const auto later = static_cast<std::size_t>(std::count_if(
                parameters.begin() + static_cast<std::ptrdiff_t>(i) + 1, parameters.end(),
                [&](const BridgeParameter& next) { return next.required && takes_one(next); }));
            const auto all = count - names.size() > later ? count - names.size() - later : 0;
            for (std::size_t k = 0; k < all; ++k) {
                names.push_back(fmt::format("{}[{}]", one.name, k));
            }
        } else if (takes_one(one)) {
            names.emplace_back(one.name);
        }
    }
    return names;
}

Names input_names(const Op& op, const Bridge& bridge, const BridgeOp* schema) {
    const auto* const named = op.attribute("inputs");
    const auto* const names = named != nullptr ? std::get_if<Names>(&named->value) : nullptr;
    const auto made = names != nullptr    ? *names
                      : schema != nullptr ? names_by_schema(op, parameters_of(bridge, schema))
                                          : Names();
    if (made.size() != op.inputs.size()) {
        throw Error(
            Fault::unsupported,
            fmt::format("{} '{}' does not say which arguments its inputs are", op.type, op.name));
    }
    return made;
}

void plain(const Attribute& attribute, Argument& made) {
    if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) {
        made.integers = {*integer};
    } else if (const auto* number = std::get_if<float>(&attribute.value)) {
        made.numbers = {static_cast<double>(*number)};
    } else if (const auto* all = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
        made.integers = *all;
    } else if (const auto* reals = std::get_if<std::vector<float>>(&attribute.value)) {
        made.numbers.assign(reals->begin(), reals->end());
    } else if (const auto* constant = std::get_if<Constant>(&attribute.value)) {
        made.numbers = numbers_of(*constant);
    } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
        made.text = *text;
        made.is_text = true;
    } else {
        throw Error(Fault::unsupported,
                    fmt::format("PyTorch is not given arguments like '{}'", attribute.name));
    }
}

using Computed = std::map<std::string, std::vector<std::size_t>>;  // elements, by argument

// Numbers, and "*" for each that is computed.
void mixed(const Names& texts, const std::vector<std::size_t>& elements, Argument& made) {
    std::size_t next = 0;
    for (const auto& text : texts) {
        std::int64_t number = 0;
        std::from_chars(text.data(), text.data() + text.size(), number);
        made.integers.push_back(number);
        made.inputs.push_back(
            text == "*" && next < elements.size() ? std::optional(elements[next++]) : std::nullopt);
    }
}

}  // namespace

std::vector<Argument> arguments_of(const Op& op, const Bridge& bridge, const BridgeOp* schema) {
    std::vector<Argument> all;
    const auto find = [&](const std::string& name) -> Argument& {
        const auto at = std::find_if(all.begin(), all.end(),
                                     [&](const Argument& one) { return one.name == name; });
        if (at != all.end()) {
            return *at;
        }
        all.push_back({});
        all.back().name = name;
        return all.back();
    };
    const auto names = input_names(op, bridge, schema);
    Computed computed;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        computed[argument_name(names[i]).first].push_back(i);
    }
    for (const auto& attribute : op.attributes) {
        if (attribute.name == "inputs" || attribute.name == "outputs") {
            continue;
        }
        auto& made = find(attribute.name);
        if (const auto* texts = std::get_if<Names>(&attribute.value)) {
            mixed(*texts, computed[attribute.name], made);
        } else {
            plain(attribute, made);
        }
    }
    for (const auto& [name, elements] : computed) {
        if (elements.empty()) {
            continue;
        }
        auto& made = find(name);
        if (made.inputs.empty() && made.integers.empty()) {
            for (const auto element : elements) {
                const bool none = op.inputs[element] == TensorId::none;
                made.inputs.push_back(none ? std::nullopt : std::optional(element));
            }
            // An optional tensor that is None is left out.
            const bool list = argument_name(names[elements[0]]).second;
            if (!list && !made.inputs[0]) {
                all.erase(all.begin() + (&made - all.data()));
            }
        }
    }
    return all;
}

}  // namespace trocar::libtorch
