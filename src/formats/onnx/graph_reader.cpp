#include "formats/onnx/graph_reader.h"

#include <fmt/format.h>

#include <queue>

#include "formats/onnx/declaration.h"
#include "formats/onnx/schema.h"
#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar::onnx {

using namespace schema;

std::string describe_node(const OpSpec& spec, std::size_t number) {
    return spec.name.empty() ? fmt::format("op {} ({})", number, spec.type)
                             : fmt::format("op {} ({} '{}')", number, spec.type, spec.name);
}

namespace {

// Gives back the pages of a mapped file that a walk has passed: the system maps many more than are
// looked at, and weights should not count as memory in use because somebody stepped over them.
class Sweeper {
public:
    Sweeper(const File& file, Bytes walk) : mapped_(file.is_mapped), from_(walk.data()) {}

    void passed(Bytes field) {
        constexpr std::ptrdiff_t step = 1 << 21;
        const auto end = field.data() + field.size();
        if (mapped_ && end - from_ > step) {
            release_pages({from_, end});
            from_ = end;
        }
    }

private:
    bool mapped_;
    const std::byte* from_;
};

}  // namespace

Graph GraphReader::read(Bytes message, int depth, bool nested) {
    Sweeper sweeper(*file_, message);
    GraphParts parts;
    parts.whole = message;
    std::string_view name;
    std::string_view doc;
    std::vector<Property> metadata;
    for (Fields at(*file_, message, depth); at.next(); sweeper.passed(at.whole())) {
        switch (at.number()) {
            case graph::node:
                parts.nodes.push_back(at.bytes());
                break;
            case graph::name:
                name = at.text();
                break;
            case graph::initializer:
                parts.initializers.push_back(at.bytes());
                break;
            case graph::sparse_initializer:
                parts.sparse_initializers.push_back(at.bytes());
                break;
            case graph::doc:
                doc = at.text();
                break;
            case graph::input:
                parts.inputs.push_back(at.bytes());
                break;
            case graph::output:
                parts.outputs.push_back(at.bytes());
                break;
            case graph::value_info:
                parts.value_infos.push_back(at.bytes());
                break;
            case graph::quantization:
                parts.annotations.push_back(at.bytes());
                break;
            case graph::metadata:
                metadata.push_back(read_property(*file_, at.bytes()));
                break;
            default:
                break;
        }
    }
    auto result = build(parts, depth, nested);
    result.name = name;
    result.doc = doc;
    result.metadata = std::move(metadata);
    return result;
}

Graph GraphReader::build(const GraphParts& parts, int depth, bool nested) {
    Graph result;
    auto image = std::make_shared<GraphImage>();
    add_inputs(result, parts, depth);
    add_constants(result, parts);
    std::vector<Node> nodes;
    nodes.reserve(parts.nodes.size());
    for (const auto message : parts.nodes) {
        nodes.push_back(read_node(message, depth + 1));
        if (nodes.back().spec.type.empty()) {
            fail_in(*file_, message, fmt::format("op {} has no type", nodes.size() - 1));
        }
    }
    add_node_outputs(result, nodes);
    append(result, std::move(nodes), nested);
    add_outputs(result, parts, depth, nested, *image);
    add_declarations(result, parts, depth, *image);
    add_annotations(result, parts, *image);
    result.source.bytes = parts.whole;
    if (!image->more_declarations.empty() || !image->annotated.empty()) {
        result.image = std::move(image);
    }
    result.mark_read();
    return result;
}

void GraphReader::add_inputs(Graph& graph, const GraphParts& parts, int depth) {
    const auto add = [&](std::string_view name, Bytes place, Type type) {
        if (name.empty()) {
            fail_in(*file_, place, fmt::format("input {} has no name", graph.inputs().size()));
        }
        if (graph.find_tensor(name)) {
            fail_in(*file_, place, fmt::format("two inputs have the name '{}'", name));
        }
        return graph.add_input(std::string(name), std::move(type));
    };
    for (const auto message : parts.inputs) {
        auto read = read_declaration(*file_, message, depth + 1);
        auto& tensor = graph.tensor_from_file(add(read.name, message, std::move(read.type)));
        tensor.declaration.bytes = message;
        tensor.doc = read.doc;
        tensor.metadata = std::move(read.metadata);
    }
    for (const auto name : parts.input_names) {
        add(name, std::as_bytes(std::span(name.data(), name.size())), {});
    }
}

