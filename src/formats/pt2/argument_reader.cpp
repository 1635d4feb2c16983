#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "formats/pt2/graph_reader.h"
#include "formats/pt2/types.h"

// What the arguments of an op become: inputs or attributes.
namespace trocar::pt2 {

namespace {

constexpr int deepest_map = 8;

// None in the place of these is an input that is left out; None elsewhere is no attribute.
constexpr std::string_view optional_tensors[] = {
    "attn_bias", "attn_mask",          "bias",         "grad_bias",   "key_padding_mask", "mask",
    "offsets",   "per_sample_weights", "running_mean", "running_var", "weight",
};

// Infinite and undefined numbers are texts: JSON has none.
std::optional<double> real(const Json& value) {
    if (value.is_number()) {
        return value.number();
    }
    if (value.is_string()) {
        const auto& text = value.string();
        if (text == "Infinity" || text == "-Infinity") {
            const auto infinity = std::numeric_limits<double>::infinity();
            return text.front() == '-' ? -infinity : infinity;
        }
        if (text == "NaN") {
            return std::numeric_limits<double>::quiet_NaN();
        }
    }
    return std::nullopt;
}

bool fits_float(double value) {
    return !std::isfinite(value) || std::abs(value) <= std::numeric_limits<float>::max();
}

// A list as one element type; nothing when some element is of another kind.
template <class T, class Read>
std::optional<std::vector<T>> all(const Json& list, Read&& read) {
    if (!list.is_array()) {
        return std::nullopt;
    }
    std::vector<T> values;
    for (const auto& item : list) {
        std::optional<T> value = read(item);
        if (!value) {
            return std::nullopt;
        }
        values.push_back(std::move(*value));
    }
    return values;
}

std::optional<std::int64_t> whole(const Json& value) {
    if (value.is_boolean()) {
        return value.boolean() ? 1 : 0;
    }
    if (value.is_natural() && value.uint64() > INT64_MAX) {
        return std::nullopt;
    }
    return value.is_whole() ? std::optional(value.int64()) : std::nullopt;
}

std::optional<float> narrow(const Json& value) {
    const auto number = real(value);
    return number && fits_float(*number) ? std::optional(static_cast<float>(*number))
                                         : std::nullopt;
}

std::optional<std::string> text(const Json& value) {
    return value.is_string() ? std::optional(value.string()) : std::nullopt;
}

// An attribute for a plain value; nothing for kinds that are not known or values that do not fit.
std::optional<Attribute::Value> plain(const JsonPlace& place, const std::string& kind,
                                      const Json& value) {
    const auto wrap = [](auto found) -> std::optional<Attribute::Value> {
        return found ? std::optional<Attribute::Value>(std::move(*found)) : std::nullopt;
    };
    const auto named = [&](std::string (*name)(std::int64_t)) -> std::optional<Attribute::Value> {
        const auto number = whole(value);
        return number ? std::optional<Attribute::Value>(name(*number)) : std::nullopt;
    };
    if (kind == "as_int" || kind == "as_bool") {
        return wrap(whole(value));
    }
    if (kind == "as_ints" || kind == "as_bools") {
        return wrap(all<std::int64_t>(value, whole));
    }
    if (kind == "as_float") {
        const auto number = real(value);
        if (number && !fits_float(*number)) {
            return Constant::of(DType::f64, {}, std::vector<double>{*number});
        }
        return wrap(narrow(value));
    }
    if (kind == "as_floats") {
        return wrap(all<float>(value, narrow));
    }
    if (kind == "as_string" || kind == "as_operator") {
        return wrap(text(value));
    }
    if (kind == "as_strings") {
        return wrap(all<std::string>(value, text));
    }
    if (kind == "as_scalar_type") {
        return named(scalar_type_name);
    }
    if (kind == "as_memory_format") {
        return named(memory_format_name);
    }
    if (kind == "as_layout") {
        return named(layout_name);
    }
    if (kind == "as_device") {
        return device_name(place, value);
    }
    if (kind == "as_complex") {
        const auto above = real(place.member(value, "real"));
        const auto below = real(place.member(value, "imag"));
        if (above && below) {
            return Constant::of(DType::c128, {}, std::vector<double>{*above, *below});
        }
    }
    if (kind == "as_int_lists" || kind == "as_float_lists") {
        return wrap(all<std::string>(
            value, [](const Json& inner) { return std::optional(dump_json(inner)); }));
    }
    return std::nullopt;
}

}  // namespace

void GraphReader::set_attribute(Draft& draft, const std::string& name, Attribute::Value value) {
    auto& attributes = draft.spec.attributes;
    auto free = name;
    const auto taken = [&](const Attribute& a) { return a.name == free; };
    while (free == "inputs" || std::any_of(attributes.begin(), attributes.end(), taken)) {
        free += "'";
    }
    attributes.push_back(
        {.name = std::move(free), .value = std::move(value), .reference = {}, .source = {}});
}

void GraphReader::add_input(Draft& draft, const std::string& slot, TensorId id) const {
    draft.spec.inputs.push_back(id);
    draft.slots.push_back(slot);
}

void GraphReader::add_argument(const JsonPlace& place, Draft& draft, const std::string& name,
                               const Json& argument) {
    const auto [kind, value] = place.choice(argument);
    if (value == nullptr) {
        return;
    }
    if (const auto input = value_name(place, argument)) {
        add_input(draft, name, resolve(place, *input));
    } else if (kind == "as_none" || kind == "as_optional_tensor") {
        if (kind == "as_optional_tensor" ||
            std::find(std::begin(optional_tensors), std::end(optional_tensors), name) !=
                std::end(optional_tensors)) {
            add_input(draft, name, TensorId::none);
        }
    } else if (kind == "as_tensors" || kind == "as_optional_tensors" ||
               kind == "as_nested_tensors") {
        add_list(place, draft, name, kind, *value);
    } else if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools") {
        add_symbols(place, draft, name, *value);
    } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
        const auto inner = place.choice(*value);
        if (inner.value != nullptr) {
            add_plain(place, draft, name, inner.kind, *inner.value);
        }
    } else if (kind == "as_graph") {
        add_graph(place, draft, name, *value);
    } else if (kind == "as_string_to_argument" && value->is_object() &&
               std::count(name.begin(), name.end(), '.') < deepest_map) {
        for (const auto& [key, inner] : value->items()) {
            add_argument(place, draft, fmt::format("{}.{}", name, key), inner);
        }
    } else {
        add_plain(place, draft, name, kind, *value);
    }
}

