#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "formats/onnx/reader.h"
#include "formats/onnx/rope.h"
#include "formats/onnx/wire.h"
#include "formats/onnx/writer.h"
#include "trocar/graph.h"

namespace trocar::onnx {

// Mentions the parts of a graph in a message that is written over its base: of a graph that was
// not edited only those that can differ all the same.
class GraphWriter {
public:
    enum class Kind { main, nested, function };

    // All of them must outlive the writer.
    GraphWriter(const Graph& graph, const Placements& places, Kind kind);

    void mention(Rewrite& message, Bytes base) const;

private:
    // An element of a repeated field: a live thing, or bytes that stay.
    struct Declared {
        TensorId tensor;
        Bytes kept;
    };
    bool is_new() const { return graph_.source.bytes.empty(); }
    bool is_edited() const { return is_new() || graph_.source.edited; }
    void mention_nodes(Rewrite& message, Bytes base) const;
    void mention_constants(Rewrite& message, Bytes base) const;
    void mention_inputs_and_outputs(Rewrite& message) const;
    void mention_declarations(Rewrite& message, Bytes base) const;
    void mention_annotations(Rewrite& message, Bytes base) const;
    std::vector<OpId> ops_in_file_order(Bytes base) const;
    std::vector<TensorId> constants_in_file_order(Bytes base, bool sparse) const;
    std::vector<Declared> declarations_in_file_order(Bytes base) const;
    Rope constant(TensorId id) const;
    Rope op(OpId id) const;
    Rope constant_op(TensorId id) const;
    Rope declaration(TensorId id, const Fields* slot) const;
    std::string current_name(const std::string& name) const;

    const Graph& graph_;
    const Placements& places_;
    Kind kind_;
    const GraphImage* image_;
};

Rope write_graph(const Graph& graph, const Placements& places, GraphWriter::Kind kind);
Rope write_attribute(const Attribute& attribute, const Placements& places);

void rewrite_op_domain(Rewrite& message, std::string_view domain, Bytes base);

// Puts a message into a field: when it is the one that stands in `slot`, the field as it stands.
void put_message(Rope& out, std::uint32_t number, Rope&& message, const Fields* slot);

}  // namespace trocar::onnx