void GraphReader::add_constants(Graph& graph, const GraphParts& parts) {
    Sweeper sweeper(*file_, parts.initializers.empty() ? Bytes() : parts.initializers.front());
    for (const auto message : parts.initializers) {
        add_constant(graph, message, read_tensor(file_, message, external_, "initializer"));
        sweeper.passed(message);
    }
    for (const auto message : parts.sparse_initializers) {
        add_constant(graph, message, read_sparse(file_, message, external_, "initializer"));
    }
}

void GraphReader::add_constant(Graph& graph, Bytes message, StoredTensor stored) {
    if (stored.name.empty()) {
        fail_in(*file_, message, "an initializer has no name");
    }
    auto known = graph.find_tensor(stored.name);
    if (known && graph.tensor(*known).constant) {
        fail_in(*file_, message, fmt::format("two initializers have the name '{}'", stored.name));
    }
    if (known) {
        graph.tensor_from_file(*known).constant = std::move(stored.constant);
    } else {
        known = graph.add_constant(std::string(stored.name), std::move(stored.constant));
        auto& tensor = graph.tensor_from_file(*known);
        tensor.doc = stored.doc;
        tensor.metadata = std::move(stored.metadata);
    }
    graph.tensor_from_file(*known).constant_source.bytes = message;
}

void GraphReader::add_node_outputs(Graph& graph, std::vector<Node>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        auto& node = nodes[i];
        for (const auto name : node.outputs) {
            if (name.empty()) {
                node.spec.outputs.push_back(TensorId::none);
                continue;
            }
            if (const auto other = graph.find_tensor(name)) {
                const auto& tensor = graph.tensor(*other);
                fail_in(*file_, node.bytes,
                        fmt::format("{} writes tensor '{}', which is also {}",
                                    describe_node(node.spec, i), name,
                                    tensor.is_input   ? "an input"
                                    : tensor.constant ? "an initializer"
                                                      : "written by another op or twice by this"));
            }
            node.spec.outputs.push_back(graph.add_tensor(std::string(name), {}));
        }
    }
}

TensorId GraphReader::resolve(Graph& graph, std::string_view name, bool nested, const Node* reader,
                              std::size_t number) {
    if (const auto found = graph.find_tensor(name)) {
        return *found;
    }
    if (nested) {
        return graph.add_capture(std::string(name));
    }
    fail_in(*file_,
            reader != nullptr ? reader->bytes : std::as_bytes(std::span(name.data(), name.size())),
            reader != nullptr ? fmt::format("{} reads tensor '{}', which nothing defines",
                                            describe_node(reader->spec, number), name)
                              : fmt::format("output '{}' is a tensor that nothing defines", name));
}

void GraphReader::append(Graph& graph, std::vector<Node> nodes, bool nested) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        auto& node = nodes[i];
        for (const auto name : node.inputs) {
            node.spec.inputs.push_back(name.empty() ? TensorId::none
                                                    : resolve(graph, name, nested, &node, i));
        }
        for (const auto& attribute : node.spec.attributes) {
            const auto capture = [&](const Graph& body) {
                for (const auto id : body.captured()) {
                    node.captures.push_back(resolve(graph, body.tensor(id).name, nested, &node, i));
                }
            };
            if (const auto* one = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) {
                capture(**one);
            } else if (const auto* all =
                           std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
                for (const auto& body : *all) {
                    capture(*body);
                }
            }
        }
    }
    for (const auto i : order(graph, nodes)) {
        auto& node = nodes[i];
        OpId id{};
        try {
            id = graph.append(std::move(node.spec));
        } catch (const Error& e) {
            fail_in(*file_, node.bytes, e.what());
        }
        graph.op_from_file(id).source.bytes = node.bytes;
    }
}

namespace {

// One op on a cycle: from an op that waits, always on to one that it waits for.
std::size_t find_on_cycle(const std::vector<std::vector<std::size_t>>& waits_for,
                          const std::vector<bool>& done, std::size_t start) {
    std::vector<bool> seen(waits_for.size());
    auto at = start;
    while (!seen[at]) {
        seen[at] = true;
        for (const auto other : waits_for[at]) {
            if (!done[other]) {
                at = other;
                break;
            }
        }
    }
    return at;
}

}  // namespace

