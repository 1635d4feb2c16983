#include "lab/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "util/sha256.h"
#include "util/text.h"

namespace trocar::lab {

namespace {

// Constants of integers up to this size say how something is computed: shapes, axes, pads.
constexpr std::size_t telling_elements = 64;

std::string constant_text(const Constant& constant) {
    auto text = fmt::format("{}[{}]", name(constant.dtype()), join(constant.shape(), ","));
    if (constant.is_sparse()) {
        return "sparse " + text;
    }
    if (constant.is_string()) {
        return fmt::format("{}{}", text, join(constant.string_values(), ","));
    }
    if (!is_float(constant.dtype()) && constant.element_count() <= telling_elements) {
        text += sha256_of(constant.bytes());
    }
    return text;
}

std::string graph_text(const Graph& graph);

struct AttributeText {
    std::string operator()(std::monostate) const { return "?"; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(float number) const { return fmt::format("{:a}", number); }
    std::string operator()(const std::string& text) const { return "'" + text + "'"; }
    std::string operator()(const Constant& constant) const { return constant_text(constant); }
    std::string operator()(const std::shared_ptr<Graph>& graph) const {
        return graph ? graph_text(*graph) : "";
    }
    std::string operator()(const Type& type) const { return type_text(type); }
    template <class T>
    std::string operator()(const std::vector<T>& list) const {
        std::string text;
        for (const auto& one : list) {
            text += (*this)(one) + ",";
        }
        return text;
    }
};

// Tensors by number, in the order in which they are met.
class Numbers {
public:
    std::size_t of(TensorId id) { return known_.emplace(index(id), known_.size()).first->second; }
    bool has(TensorId id) const { return known_.contains(index(id)); }

private:
    std::unordered_map<std::size_t, std::size_t> known_;
};

std::string graph_text(const Graph& graph) {
    Numbers numbers;
    std::string text = "{";
    for (const auto id : graph.inputs()) {
        text += fmt::format("in {} {};", numbers.of(id), type_text(graph.tensor(id).type));
    }
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        text += op_text(op);
        for (const auto* list : {&op.inputs, &op.outputs}) {
            for (const auto tensor : *list) {
                if (tensor == TensorId::none) {
                    text += " -";
                } else if (graph.tensor(tensor).constant && !numbers.has(tensor)) {
                    text += fmt::format(" {}={}", numbers.of(tensor),
                                        constant_text(*graph.tensor(tensor).constant));
                } else {
                    text += fmt::format(" {}", numbers.of(tensor));
                }
            }
            text += " >";
        }
    }
    for (const auto id : graph.outputs()) {
        text += fmt::format("out {};", numbers.of(id));
    }
    return text + "}";
}

}  // namespace

std::string op_text(const Op& op) {
    std::vector<std::string> attributes;
    for (const auto& attribute : op.attributes) {
        attributes.push_back(attribute.name + "=" + std::visit(AttributeText{}, attribute.value));
    }
    std::sort(attributes.begin(), attributes.end());
    return fmt::format("{}:{}({})", op.domain, op.type, join(attributes, ";"));
}

std::string signature(const Chain& chain, const Part& part, std::span<const Value> inputs) {
    const auto& graph = chain.model().graph;
    Numbers numbers;
    std::string text;
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
        text += fmt::format("in {} {}\n", numbers.of(part.inputs[i]),
                            i < inputs.size() ? value_text(inputs[i]) : "");
    }
    for (const auto id : part.ops) {
        const auto& op = graph.op(id);
        text += op_text(op);
        for (const auto* list : {&op.inputs, &op.captures, &op.outputs}) {
            for (const auto tensor : *list) {
                if (tensor == TensorId::none) {
                    text += " -";
                    continue;
                }
                const bool known = numbers.has(tensor);
                text += fmt::format(" {}", numbers.of(tensor));
                if (const auto* constant = chain.constant(tensor); constant != nullptr && !known) {
                    text += "=" + constant_text(*constant);
                }
            }
            text += " >";
        }
        text += "\n";
    }
    for (const auto id : part.outputs) {
        text += fmt::format("out {}\n", numbers.of(id));
    }
    return text;
}

}  // namespace trocar::lab
