#include "formats/tensorflow/graph_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <queue>

#include "trocar/error.h"

namespace trocar::tensorflow {

namespace {

constexpr std::size_t most_results = 1 << 16;  // of one node

// Results that have names of their own, in order; those of other ops are taken as they are read.
struct Named {
    std::string_view type;
    std::vector<std::string_view> results;
};
const std::vector<Named>& named_results() {
    static const std::vector<std::string_view> norm{"y",
                                                    "batch_mean",
                                                    "batch_variance",
                                                    "reserve_space_1",
                                                    "reserve_space_2",
                                                    "reserve_space_3"};
    static const std::vector<Named> all{
        {"CTCBeamSearchDecoder",
         {"decoded_indices", "decoded_values", "decoded_shape", "log_probability"}},
        {"CTCGreedyDecoder",
         {"decoded_indices", "decoded_values", "decoded_shape", "log_probability"}},
        {"CombinedNonMaxSuppression",
         {"nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"}},
        {"CudnnRNN", {"output", "output_h", "output_c", "reserve_space"}},
        {"CudnnRNNV2", {"output", "output_h", "output_c", "reserve_space", "host_reserved"}},
        {"CudnnRNNV3", {"output", "output_h", "output_c", "reserve_space", "host_reserved"}},
        {"FusedBatchNorm", {norm.begin(), norm.end() - 1}},
        {"FusedBatchNormV2", {norm.begin(), norm.end() - 1}},
        {"FusedBatchNormV3", norm},
        {"GRUBlockCell", {"r", "u", "c", "h"}},
        {"LSTMBlockCell", {"i", "cs", "f", "o", "ci", "co", "h"}},
        {"ListDiff", {"out", "idx"}},
        {"Lu", {"lu", "p"}},
        {"MaxPoolWithArgmax", {"output", "argmax"}},
        {"Merge", {"output", "value_index"}},
        {"NonMaxSuppressionV4", {"selected_indices", "valid_outputs"}},
        {"NonMaxSuppressionV5", {"selected_indices", "selected_scores", "valid_outputs"}},
        {"Qr", {"q", "r"}},
        {"QuantizeV2", {"output", "output_min", "output_max"}},
        {"QuantizedConv2D", {"output", "min_output", "max_output"}},
        {"QuantizedMatMul", {"out", "min_out", "max_out"}},
        {"Requantize", {"output", "output_min", "output_max"}},
        {"SelfAdjointEigV2", {"e", "v"}},
        {"SparseReshape", {"output_indices", "output_shape"}},
        {"Svd", {"s", "u", "v"}},
        {"Switch", {"output_false", "output_true"}},
        {"TensorListPopBack", {"output_handle", "tensor"}},
        {"TopKV2", {"values", "indices"}},
        {"Unique", {"y", "idx"}},
        {"UniqueV2", {"y", "idx"}},
        {"UniqueWithCounts", {"y", "idx", "count"}},
    };
    return all;
}

std::string free_name(const Graph& graph, const std::string& name) {
    return graph.find_tensor(name) ? graph.fresh_name(name) : name;
}

bool is_variable(const std::string& type) {
    return type == "VarHandleOp" || type == "VariableV2" || type == "Variable";
}

// Ops that are run for what they do, not for a result.
bool gives_nothing(const std::string& type) {
    static constexpr std::array<std::string_view, 8> silent{
        "NoOp",   "Assert",           "SaveV2",  "Save",
        "Assign", "AssignVariableOp", "PrintV2", "MergeV2Checkpoints"};
    return std::find(silent.begin(), silent.end(), type) != silent.end();
}

}  // namespace

void GraphReader::fail(const Node& node, std::string_view what) const {
    wire::fail_in(*file_, node.bytes,
                  fmt::format("node '{}' ({}): {}", node.spec.name, node.spec.type, what));
}

GraphReader::Reference GraphReader::parse(const std::string& text) const {
    Reference result;
    const auto last = text.rfind(':');
    if (last == std::string::npos) {
        result.node = text;
        return result;
    }
    const auto digits = std::string_view(text).substr(last + 1);
    if (digits.empty() || digits.size() > 6 ||
        digits.find_first_not_of("0123456789") != std::string_view::npos) {
        result.node = text;
        return result;
    }
    result.number = std::stoul(std::string(digits));
    result.node = text.substr(0, last);
    if (in_function_) {
        const auto colon = result.node.rfind(':');
        if (colon != std::string::npos) {
            result.argument = result.node.substr(colon + 1);
            result.node.resize(colon);
        }
    }
    return result;
}

// Keeps the nodes that the outputs are computed by. What only has to run before them is not.
void GraphReader::keep_needed(std::vector<Node>& nodes, const std::vector<std::string>& outputs) {
    prepare(nodes);
    std::vector<bool> needed(nodes.size());
    std::vector<std::size_t> open;
    const auto need = [&](const std::string& reference) {
        const auto found = by_name_.find(parse(reference).node);
        if (found != by_name_.end() && !needed[found->second]) {
            needed[found->second] = true;
            open.push_back(found->second);
        }
    };
    std::for_each(outputs.begin(), outputs.end(), need);
    while (!open.empty()) {
        const auto& inputs = nodes[open.back()].inputs;
        open.pop_back();
        std::for_each(inputs.begin(), inputs.end(), need);
    }
    std::vector<Node> kept;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (needed[i]) {
            kept.push_back(std::move(nodes[i]));
        }
    }
    left_out_ = nodes.size() - kept.size();
    nodes = std::move(kept);
}