void GraphReader::add_list(const JsonPlace& place, Draft& draft, const std::string& name,
                           const std::string& kind, const Json& list) {
    if (!list.is_array()) {
        place.fail(fmt::format("argument '{}' is no list", name));
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
        auto slot = fmt::format("{}[{}]", name, i);
        if (kind == "as_nested_tensors") {
            add_list(place, draft, slot, "as_tensors", list[i]);
        } else if (kind == "as_tensors") {
            add_input(draft, slot, resolve(place, place.text(list[i], "name")));
        } else {
            const auto inner = value_name(place, list[i]);
            add_input(draft, slot, inner ? resolve(place, *inner) : TensorId::none);
        }
    }
    if (list.empty()) {
        set_attribute(draft, name, std::vector<std::string>());
    }
}

// Numbers of which some are known only at run time: the list is an attribute of texts in which a
// "*" stands for each number that is an input.
void GraphReader::add_symbols(const JsonPlace& place, Draft& draft, const std::string& name,
                              const Json& list) {
    if (!list.is_array()) {
        place.fail(fmt::format("argument '{}' is no list", name));
    }
    std::vector<std::string> texts;
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto [kind, value] = place.choice(list[i]);
        if (kind == "as_name") {
            add_input(draft, fmt::format("{}[{}]", name, i),
                      resolve(place, place.as_text(*value, "a name")));
            texts.emplace_back("*");
            continue;
        }
        texts.push_back(value == nullptr ? std::string() : dump_json(*value));
        if (const auto number = value == nullptr ? std::nullopt : whole(*value)) {
            numbers.push_back(*number);
        }
    }
    if (numbers.size() == texts.size()) {
        set_attribute(draft, name, std::move(numbers));
    } else {
        set_attribute(draft, name, std::move(texts));
    }
}

void GraphReader::add_plain(const JsonPlace& place, Draft& draft, const std::string& name,
                            const std::string& kind, const Json& value) {
    if (auto found = plain(place, kind, value)) {
        set_attribute(draft, name, std::move(*found));
    } else {
        set_attribute(draft, name, fmt::format("{} {}", kind, dump_json(value)));
    }
}

void GraphReader::add_graph(const JsonPlace& place, Draft& draft, const std::string& name,
                            const Json& value) {
    const auto graph_name = place.text(value, "name", "");
    const auto inside = place.in(fmt::format("graph '{}'", graph_name));
    GraphReader reader(inside, inside.member(value, "graph"), depth_ + 1);
    reader.add_inputs();
    reader.add_ops();
    reader.add_outputs();
    auto graph = std::make_shared<Graph>(reader.finish());
    graph->name = graph_name;
    const bool numbered =
        !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    set_attribute(draft, numbered && !graph_name.empty() ? graph_name : name, std::move(graph));
}

}  // namespace trocar::pt2