// The order of the file where that is a valid one; else each op as early as that order lets it.
std::vector<std::size_t> GraphReader::order(const Graph& graph, const std::vector<Node>& nodes) {
    constexpr auto nobody = static_cast<std::size_t>(-1);
    std::vector<std::size_t> writer(graph.tensor_limit(), nobody);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        for (const auto output : nodes[i].spec.outputs) {
            if (output != TensorId::none) {
                writer[index(output)] = i;
            }
        }
    }
    std::vector<std::size_t> result;
    result.reserve(nodes.size());
    bool in_order = true;
    const auto for_each_writer = [&](std::size_t i, auto&& each) {
        for (const auto* list : {&nodes[i].spec.inputs, &nodes[i].captures}) {
            for (const auto input : *list) {
                if (input != TensorId::none && writer[index(input)] != nobody) {
                    each(writer[index(input)]);
                }
            }
        }
    };
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        for_each_writer(i, [&](std::size_t other) { in_order = in_order && other < i; });
        result.push_back(i);
    }
    if (in_order) {
        return result;
    }
    result.clear();
    std::vector<std::vector<std::size_t>> waits_for(nodes.size());
    std::vector<std::vector<std::size_t>> readers(nodes.size());
    std::vector<std::size_t> open(nodes.size());
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        for_each_writer(i, [&](std::size_t other) {
            waits_for[i].push_back(other);
            readers[other].push_back(i);
        });
        open[i] = waits_for[i].size();
        if (open[i] == 0) {
            ready.push(i);
        }
    }
    std::vector<bool> done(nodes.size());
    while (!ready.empty()) {
        const auto i = ready.top();
        ready.pop();
        done[i] = true;
        result.push_back(i);
        for (const auto reader : readers[i]) {
            if (--open[reader] == 0) {
                ready.push(reader);
            }
        }
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!done[i]) {
            const auto at = find_on_cycle(waits_for, done, i);
            fail_in(*file_, nodes[at].bytes,
                    fmt::format("{} is on a cycle: it needs its own output",
                                describe_node(nodes[at].spec, at)));
        }
    }
    return result;
}

void GraphReader::declare(Graph& graph, TensorId id, Bytes message, Declaration declaration,
                          GraphImage& image) {
    auto& tensor = graph.tensor_from_file(id);
    if (!tensor.declaration.bytes.empty() || message.empty()) {
        image.more_declarations.emplace(message.data(), id);
        return;
    }
    tensor.declaration.bytes = message;
    if (!tensor.constant || tensor.is_input) {
        tensor.type = std::move(declaration.type);
    }
    if (tensor.doc.empty()) {
        tensor.doc = declaration.doc;
    }
    if (tensor.metadata.empty()) {
        tensor.metadata = std::move(declaration.metadata);
    }
}

void GraphReader::add_outputs(Graph& graph, const GraphParts& parts, int depth, bool nested,
                              GraphImage& image) {
    std::vector<TensorId> outputs;
    for (const auto message : parts.outputs) {
        auto read = read_declaration(*file_, message, depth + 1);
        if (read.name.empty()) {
            fail_in(*file_, message, fmt::format("output {} has no name", outputs.size()));
        }
        outputs.push_back(resolve(graph, read.name, nested, nullptr, 0));
        declare(graph, outputs.back(), message, std::move(read), image);
    }
    for (const auto name : parts.output_names) {
        outputs.push_back(resolve(graph, name, nested, nullptr, 0));
    }
    try {
        graph.set_outputs(std::move(outputs));
    } catch (const Error& e) {
        fail_in(*file_, parts.whole, e.what());
    }
}

void GraphReader::add_declarations(Graph& graph, const GraphParts& parts, int depth,
                                   GraphImage& image) {
    for (const auto message : parts.value_infos) {
        auto read = read_declaration(*file_, message, depth + 1);
        if (const auto id = graph.find_tensor(read.name)) {
            declare(graph, *id, message, std::move(read), image);
        } else {
            image.more_declarations.emplace(message.data(), TensorId::none);
        }
    }
}

void GraphReader::add_annotations(const Graph& graph, const GraphParts& parts, GraphImage& image) {
    const auto note = [&](std::string_view name) {
        if (const auto id = graph.find_tensor(name)) {
            image.annotated.emplace(name, *id);
        }
    };
    for (const auto message : parts.annotations) {
        for (Fields at(*file_, message); at.next();) {
            if (at.number() == annotation::tensor) {
                note(at.text());
            } else if (at.number() == annotation::parameter) {
                note(read_property(*file_, at.bytes()).value);
            }
        }
    }
}

}  // namespace trocar::onnx
