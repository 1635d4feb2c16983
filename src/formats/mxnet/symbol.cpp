#include "formats/mxnet/symbol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

#include "formats/keep_unknown.h"
#include "formats/mxnet/attributes.h"
#include "trocar/error.h"

namespace trocar::mxnet {

namespace {

constexpr int deepest = 32;                     // graphs within graphs
constexpr std::int64_t most_outputs = 1 << 16;  // of one op
// Of all ops: a number costs a file nothing.
constexpr std::size_t outputs_allowance = 100'000;
constexpr std::size_t outputs_per_op = 64;

// Means, masks and norms, which the backward pass wants.
bool has_hidden_results(std::string_view type) {
    static constexpr std::array<std::string_view, 9> types{
        "BatchNorm",       "BatchNorm_v1", "Dropout",   "GroupNorm", "InstanceNorm",
        "L2Normalization", "LRN",          "LayerNorm", "LeakyReLU"};
    return std::find(types.begin(), types.end(), type) != types.end();
}

class SymbolReader {
public:
    SymbolReader(const JsonPlace& place, const Json& symbol, const Arrays& arrays, int depth)
        : place_(place), symbol_(symbol), arrays_(arrays), depth_(depth) {}

    Graph read() {
        if (depth_ > deepest) {
            place_.fail(fmt::format("graphs lie more than {} deep in one another", deepest));
        }
        const auto& nodes = place_.list(symbol_, "nodes");
        count_outputs(nodes);
        std::size_t number = 0;
        for (const auto& node : nodes) {
            read_node(node, number++);
        }
        std::vector<TensorId> outputs;
        for (const auto& head : place_.list(symbol_, "heads")) {
            outputs.push_back(entry(place_.in("an output"), head));
        }
        graph_.set_outputs(std::move(outputs));
        keep_unknown(symbol_, {"nodes", "heads", "arg_nodes", "node_row_ptr", "attrs"},
                     graph_.metadata);
        mark_labels();
        graph_.mark_read();
        return std::move(graph_);
    }

private:
    // The file may say how many outputs each node has; else it is as many as are read.
    void count_outputs(const Json& nodes) {
        counts_.assign(nodes.size(), 1);
        const auto& rows = place_.list(symbol_, "node_row_ptr");
        if (rows.size() == nodes.size() + 1) {
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                const auto count = place_.integer(rows[i + 1], "'node_row_ptr'") -
                                   place_.integer(rows[i], "'node_row_ptr'");
                if (count < 0 || count > most_outputs) {
                    place_.fail(fmt::format("op {} would have {} outputs", i, count));
                }
                counts_[i] = static_cast<std::size_t>(count);
            }
        }
        // Results that MXNet keeps for itself are there only where somebody reads them.
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const auto* op = nodes[i].find("op");
            if (op != nullptr && op->is_string() && has_hidden_results(op->string())) {
                counts_[i] = 1;
            }
        }
        const auto note = [&](const Json& reference) {
            const auto [node, slot] = split_entry(place_, reference);
            if (node < counts_.size()) {
                counts_[node] = std::max(counts_[node], slot + 1);
            }
        };
        for (const auto& node : nodes) {
            for (const auto& reference : place_.list(node, "inputs")) {
                note(reference);
            }
        }
        for (const auto& head : place_.list(symbol_, "heads")) {
            note(head);
        }
        const auto total = std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
        if (total > outputs_allowance + nodes.size() * outputs_per_op) {
            place_.fail(fmt::format("{} ops would have {} outputs", nodes.size(), total));
        }
    }

    // [node, output] or [node, output, version].
    static std::pair<std::size_t, std::size_t> split_entry(const JsonPlace& place,
                                                           const Json& reference) {
        if (!reference.is_array() || reference.size() < 2) {
            place.fail("a reference to a value is no pair of numbers");
        }
        const auto node = place.integer(reference[0], "the number of an op");
        const auto slot = place.integer(reference[1], "the number of an output");
        if (node < 0 || slot < 0 || slot >= most_outputs) {
            place.fail(fmt::format("there is no output {} of op {}", slot, node));
        }
        return {static_cast<std::size_t>(node), static_cast<std::size_t>(slot)};
    }

    TensorId entry(const JsonPlace& place, const Json& reference) const {
        const auto [node, slot] = split_entry(place, reference);
        if (node >= values_.size() || slot >= values_[node].size()) {
            place.fail(fmt::format("output {} of op {} is not defined before it", slot, node));
        }
        return values_[node][slot];
    }

