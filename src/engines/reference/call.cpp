#include "engines/reference/call.h"

#include <fmt/format.h>

#include "engines/reference/machine.h"

namespace trocar::reference {

namespace {

template <class T>
const T* held(const Attribute* attribute) {
    if (attribute == nullptr) {
        return nullptr;
    }
    const auto* value = std::get_if<T>(&attribute->value);
    if (value == nullptr) {
        fail(fmt::format("the attribute '{}' is of another kind than the op wants",
                         attribute->name));
    }
    return value;
}

template <class T>
std::optional<T> copied(const Attribute* attribute) {
    const auto* value = held<T>(attribute);
    return value != nullptr ? std::optional(*value) : std::nullopt;
}

}  // namespace

Call::Call(Machine& machine, Frame& frame, const Step& step, const Op& op)
    : machine_(machine), frame_(frame), step_(step), op_(op) {}

std::int64_t Call::opset() const {
    return step_.opset;
}

bool Call::has(std::size_t slot) const {
    return slot < op_.inputs.size() && op_.inputs[slot] != TensorId::none &&
           value(slot).kind() != Value::Kind::none;
}

const Value& Call::value(std::size_t slot) const {
    if (slot >= op_.inputs.size() || op_.inputs[slot] == TensorId::none) {
        fail(fmt::format("there is no input {}", slot));
    }
    return frame_.values[index(op_.inputs[slot])];
}

const Value& Call::tensor(std::size_t slot) const {
    const auto& found = value(slot);
    if (!found.is_tensor() || !found.device().is_host()) {
        fail(fmt::format("input {} is no tensor on the host but {}", slot, value_text(found)));
    }
    return found;
}

double Call::number(std::size_t slot) const {
    const auto all = numbers(slot);
    require(all.size() == 1, "an input of one element is wanted");
    return all[0];
}

std::int64_t Call::integer(std::size_t slot) const {
    const auto all = integers(slot);
    require(all.size() == 1, "an input of one element is wanted");
    return all[0];
}

const Attribute* Call::attribute(std::string_view name) const {
    const auto* found = op_.attribute(name);
    if (found == nullptr || found->reference.empty()) {
        return found;
    }
    return frame_.function != nullptr ? frame_.function->attribute(found->reference) : nullptr;
}

std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) const {
    return copied<std::int64_t>(attribute(name)).value_or(otherwise);
}

double Call::number(std::string_view name, double otherwise) const {
    const auto* value = held<float>(attribute(name));
    return value != nullptr ? static_cast<double>(*value) : otherwise;
}

std::string Call::text(std::string_view name, std::string_view otherwise) const {
    return copied<std::string>(attribute(name)).value_or(std::string(otherwise));
}

std::optional<Integers> Call::integers(std::string_view name) const {
    return copied<Integers>(attribute(name));
}

std::optional<Numbers> Call::numbers(std::string_view name) const {
    const auto* values = held<std::vector<float>>(attribute(name));
    return values != nullptr ? std::optional(Numbers(values->begin(), values->end()))
                             : std::nullopt;
}

std::optional<std::vector<std::string>> Call::texts(std::string_view name) const {
    return copied<std::vector<std::string>>(attribute(name));
}

std::optional<Integers> Call::integers(std::string_view name, std::size_t slot) const {
    if (auto given = integers(name)) {
        return given;
    }
    return has(slot) ? std::optional(integers(slot)) : std::nullopt;
}

bool Call::wants(std::size_t slot) const {
    return slot < op_.outputs.size() && op_.outputs[slot] != TensorId::none;
}

void Call::give(std::size_t slot, Value value) {
    if (wants(slot)) {
        frame_.values[index(op_.outputs[slot])] = std::move(value);
    }
}

}  // namespace trocar::reference
