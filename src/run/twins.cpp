#include "run/twins.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>

#include "util/text.h"

namespace trocar {

namespace {

// Larger constants are twins only of themselves: comparing them all would mean reading the file.
constexpr std::size_t compared_up_to = 4096;

std::optional<std::string> text_of(const Attribute& attribute) {
    const auto& value = attribute.value;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        return fmt::format("{}", *integer);
    }
    if (const auto* number = std::get_if<float>(&value)) {
        return fmt::format("{}", *number);
    }
    if (const auto* text = std::get_if<std::string>(&value)) {
        return *text;
    }
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
        return fmt::format("{}", join(*integers, ","));
    }
    if (const auto* numbers = std::get_if<std::vector<float>>(&value)) {
        return fmt::format("{}", join(*numbers, ","));
    }
    return std::nullopt;
}

bool gives_chance(const Op& op) {
    return op.type.starts_with("Random") || op.type == "Multinomial" || op.type == "Bernoulli" ||
           op.type == "Dropout";
}

class Numbering {
public:
    Numbering(const Graph& graph, const Plan& plan) : graph_(graph), plan_(plan) {
        first_.resize(graph.tensor_limit(), TensorId::none);
    }

    std::vector<TensorId> number() {
        for (const auto id : graph_.tensors()) {
            first_[index(id)] = id;
            const auto* constant = plan_.constants[index(id)];
            if (constant != nullptr) {
                first_[index(id)] = seen_.try_emplace(text_of(*constant), id).first->second;
            }
        }
        for (const auto id : graph_.ops()) {
            number(graph_.op(id));
        }
        return std::move(first_);
    }

private:
    static std::string text_of(const Constant& constant) {
        if (constant.is_sparse() || constant.is_string()) {
            return fmt::format("constant {}", static_cast<const void*>(&constant));
        }
        auto text = fmt::format("constant {} {} ", static_cast<int>(constant.dtype()),
                                join(constant.shape(), "x"));
        const auto bytes = constant.bytes();
        if (bytes.size() > compared_up_to) {
            return text + fmt::format("{}", static_cast<const void*>(bytes.data()));
        }
        return text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }

    // nullopt: an op that has no twins.
    std::optional<std::string> text_of(const Op& op) const {
        if (gives_chance(op) || !op.captures.empty()) {
            return std::nullopt;
        }
        auto text = fmt::format("{}:{}:{}", op.domain, op.type, op.outputs.size());
        for (const auto& attribute : op.attributes) {
            const auto value = trocar::text_of(attribute);
            if (!value) {
                return std::nullopt;
            }
            text += fmt::format(" {}={}", attribute.name, *value);
        }
        for (const auto input : op.inputs) {
            text +=
                input == TensorId::none ? " -" : fmt::format(" {}", index(first_[index(input)]));
        }
        return text;
    }

    void number(const Op& op) {
        const auto text = text_of(op);
        if (!text) {
            return;
        }
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            const auto output = op.outputs[slot];
            if (output != TensorId::none && plan_.constants[index(output)] == nullptr) {
                first_[index(output)] =
                    seen_.try_emplace(fmt::format("{} > {}", *text, slot), output).first->second;
            }
        }
    }

    const Graph& graph_;
    const Plan& plan_;
    std::vector<TensorId> first_;
    std::unordered_map<std::string, TensorId> seen_;
};

}  // namespace

std::vector<TensorId> find_twins(const Graph& graph, const Plan& plan) {
    return Numbering(graph, plan).number();
}

}  // namespace trocar
