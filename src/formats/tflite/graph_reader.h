#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/tflite/model_generated.h"
#include "formats/tflite/reader.h"
#include "trocar/error.h"

namespace trocar::tflite {

// Builds graphs from the subgraphs of a verified file.
class GraphReader {
public:
    GraphReader(const fb::Model& model, Bytes file, std::shared_ptr<const void> owner,
                std::filesystem::path path);

    std::size_t count() const;  // of subgraphs
    // Reads a subgraph with all that its ops refer to. Each call makes a graph of its own.
    Graph read(std::size_t number);
    // Which subgraphs do ops refer to?
    const std::vector<bool>& referred() const { return referred_; }
    // The handle of tensor `index` of a subgraph that was read; none where it has no tensor there.
    TensorId tensor(std::size_t subgraph, std::int64_t index) const;
    // The bytes of a buffer, in the file or behind it; empty: none. Throws Error(input), without
    // the file's name.
    Bytes buffer(std::uint32_t number) const;
    bool newer() const { return newer_; }
    const std::map<std::string, std::shared_ptr<const void>>& files() const { return files_; }
    std::uint64_t external_bytes() const { return external_bytes_; }

    void spend(std::size_t amount);  // throws when more is copied than the file can justify
    [[noreturn]] void fail(const std::string& what, Fault fault = Fault::input) const;

private:
    // A subgraph in the making. Flags are by the tensor's number.
    struct Place {
        std::size_t number;
        const fb::SubGraph& subgraph;
        Graph graph = {};
        std::vector<TensorId> ids = {};
        std::vector<bool> read = {};
        std::vector<bool> written = {};
        std::vector<bool> input = {};
        std::vector<bool> output = {};
        std::vector<bool> aside = {};  // intermediate tensors of an op
    };

    void declare_tensors(Place& place);
    void add_tensor(Place& place, std::size_t index);
    void add_op(Place& place, std::size_t index);
    Type type_of(const fb::Tensor& tensor) const;
    void describe(Graph& graph, TensorId id, const fb::Tensor& tensor,
                  const fb::SubGraph& subgraph);
    Constant constant_of(const fb::Tensor& tensor);
    Constant external_constant(const fb::Tensor& tensor);
    std::shared_ptr<Graph> intermediates(const fb::SubGraph& subgraph, const fb::Operator& op);
    OpSpec spec_of(Place& place, std::size_t index);
    const fb::Model& model_;
    Bytes file_;
    std::shared_ptr<const void> owner_;
    std::filesystem::path path_;
    std::size_t left_;
    bool newer_ = false;
    std::vector<bool> open_;  // being read: an op that refers to one calls itself
    std::vector<bool> referred_;
    std::vector<std::vector<TensorId>> tensors_;  // by subgraph and index
    std::map<const fb::QuantizationParameters*, std::shared_ptr<const Quantization>> quantizations_;
    std::map<std::string, std::shared_ptr<const void>> files_;
    std::uint64_t external_bytes_ = 0;
};

}  // namespace trocar::tflite
