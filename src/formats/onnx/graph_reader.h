#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/onnx/declaration.h"
#include "formats/onnx/external.h"
#include "formats/onnx/reader.h"
#include "formats/onnx/schema.h"
#include "formats/onnx/tensor_proto.h"
#include "formats/onnx/wire.h"
#include "trocar/graph.h"
#include "trocar/model.h"

namespace trocar::onnx {

// The parts of a GraphProto, or of the graph in a FunctionProto, as they lie in the file.
struct GraphParts {
    Bytes whole;
    std::vector<Bytes> nodes;
    std::vector<Bytes> inputs;  // declarations
    std::vector<Bytes> outputs;
    std::vector<Bytes> value_infos;
    std::vector<Bytes> initializers;
    std::vector<Bytes> sparse_initializers;
    std::vector<Bytes> annotations;
    // Of a function: names only.
    std::vector<std::string_view> input_names;
    std::vector<std::string_view> output_names;
};

// Builds the graphs of one file. All functions throw Error(input).
class GraphReader {
public:
    GraphReader(FilePtr file, ExternalFiles& external)
        : file_(std::move(file)), external_(external) {}

    // `nested`: names that are not defined inside are captured from the graph around it.
    Graph read(Bytes message, int depth, bool nested);
    Graph build(const GraphParts& parts, int depth, bool nested);
    Attribute read_attribute(Bytes message, int depth);

private:
    struct Node {
        Bytes bytes;
        OpSpec spec;
        std::vector<std::string_view> inputs;
        std::vector<std::string_view> outputs;
        std::vector<TensorId> captures;  // of its subgraphs
    };
    Node read_node(Bytes message, int depth);
    void read_submessage(const Fields& at, schema::AttributeKind kind, Attribute& result);

    void add_inputs(Graph& graph, const GraphParts& parts, int depth);
    void add_constants(Graph& graph, const GraphParts& parts);
    void add_constant(Graph& graph, Bytes message, StoredTensor stored);
    void add_node_outputs(Graph& graph, std::vector<Node>& nodes);
    // The tensor of that name; captured or refused when the graph has none.
    TensorId resolve(Graph& graph, std::string_view name, bool nested, const Node* reader,
                     std::size_t number);
    void append(Graph& graph, std::vector<Node> nodes, bool nested);
    std::vector<std::size_t> order(const Graph& graph, const std::vector<Node>& nodes);
    void add_outputs(Graph& graph, const GraphParts& parts, int depth, bool nested,
                     GraphImage& image);
    void add_declarations(Graph& graph, const GraphParts& parts, int depth, GraphImage& image);
    // Makes `message` the declaration of the tensor, or one more when it has one.
    static void declare(Graph& graph, TensorId tensor, Bytes message, Declaration declaration,
                        GraphImage& image);
    void add_annotations(const Graph& graph, const GraphParts& parts, GraphImage& image);

    FilePtr file_;
    ExternalFiles& external_;
};

// How messages speak of an op before it is in a graph.
std::string describe_node(const OpSpec& spec, std::size_t number);

// The own domain of ONNX has two names; ops go by the empty one.
std::string_view plain_domain(std::string_view domain);

}  // namespace trocar::onnx