    void read_node(const Json& node, std::size_t number) {
        const auto& type = place_.text(node, "op");
        const auto& name = place_.text(node, "name");
        const auto inside = place_.in(fmt::format("op {} ({} '{}')", number, type, name));
        std::vector<Property> texts;
        for (const char* key : {"attrs", "attr", "param"}) {  // as versions went by
            for (const auto& [attribute, value] : inside.object(node, key).items()) {
                texts.push_back({attribute, dump_json(value)});
            }
        }
        if (type == "null") {
            values_.push_back({add_variable(inside, name, std::move(texts))});
            return;
        }
        OpSpec spec;
        spec.type = type;
        spec.name = name;
        for (auto& [key, value] : texts) {
            if (key.starts_with("__")) {
                spec.metadata.push_back({key, value});
            } else {
                spec.attributes.push_back(
                    {.name = key, .value = read_attribute(value), .reference = {}, .source = {}});
            }
        }
        for (const auto& reference : inside.list(node, "inputs")) {
            spec.inputs.push_back(entry(inside, reference));
        }
        std::size_t body = 0;
        for (const auto& subgraph : inside.list(node, "subgraphs")) {
            auto label = fmt::format("subgraph{}", body++);
            auto graph =
                std::make_shared<Graph>(read_symbol(inside.in(label), subgraph, {}, depth_ + 1));
            spec.attributes.push_back({.name = std::move(label),
                                       .value = std::move(graph),
                                       .reference = {},
                                       .source = {}});
        }
        keep_unknown(
            node,
            {"op", "name", "attrs", "attr", "param", "inputs", "subgraphs", "backward_source_id"},
            spec.metadata);
        const auto count = counts_[number];
        for (std::size_t i = 0; i < count; ++i) {
            const auto label = count == 1 ? name + "_output" : fmt::format("{}_output{}", name, i);
            spec.outputs.push_back(graph_.add_tensor(free_name(label), {}));
        }
        values_.push_back(spec.outputs);
        graph_.append(std::move(spec));
    }

    // What only the losses of training read.
    void mark_labels() {
        const auto is_loss = [&](const Use& use) {
            const auto& type = graph_.op(use.op).type;
            return use.slot == 1 && (type.ends_with("RegressionOutput") || type == "SVMOutput" ||
                                     type == "SoftmaxOutput" || type == "Softmax");
        };
        for (const auto id : graph_.inputs()) {
            const auto& uses = graph_.tensor(id).uses;
            if (!uses.empty() && std::all_of(uses.begin(), uses.end(), is_loss)) {
                graph_.tensor_from_file(id).metadata.push_back({"kind", "label"});
            }
        }
    }

    std::string free_name(const std::string& name) const {
        return name.empty() || graph_.find_tensor(name) ? graph_.fresh_name(name) : name;
    }

    TensorId add_variable(const JsonPlace& place, const std::string& name,
                          std::vector<Property> texts) {
        if (name.empty()) {
            place.fail("a variable has no name");
        }
        if (graph_.find_tensor(name)) {
            place.fail("there are two of that name");
        }
        TensorId id{};
        const auto array = arrays_.by_name.find(name);
        if (array != arrays_.by_name.end()) {
            id = graph_.add_constant(name, array->second.constant);
            texts.push_back({"kind", array->second.kind});
        } else {
            id = graph_.add_input(name, declared_type(texts));
        }
        graph_.tensor_from_file(id).metadata = std::move(texts);
        return id;
    }

    // 0 in a shape is a dimension that is not known. Numbers are of single precision unless a file
    // says otherwise.
    static Type declared_type(const std::vector<Property>& texts) {
        Type type = Type::tensor(DType::f32);
        for (const auto& [key, value] : texts) {
            const auto read = read_attribute(value);
            if (key == "__shape__") {
                if (const auto* dims = std::get_if<std::vector<std::int64_t>>(&read)) {
                    auto& known = type.dims.emplace();
                    for (const auto dim : *dims) {
                        known.push_back({.value = dim > 0 ? dim : -1, .symbol = {}});
                    }
                }
            } else if (key == "__dtype__") {
                if (const auto* number = std::get_if<std::int64_t>(&read)) {
                    type.dtype = dtype_of(*number);
                }
            }
        }
        return type;
    }

    const JsonPlace& place_;
    const Json& symbol_;
    const Arrays& arrays_;
    int depth_;
    Graph graph_;
    std::vector<std::size_t> counts_;
    std::vector<std::vector<TensorId>> values_;  // of each node, its outputs
};

}  // namespace

Graph read_symbol(const JsonPlace& place, const Json& symbol, const Arrays& arrays, int depth) {
    return SymbolReader(place, symbol, arrays, depth).read();
}

}  // namespace trocar::mxnet
