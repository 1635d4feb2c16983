#include "formats/tflite/reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/tflite/archive.h"
#include "formats/tflite/graph_reader.h"
#include "formats/tflite/types.h"
#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar::tflite {

namespace {

constexpr std::string_view identifier = "TFL3";
constexpr std::uint32_t only_version = 3;
constexpr std::size_t deepest = 64;

std::string_view identifier_of(Bytes bytes) {
    return bytes.size() < 8 ? std::string_view()
                            : std::string_view(reinterpret_cast<const char*>(bytes.data()) + 4, 4);
}

// Every offset and length of the flatbuffer is checked before any is used.
const fb::Model& verified(Bytes bytes, const std::string& name) {
    // Data of larger files lies behind the flatbuffer.
    const auto size = std::min<std::size_t>(bytes.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
    flatbuffers::Verifier::Options limits;
    limits.max_depth = deepest;
    limits.max_tables = static_cast<flatbuffers::uoffset_t>(size / 4 + 64);
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    flatbuffers::Verifier verifier(data, size, limits);
    if (!fb::VerifyModelBuffer(verifier)) {
        throw Error(Fault::input,
                    fmt::format("{} is no complete TensorFlow Lite model: an offset or a length in "
                                "it points outside the file",
                                name),
                    "was it copied or downloaded completely?");
    }
    return *fb::GetModel(data);
}

std::vector<Signature::Argument> read_arguments(
    const GraphReader& reader, std::size_t subgraph,
    const flatbuffers::Vector<flatbuffers::Offset<fb::TensorMap>>* stored) {
    std::vector<Signature::Argument> arguments;
    for (flatbuffers::uoffset_t i = 0; i < size_of(stored); ++i) {
        const auto* one = stored->Get(i);
        arguments.push_back(
            {std::string(text_of(one->name())), reader.tensor(subgraph, one->tensor_index())});
        if (arguments.back().tensor == TensorId::none) {
            reader.fail(
                fmt::format("a signature names tensor {} of subgraph {}, which is not there",
                            one->tensor_index(), subgraph));
        }
    }
    return arguments;
}

void read_metadata(GraphReader& reader, const fb::Model& stored, Model& model) {
    const auto add = [&](std::string_view name, std::uint32_t number) {
        Bytes bytes;
        try {
            bytes = reader.buffer(number);
        } catch (const Error& e) {
            reader.fail(fmt::format("metadata '{}': {}", name, e.what()));
        }
        reader.spend(bytes.size() + name.size());
        model.metadata.push_back(
            {std::string(name),
             std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
    };
    for (flatbuffers::uoffset_t i = 0; i < size_of(stored.metadata()); ++i) {
        add(text_of(stored.metadata()->Get(i)->name()), stored.metadata()->Get(i)->buffer());
    }
    for (flatbuffers::uoffset_t i = 0; i < size_of(stored.metadata_buffer()); ++i) {
        add("metadata_buffer", static_cast<std::uint32_t>(stored.metadata_buffer()->Get(i)));
    }
}

// The graph, the functions, and the signatures that lead into them.
void read_graphs(GraphReader& reader, const fb::Model& stored, Model& model) {
    if (reader.count() == 0) {
        reader.fail("the model has no subgraph");
    }
    std::vector<bool> entry(reader.count());
    for (flatbuffers::uoffset_t i = 0; i < size_of(stored.signature_defs()); ++i) {
        const auto number = stored.signature_defs()->Get(i)->subgraph_index();
        if (number >= reader.count()) {
            reader.fail(fmt::format("a signature is of subgraph {}, and there are {}", number,
                                    reader.count()));
        }
        entry[number] = true;
    }
    const std::size_t main = size_of(stored.signature_defs()) > 0
                                 ? stored.signature_defs()->Get(0)->subgraph_index()
                                 : 0;
    model.graph = reader.read(main);
    std::vector<std::pair<std::size_t, std::shared_ptr<Function>>> others;
    for (std::size_t number = 0; number < reader.count(); ++number) {
        if (number == main || (reader.referred()[number] && !entry[number])) {
            continue;
        }
        auto function = std::make_shared<Function>();
        function->body = reader.read(number);
        function->domain = "subgraph";
        function->name =
            function->body.name.empty() ? fmt::format("subgraph_{}", number) : function->body.name;
        others.emplace_back(number, std::move(function));
    }
    std::vector<std::size_t> function_of(reader.count(), Signature::main_graph);
    for (auto& [number, function] : others) {
        if (!reader.referred()[number] || entry[number]) {
            function_of[number] = model.functions.size();
            model.functions.push_back(std::move(function));
        }
    }
    for (flatbuffers::uoffset_t i = 0; i < size_of(stored.signature_defs()); ++i) {
        const auto* one = stored.signature_defs()->Get(i);
        const std::size_t number = one->subgraph_index();
        model.signatures.push_back({.name = std::string(text_of(one->signature_key())),
                                    .function = function_of[number],
                                    .inputs = read_arguments(reader, number, one->inputs()),
                                    .outputs = read_arguments(reader, number, one->outputs())});
    }
}

}  // namespace

bool matches(Bytes head, const std::filesystem::path&) {
    return identifier_of(head) == identifier;
}

Model read_bytes(Bytes bytes, std::shared_ptr<const void> owner,
                 const std::filesystem::path& path) {
    const auto name = path.empty() ? std::string("the model") : fmt::format("'{}'", path.string());
    const auto found = identifier_of(bytes);
    if (found != identifier) {
        const bool other = found.starts_with("TFL");
        throw Error(other ? Fault::unsupported : Fault::input,
                    other
                        ? fmt::format("{} is of version '{}' of the format; only '{}' can be read",
                                      name, found, identifier)
                        : fmt::format("{} is no TensorFlow Lite model", name));
    }
    const auto& stored = verified(bytes, name);
    if (stored.version() != only_version) {
        throw Error(Fault::unsupported,
                    fmt::format("{} is of version {} of the schema; only {} can be read", name,
                                stored.version(), only_version));
    }
    Model model;
    model.format = "tflite";
    model.dialect = "tflite";
    model.path = path;
    model.file_bytes = bytes.size();
    model.ir_version = stored.version();
    model.doc = text_of(stored.description());
    GraphReader reader(stored, bytes, owner, path);
    read_graphs(reader, stored, model);
    read_metadata(reader, stored, model);
    model.external_bytes = reader.external_bytes();
    model.source.bytes = bytes;
    auto image = std::make_shared<Image>();
    image->owner = std::move(owner);
    image->file = bytes;
    image->doc = model.doc;
    image->metadata = model.metadata;
    image->signatures = model.signatures;
    image->appended = appended_archive(bytes);
    image->newer = reader.newer() || has_more(stored, model_fields);
    for (const auto& [location, file] : reader.files()) {
        image->files.emplace_back(location);
    }
    model.image = std::move(image);
    return model;
}

Model read_file(const std::filesystem::path& path) {
    auto file = MappedFile::open(path);
    return read_bytes(file->bytes(), file, path);
}

}  // namespace trocar::tflite