void GraphReader::prepare(const std::vector<Node>& nodes) {
    by_name_.clear();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].spec.name.empty() || nodes[i].spec.type.empty()) {
            fail(nodes[i], "it has no name or no type");
        }
        if (!by_name_.emplace(nodes[i].spec.name, i).second) {
            fail(nodes[i], "there are two of that name");
        }
    }
}

void GraphReader::count_results(const std::vector<Node>& nodes,
                                const std::vector<std::string>& outputs) {
    results_.assign(nodes.size(), {});
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        for (const auto& named : named_results()) {
            if (in_function_ && named.type == nodes[i].spec.type) {
                for (const auto result : named.results) {
                    results_[i].emplace_back(result, 0);
                }
            }
        }
    }
    const auto note = [&](const std::string& text) {
        const auto reference = parse(text);
        const auto found = by_name_.find(reference.node);
        if (found == by_name_.end() || reference.number >= most_results) {
            return;
        }
        auto& results = results_[found->second];
        auto at = std::find_if(results.begin(), results.end(), [&](const auto& result) {
            return result.first == reference.argument;
        });
        if (at == results.end()) {
            at = results.insert(at, {reference.argument, 0});
        }
        at->second = std::max(at->second, reference.number + 1);
    };
    for (const auto& node : nodes) {
        std::for_each(node.inputs.begin(), node.inputs.end(), note);
    }
    std::for_each(outputs.begin(), outputs.end(), note);
    std::size_t total = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        auto& results = results_[i];
        while (results.size() > 1 && results.back().second == 0) {
            results.pop_back();  // behind the last that is read
        }
        if (results.empty() && !gives_nothing(nodes[i].spec.type)) {
            results.emplace_back("", 1);
        }
        for (auto& [argument, count] : results) {
            count = std::max<std::size_t>(count, 1);
            total += count;
        }
    }
    if (total > *allowed_) {
        throw Error(Fault::input,
                    fmt::format("'{}': its nodes would have more results than such a file names",
                                file_->name));
    }
    *allowed_ -= total;
}

bool GraphReader::add_constant(Graph& graph, Node& node) {
    std::optional<Constant> value;
    std::vector<Property> metadata = node.spec.metadata;
    if (node.spec.type == "Const") {
        for (auto& attribute : node.spec.attributes) {
            if (attribute.name == "value" && std::holds_alternative<Constant>(attribute.value)) {
                value = std::get<Constant>(attribute.value);
            }
        }
    } else if (is_variable(node.spec.type) && variables_) {
        if (auto found = variables_(node)) {
            value = std::move(found->constant);
            metadata.push_back({"kind", found->kind});
            metadata.push_back({"variable", node.spec.type});
        }
    }
    if (!value) {
        return false;
    }
    const auto id = graph.add_constant(free_name(graph, node.spec.name), std::move(*value));
    graph.tensor_from_file(id).metadata = std::move(metadata);
    const auto& results = results_[by_name_.at(node.spec.name)];
    const auto& argument = results.empty() ? std::string() : results.front().first;
    values_[argument.empty() ? node.spec.name + ":0"
                             : fmt::format("{}:{}:0", node.spec.name, argument)] = id;
    return true;
}

