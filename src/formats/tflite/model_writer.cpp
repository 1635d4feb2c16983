#include "formats/tflite/model_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "formats/tflite/reader.h"
#include "formats/tflite/types.h"
#include "trocar/error.h"

namespace trocar::tflite {

namespace {

constexpr std::uint32_t version = 3;
constexpr std::size_t alignment = 16;  // of data, in the flatbuffer and behind it
constexpr std::string_view control_dependencies = "model_control_dependencies";

const GraphImage* image_of(const Graph& graph) {
    return static_cast<const GraphImage*>(graph.image.get());
}

}  // namespace

ModelWriter::ModelWriter(const Model& model, std::size_t inside) : model_(model) {
    buffers_.emplace_back();  // the first one is empty: it stands for "no data"
    collect(model.graph, true);
    for (const auto& function : model.functions) {
        collect(function->body, false);
    }
    std::stable_sort(graphs_.begin(), graphs_.end(),
                     [](const Entry& a, const Entry& b) { return a.order < b.order; });
    Tables<fb::SubGraph> subgraphs;
    for (const auto& entry : graphs_) {
        subgraphs.push_back(write_graph(*entry.graph));
    }
    const auto stored_graphs = builder_.CreateVector(subgraphs);
    const auto signatures = write_signatures();
    std::vector<std::int32_t> unnamed;
    const auto metadata = write_metadata(unnamed);
    const auto metadata_buffer = unnamed.empty() ? 0 : builder_.CreateVector(unnamed);
    const auto opcodes = write_opcodes();
    const auto description = model.doc.empty() ? 0 : builder_.CreateString(model.doc);
    const auto buffers = write_buffers(inside);
    fb::FinishModelBuffer(
        builder_, fb::CreateModel(builder_, version, opcodes, stored_graphs, description, buffers,
                                  metadata_buffer, metadata, signatures));
    place_behind();
}

Bytes ModelWriter::flatbuffer() const {
    return std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
}

std::uint64_t ModelWriter::size() const {
    return behind_.empty() ? builder_.GetSize()
                           : behind_.back().offset + behind_.back().bytes.size();
}

// Graphs that were read from the same subgraph and not edited since are written once.
void ModelWriter::collect(const Graph& graph, bool main) {
    const auto* image = image_of(graph);
    if (image != nullptr && !graph.edited()) {
        for (const auto& entry : graphs_) {
            const auto* other = image_of(*entry.graph);
            if (other != nullptr && other->file == image->file && other->number == image->number &&
                !entry.graph->edited()) {
                same_.emplace(&graph, entry.graph);
                return;
            }
        }
    }
    if (graphs_.size() > std::size_t{std::numeric_limits<std::int16_t>::max()}) {
        throw Error(Fault::unsupported, "the model has too many subgraphs");
    }
    constexpr auto last = std::numeric_limits<std::int64_t>::max();
    graphs_.push_back({&graph, image != nullptr ? static_cast<std::int64_t>(image->number)
                               : main           ? -1
                                                : last});
    if (!graph.captured().empty()) {
        throw Error(Fault::unsupported,
                    fmt::format("graph '{}' reads tensors of the graph around it, and TensorFlow "
                                "Lite has no such reading",
                                graph.name),
                    "make them inputs of the op and of its graph");
    }
    for (const auto id : graph.ops()) {
        for (const auto& attribute : graph.op(id).attributes) {
            if (attribute.name == "intermediates") {
                continue;
            }
            if (const auto* one = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) {
                collect(**one, false);
            } else if (const auto* all =
                           std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
                for (const auto& inner : *all) {
                    collect(*inner, false);
                }
            }
        }
    }
}

std::int64_t ModelWriter::number_of(const Graph& graph) const {
    const auto known = same_.find(&graph);
    const auto* wanted = known != same_.end() ? known->second : &graph;
    const auto found = std::find_if(graphs_.begin(), graphs_.end(),
                                    [&](const Entry& entry) { return entry.graph == wanted; });
    return found - graphs_.begin();
}

std::uint32_t ModelWriter::buffer(Bytes bytes) {
    if (bytes.empty()) {
        return 0;
    }
    const auto [found, fresh] = buffer_numbers_.emplace(
        std::pair(bytes.data(), bytes.size()), static_cast<std::uint32_t>(buffers_.size()));
    if (fresh) {
        buffers_.push_back(bytes);
    }
    return found->second;
}

ModelWriter::Vector<flatbuffers::Offset<fb::Buffer>> ModelWriter::write_buffers(
    std::size_t inside) {
    std::size_t total = 0;
    for (const auto bytes : buffers_) {
        total += bytes.size();
    }
    Tables<fb::Buffer> tables;
    for (std::uint32_t number = 0; number < buffers_.size(); ++number) {
        const auto bytes = buffers_[number];
        if (bytes.empty()) {
            tables.push_back(fb::CreateBuffer(builder_));
        } else if (total > inside) {
            // The place is known only when all is written: this one is replaced then.
            outside_.push_back(number);
            tables.push_back(fb::CreateBuffer(builder_, 0, 2, bytes.size()));
        } else {
            builder_.ForceVectorAlignment(bytes.size(), 1, alignment);
            tables.push_back(fb::CreateBuffer(
                builder_, builder_.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                bytes.size())));
        }
    }
    return builder_.CreateVector(tables);
}

