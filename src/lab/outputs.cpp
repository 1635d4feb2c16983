#include "lab/outputs.h"

#include <fmt/format.h>

#include "lab/layout.h"
#include "trocar/statistics.h"

namespace trocar::lab {

std::string further(const std::string& hint) {
    return hint.empty() ? hint : "; " + hint;
}

void compare_value(std::vector<TensorComparison>& tensors, const std::string& name, const Value& a,
                   const Value& b, const std::function<Tolerance(const Value&)>& tolerance) {
    TensorComparison one;
    one.tensor = name;
    one.reference = type_of(a);
    one.found = type_of(b);
    const auto differ = [&](std::string reason) {
        one.verdict = Verdict::fail;
        one.factor = std::numeric_limits<double>::infinity();
        one.reason = std::move(reason);
        tensors.push_back(std::move(one));
    };
    const auto hint = [&] {
        return has_statistics(a) ? layout_hint(a, b, tolerance(a)) : std::string();
    };
    if (a.kind() != b.kind()) {
        return differ(fmt::format("{} instead of {}", value_text(b), value_text(a)));
    }
    if (a.kind() == Value::Kind::sequence || a.kind() == Value::Kind::map) {
        const auto left = a.items();
        const auto right = b.items();
        if (left.size() != right.size()) {
            return differ(fmt::format("{} items instead of {}", right.size(), left.size()));
        }
        for (std::size_t i = 0; i < left.size(); ++i) {
            compare_value(tensors, fmt::format("{}[{}]", name, i), left[i], right[i], tolerance);
        }
        return;
    }
    if (a.kind() == Value::Kind::none) {
        one.verdict = Verdict::pass;
    } else if (a.dtype() != b.dtype() || a.shape() != b.shape()) {
        return differ(fmt::format("{} instead of {}{}", value_text(b), value_text(a),
                                  further(one.layout = hint())));
    } else if (a.is_tensor() && a.dtype() == DType::string) {
        if (a.string_values() != b.string_values()) {
            return differ("other texts");
        }
        one.verdict = Verdict::pass;
    } else if (!has_statistics(a) || !has_statistics(b)) {
        one.reason = fmt::format("{} has no numbers that can be compared", value_text(a));
    } else {
        one.by_default = tolerance(a);
        one.difference = difference(a, b, DifferenceOptions{.tolerance = one.by_default});
        if (!one.difference->within()) {
            one.layout = hint();
        }
    }
    tensors.push_back(std::move(one));
}

std::string refusal_hint(std::span<const Value> reference, std::span<const Value> refused,
                         const std::function<Tolerance(std::size_t)>& tolerance) {
    for (std::size_t i = 0; i < reference.size() && i < refused.size(); ++i) {
        if (reference[i].is_tensor() && refused[i].is_tensor() &&
            reference[i].shape() != refused[i].shape()) {
            if (auto hint = layout_hint(reference[i], refused[i], tolerance(i)); !hint.empty()) {
                return further(hint);
            }
        }
    }
    return {};
}

}  // namespace trocar::lab