void GraphReader::add_input(Graph& graph, Node& node) {
    auto type = type_of(node, 0);
    for (const auto& attribute : node.spec.attributes) {
        const auto* dims = std::get_if<std::vector<std::int64_t>>(&attribute.value);
        if (attribute.name == "shape" && dims != nullptr && !type.dims) {
            auto& known = type.dims.emplace();
            for (const auto dim : *dims) {
                known.push_back({.value = dim < 0 ? -1 : dim, .symbol = {}});
            }
        }
    }
    const auto id = graph.add_input(free_name(graph, node.spec.name), std::move(type));
    graph.tensor_from_file(id).metadata = node.spec.metadata;
    values_[node.spec.name + ":0"] = id;
}

void GraphReader::add_results(Graph& graph, Node& node) {
    for (const auto& [argument, count] : results_[by_name_.at(node.spec.name)]) {
        for (std::size_t i = 0; i < count; ++i) {
            const auto key = argument.empty()
                                 ? fmt::format("{}:{}", node.spec.name, i)
                                 : fmt::format("{}:{}:{}", node.spec.name, argument, i);
            auto& outputs = node.spec.outputs;
            const auto slot = outputs.size();
            outputs.push_back(graph.add_tensor(free_name(graph, slot == 0 ? node.spec.name : key),
                                               type_of(node, slot)));
            values_[key] = outputs.back();
        }
    }
}

std::optional<TensorId> GraphReader::find(const std::string& reference) const {
    if (const auto whole = values_.find(reference); whole != values_.end()) {
        return whole->second;
    }
    auto found = values_.find(reference + ":0");
    if (found == values_.end() && in_function_ && reference.ends_with(":0")) {
        found = values_.find(reference.substr(0, reference.size() - 2));  // an argument
    }
    return found == values_.end() ? std::nullopt : std::optional(found->second);
}

TensorId GraphReader::resolve(const Node* reader, const std::string& reference) const {
    if (const auto found = find(reference)) {
        return *found;
    }
    const auto what = fmt::format("'{}' is a value that nothing defines", reference);
    if (reader != nullptr) {
        fail(*reader, what);
    }
    throw Error(Fault::input, fmt::format("'{}': output {}", file_->name, what));
}

// Each op as early as the order of the file lets it; on a loop the edge into a Merge waits for
// nobody.
std::vector<std::size_t> GraphReader::order(const std::vector<Node>& nodes) const {
    std::vector<std::vector<std::size_t>> readers(nodes.size());
    std::vector<std::size_t> open(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        for (const auto& input : nodes[i].inputs) {
            const auto found = by_name_.find(parse(input).node);
            if (found == by_name_.end() || found->second == i || !is_op_[found->second]) {
                continue;
            }
            if (nodes[found->second].spec.type == "NextIteration") {
                continue;
            }
            readers[found->second].push_back(i);
            ++open[i];
        }
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (open[i] == 0) {
            ready.push(i);
        }
    }
    std::vector<std::size_t> result;
    while (!ready.empty()) {
        const auto i = ready.top();
        ready.pop();
        result.push_back(i);
        for (const auto reader : readers[i]) {
            if (--open[reader] == 0) {
                ready.push(reader);
            }
        }
    }
    if (result.size() != nodes.size()) {
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            if (open[i] != 0) {
                fail(nodes[i], "it is on a cycle, or reads what is on one");
            }
        }
    }
    return result;
}