void ModelWriter::place_behind() {
    if (outside_.empty()) {
        return;
    }
    const auto* root = fb::GetModel(builder_.GetBufferPointer());
    std::uint64_t end = builder_.GetSize();
    for (const auto number : outside_) {
        end = (end + alignment - 1) / alignment * alignment;
        behind_.push_back({end, buffers_[number]});
        auto* table = reinterpret_cast<flatbuffers::Table*>(
            const_cast<fb::Buffer*>(root->buffers()->Get(number)));
        table->SetField<std::uint64_t>(fb::Buffer::VT_OFFSET, end, 0);
        end += buffers_[number].size();
    }
}

ModelWriter::Vector<flatbuffers::Offset<fb::OperatorCode>> ModelWriter::write_opcodes() {
    Tables<fb::OperatorCode> tables(opcodes_.size());
    constexpr std::int64_t placeholder = 127;
    for (const auto& [what, number] : opcodes_) {
        const auto& [code, custom, op_version] = what;
        const auto name = custom.empty() ? 0 : builder_.CreateString(custom);
        tables[number] =
            fb::CreateOperatorCode(builder_, static_cast<std::int8_t>(std::min(code, placeholder)),
                                   name, op_version, static_cast<fb::BuiltinOperator>(code));
    }
    return builder_.CreateVector(tables);
}

ModelWriter::Vector<flatbuffers::Offset<fb::TensorMap>> ModelWriter::write_arguments(
    const Graph& graph, const std::vector<Signature::Argument>& arguments) {
    Tables<fb::TensorMap> tables;
    for (const auto& argument : arguments) {
        // What was removed from the graph since is no longer an argument.
        if (graph.contains(argument.tensor)) {
            const auto name = builder_.CreateString(argument.name);
            const auto number = numbers_.at(&graph)[index(argument.tensor)];
            tables.push_back(
                fb::CreateTensorMap(builder_, name, static_cast<std::uint32_t>(number)));
        }
    }
    return builder_.CreateVector(tables);
}

ModelWriter::Vector<flatbuffers::Offset<fb::SignatureDef>> ModelWriter::write_signatures() {
    Tables<fb::SignatureDef> tables;
    for (const auto& signature : model_.signatures) {
        const bool main = signature.function == Signature::main_graph;
        if (!main && signature.function >= model_.functions.size()) {
            throw Error(Fault::usage,
                        fmt::format("signature '{}' is of function {}, and the model "
                                    "has {}",
                                    signature.name, signature.function, model_.functions.size()));
        }
        const auto& graph = main ? model_.graph : model_.functions[signature.function]->body;
        const auto known = same_.find(&graph);
        const auto& written = known != same_.end() ? *known->second : graph;
        const auto inputs = write_arguments(written, signature.inputs);
        const auto outputs = write_arguments(written, signature.outputs);
        const auto name = builder_.CreateString(signature.name);
        tables.push_back(fb::CreateSignatureDef(builder_, inputs, outputs, name,
                                                static_cast<std::uint32_t>(number_of(graph))));
    }
    return tables.empty() ? 0 : builder_.CreateVector(tables);
}

bool ModelWriter::same_ops() const {
    return std::all_of(graphs_.begin(), graphs_.end(), [](const Entry& entry) {
        return entry.graph->image != nullptr && entry.graph->op_limit() == entry.graph->op_count();
    });
}

ModelWriter::Vector<flatbuffers::Offset<fb::Metadata>> ModelWriter::write_metadata(
    std::vector<std::int32_t>& unnamed) {
    Tables<fb::Metadata> tables;
    for (const auto& entry : model_.metadata) {
        // It speaks of ops by their numbers.
        if (entry.key == control_dependencies && !same_ops()) {
            continue;
        }
        const auto number = buffer(std::as_bytes(std::span(entry.value)));
        if (entry.key == "metadata_buffer") {
            unnamed.push_back(static_cast<std::int32_t>(number));
            continue;
        }
        const auto name = builder_.CreateString(entry.key);
        tables.push_back(fb::CreateMetadata(builder_, name, number));
    }
    return tables.empty() ? 0 : builder_.CreateVector(tables);
}

}  // namespace trocar::tflite
