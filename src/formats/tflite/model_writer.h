#pragma once

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "formats/tflite/model_generated.h"
#include "trocar/model.h"

namespace trocar::tflite {

// Builds a file from a model.
class ModelWriter {
public:
    ModelWriter(const Model& model, std::size_t inside);

    Bytes flatbuffer() const;
    // What stands behind it: data, and where in the file.
    struct Part {
        std::uint64_t offset;
        Bytes bytes;
    };
    const std::vector<Part>& behind() const { return behind_; }
    std::uint64_t size() const;  // of all

private:
    template <class T>
    using Vector = flatbuffers::Offset<flatbuffers::Vector<T>>;
    template <class T>
    using Tables = std::vector<flatbuffers::Offset<T>>;
    // A subgraph in the making: tensors that ops need besides those of the graph come last.
    struct Place {
        const Graph& graph;
        std::vector<std::int32_t> numbers = {};  // by TensorId
        struct Extra {
            const Tensor* tensor;      // nullptr: `constant` alone
            const Constant* constant;  // of a quantization
        };
        std::vector<Extra> extras = {};
        std::map<const std::byte*, std::int32_t> constants = {};
        std::int32_t next = 0;
    };

    void collect(const Graph& graph, bool main);
    std::int64_t number_of(const Graph& graph) const;

    flatbuffers::Offset<fb::SubGraph> write_graph(const Graph& graph);
    flatbuffers::Offset<fb::Operator> write_op(Place& place, OpId id);
    flatbuffers::Offset<fb::Tensor> write_tensor(Place& place, const Tensor& tensor,
                                                 const Constant* constant);
    std::int32_t tensor_with(Place& place, const Constant& constant);
    std::uint32_t opcode(const Op& op, const std::string& where);
    std::uint32_t buffer_of(const Constant& constant);
    std::uint32_t buffer(Bytes bytes);
    Vector<flatbuffers::Offset<fb::Buffer>> write_buffers(std::size_t inside);
    Vector<flatbuffers::Offset<fb::OperatorCode>> write_opcodes();
    Vector<flatbuffers::Offset<fb::SignatureDef>> write_signatures();
    Vector<flatbuffers::Offset<fb::TensorMap>> write_arguments(
        const Graph& graph, const std::vector<Signature::Argument>& arguments);
    Vector<flatbuffers::Offset<fb::Metadata>> write_metadata(std::vector<std::int32_t>& unnamed);
    bool same_ops() const;  // no graph lost or gained any
    void place_behind();

    const Model& model_;
    flatbuffers::FlatBufferBuilder builder_;
    struct Entry {
        const Graph* graph;
        std::int64_t order;
    };
    std::vector<Entry> graphs_;
    std::map<const Graph*, const Graph*> same_;  // as one that is written already
    std::map<const Graph*, std::vector<std::int32_t>> numbers_;
    std::map<std::tuple<std::int64_t, std::string, std::int32_t>, std::uint32_t> opcodes_;
    std::vector<Bytes> buffers_;
    std::map<std::pair<const std::byte*, std::size_t>, std::uint32_t> buffer_numbers_;
    std::deque<std::string> texts_;  // encoded string tensors
    std::vector<std::uint32_t> outside_;
    std::vector<Part> behind_;
};

}  // namespace trocar::tflite