void GraphReader::append(Graph& graph, std::vector<Node>& nodes) {
    std::vector<bool> done(nodes.size());
    for (const auto i : order(nodes)) {
        done[i] = true;
        if (!is_op_[i]) {
            continue;
        }
        auto& node = nodes[i];
        for (const auto& input : node.inputs) {
            const auto writer = by_name_.find(parse(input).node);
            if (writer != by_name_.end() && is_op_[writer->second] && !done[writer->second]) {
                node.spec.metadata.push_back({"back edge", input});
                continue;
            }
            const auto id = resolve(&node, input);
            if (writer != by_name_.end() && writer->second == i) {
                node.spec.metadata.push_back({"back edge", input});
                continue;
            }
            node.spec.inputs.push_back(id);
        }
        graph.append(std::move(node.spec));
    }
}

void GraphReader::set_outputs(Graph& graph, const std::vector<std::string>& outputs) const {
    std::vector<TensorId> ids;
    for (const auto& output : outputs) {
        ids.push_back(resolve(nullptr, output));
    }
    graph.set_outputs(std::move(ids));
}

Graph GraphReader::build(std::vector<Node>& nodes, const std::vector<std::string>& inputs) {
    Graph graph;
    is_op_.assign(nodes.size(), false);
    for (const auto& input : inputs) {
        const auto found = by_name_.find(input);
        if (found != by_name_.end() && !graph.find_tensor(input)) {
            add_input(graph, nodes[found->second]);
        }
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!values_.contains(nodes[i].spec.name + ":0") && !add_constant(graph, nodes[i])) {
            is_op_[i] = true;
            add_results(graph, nodes[i]);
        }
    }
    append(graph, nodes);
    return graph;
}

Graph GraphReader::read(std::vector<Node> nodes) {
    in_function_ = false;
    left_out_ = 0;
    values_.clear();
    prepare(nodes);
    count_results(nodes, {});
    std::vector<std::string> inputs;
    for (const auto& node : nodes) {
        if (node.spec.type == "Placeholder") {
            inputs.push_back(node.spec.name);
        }
    }
    auto graph = build(nodes, inputs);
    std::vector<TensorId> unread;
    for (const auto id : graph.ops()) {
        const auto& written = graph.op(id).outputs;
        if (!written.empty() && std::all_of(written.begin(), written.end(), [&](TensorId t) {
                return graph.tensor(t).uses.empty();
            })) {
            unread.push_back(written.front());
        }
    }
    graph.set_outputs(std::move(unread));
    graph.mark_read();
    return graph;
}

Graph GraphReader::read_part(std::vector<Node> nodes, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs) {
    in_function_ = false;
    values_.clear();
    prepare(nodes);
    // An input is where the part begins; one that no output needs is an input all the same.
    auto wanted = outputs;
    for (const auto& input : inputs) {
        const auto found = by_name_.find(input);
        if (found == by_name_.end()) {
            throw Error(Fault::input, fmt::format("'{}': input '{}' is a node that is not there",
                                                  file_->name, input));
        }
        nodes[found->second].inputs.clear();
        wanted.push_back(input);
    }
    keep_needed(nodes, wanted);
    prepare(nodes);
    count_results(nodes, outputs);
    auto graph = build(nodes, inputs);
    set_outputs(graph, outputs);
    graph.mark_read();
    return graph;
}

Graph GraphReader::read_body(std::vector<Node> nodes, const std::vector<Argument>& arguments,
                             const std::vector<std::string>& results) {
    in_function_ = true;
    values_.clear();
    keep_needed(nodes, results);
    prepare(nodes);
    count_results(nodes, results);
    Graph graph;
    for (const auto& argument : arguments) {
        if (argument.name.empty() || values_.contains(argument.name)) {
            throw Error(Fault::input, fmt::format("'{}': two arguments have the name '{}'",
                                                  file_->name, argument.name));
        }
        values_[argument.name] = graph.add_input(argument.name, argument.type);
    }
    is_op_.assign(nodes.size(), false);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        is_op_[i] = !add_constant(graph, nodes[i]);
        if (is_op_[i]) {
            add_results(graph, nodes[i]);
        }
    }
    append(graph, nodes);
    set_outputs(graph, results);
    graph.mark_read();
    return graph;
}

}  // namespace trocar::tensorflow
