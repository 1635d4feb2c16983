#include "formats/tensorflow/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "formats/tensorflow/flatten.h"
#include "formats/tensorflow/restores.h"
#include "formats/tensorflow/schema.h"
#include "formats/tensorflow/variables.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::tensorflow {

using namespace schema;

namespace {

namespace fs = std::filesystem;

constexpr const char* saved_model_name = "saved_model.pb";
// Bytes that copies of function bodies may take: layers may be called several times, but not
// without end.
constexpr std::size_t copies = std::size_t{64} << 20;
constexpr std::size_t copies_per_byte = 16;
// Results that nodes may have: a number in a name costs a file nothing.
constexpr std::size_t results = 100'000;
constexpr std::size_t bytes_per_result = 4;

// A tensor that a signature names.
struct Port {
    std::string key;   // as callers name it
    std::string name;  // "serving_default_x:0"
    Type type;
};

struct Ports {
    std::string name;
    std::vector<Port> inputs;
    std::vector<Port> outputs;
};

std::string node_of(const Port& port) {
    return port.name.substr(0, port.name.rfind(':'));
}

// Names are paths: "model/conv1/BiasAdd" is an op of the module model.conv1.
void set_modules(Graph& graph) {
    for (const auto id : graph.ops()) {
        auto& op = graph.op_from_file(id);
        const auto slash = op.name.rfind('/');
        if (slash != std::string::npos) {
            op.origin.module = op.name.substr(0, slash);
            std::replace(op.origin.module.begin(), op.origin.module.end(), '/', '.');
        }
    }
}

class Reader {
public:
    Reader(Bytes bytes, std::shared_ptr<const void> owner, const fs::path& path)
        : path_(path),
          file_(
              std::make_shared<const File>(File{.name = path.empty() ? "the model" : path.string(),
                                                .bytes = bytes,
                                                .owner = std::move(owner),
                                                .folder = {},
                                                .kind = "TensorFlow"})) {}

    Model read() {
        Model model;
        model.format = "tensorflow";
        model.dialect = "tf";
        model.producer = "tensorflow";
        model.path = path_;
        model.file_bytes = file_->bytes.size();
        model.source.bytes = file_->bytes;
        model.image = file_;
        if (is_saved_model()) {
            read_saved_model(model);
        } else {
            read_graph_def(file_->bytes, nullptr, model);
        }
        return model;
    }

private:
    bool is_saved_model() const {
        Fields at(*file_, file_->bytes);
        return at.next() && at.number() == saved_model::schema_version &&
               at.wire() == wire::Wire::varint;
    }

    void read_saved_model(Model& model) {
        std::vector<Bytes> graphs;
        for (Fields at(*file_, file_->bytes); at.next();) {
            if (at.number() == saved_model::schema_version) {
                model.ir_version = at.integer();
            } else if (at.number() == saved_model::meta_graph) {
                graphs.push_back(at.bytes());
            }
        }
        if (graphs.empty()) {
            throw Error(Fault::input, fmt::format("'{}' holds no graph", file_->name));
        }
        auto chosen = graphs.front();
        for (const auto graph : graphs) {
            const auto tags = tags_of(graph);
            if (std::find(tags.begin(), tags.end(), "serve") != tags.end()) {
                chosen = graph;
                break;
            }
        }
        if (graphs.size() > 1) {
            model.metadata.push_back({"other graphs", std::to_string(graphs.size() - 1)});
        }
        read_meta_graph(chosen, model);
    }

    std::vector<std::string> tags_of(Bytes graph) const {
        std::vector<std::string> tags;
        for (Fields at(*file_, graph, 1); at.next();) {
            if (at.number() == meta_graph::info) {
                for (Fields info(*file_, at.bytes(), 2); info.next();) {
                    if (info.number() == meta_info::tags) {
                        tags.emplace_back(info.text());
                    }
                }
            }
        }
        return tags;
    }

    void read_meta_graph(Bytes message, Model& model) {
        Bytes graph;
        Bytes objects;
        std::vector<Ports> signatures;
        for (Fields at(*file_, message, 1); at.next();) {
            switch (at.number()) {
                case meta_graph::info:
                    for (Fields info(*file_, at.bytes(), 2); info.next();) {
                        if (info.number() == meta_info::version) {
                            model.producer_version = info.text();
                        }
                    }
                    break;
                case meta_graph::graph_def:
                    graph = at.bytes();
                    break;
                case meta_graph::saver:
                    for (Fields saver(*file_, at.bytes(), 2); saver.next();) {
                        if (saver.number() == saver_def::restore_op) {
                            restore_ = saver.text();
                        }
                    }
                    break;
                case meta_graph::signature: {
                    const auto [key, value] = read_entry(file_, at.bytes());
                    signatures.push_back(read_signature(key, value));
                    break;
                }
                case meta_graph::object_graph:
                    objects = at.bytes();
                    break;
                default:
                    break;
            }
        }
        model.metadata.push_back({"tags", fmt::format("{}", join(tags_of(message), " "))});
        if (!path_.empty()) {
            variables_ = Variables(path_.parent_path(), *file_, objects);
            model.external_bytes = variables_.bytes();
        }
        const auto* chosen = choose(signatures);
        for (const auto& other : signatures) {
            if (&other != chosen) {
                model.metadata.push_back({"other signature", other.name});
            }
        }
        read_graph_def(graph, chosen, model);
    }

    static const Ports* choose(const std::vector<Ports>& all) {
        const Ports* best = nullptr;
        for (const auto& signature : all) {
            if (signature.name == "serving_default") {
                return &signature;
            }
            if (best == nullptr && !signature.name.starts_with("__")) {
                best = &signature;
            }
        }
        return best;
    }

    Ports read_signature(std::string name, Bytes message) const {
        Ports result;
        result.name = std::move(name);
        for (Fields at(*file_, message, 2); at.next();) {
            if (at.number() != signature_def::inputs && at.number() != signature_def::outputs) {
                continue;
            }
            const auto [key, value] = read_entry(file_, at.bytes());
            Port port{.key = key, .name = {}, .type = {}};
            for (Fields info(*file_, value, 3); info.next();) {
                if (info.number() == tensor_info::name) {
                    port.name = info.text();
                } else if (info.number() == tensor_info::dtype) {
                    port.type.kind = Type::Kind::tensor;
                    port.type.dtype = dtype_of(info.integer());
                } else if (info.number() == tensor_info::shape) {
                    port.type.dims = read_shape(*file_, info.bytes());
                }
            }
            if (!port.name.empty()) {  // sparse tensors have several names
                (at.number() == signature_def::inputs ? result.inputs : result.outputs)
                    .push_back(std::move(port));
            }
        }
        for (auto* ports : {&result.inputs, &result.outputs}) {
            std::sort(ports->begin(), ports->end(),
                      [](const Port& a, const Port& b) { return a.key < b.key; });
        }
        return result;
    }

    void read_graph_def(Bytes message, const Ports* ports, Model& model) {
        std::vector<Node> nodes;
        Bytes functions;
        for (Fields at(*file_, message, 2); at.next();) {
            switch (at.number()) {
                case graph_def::node:
                    nodes.push_back(read_node(file_, at.bytes(), 3));
                    break;
                case graph_def::library:
                    functions = at.bytes();
                    break;
                case graph_def::versions:
                    for (Fields inner(*file_, at.bytes(), 3); inner.next();) {
                        if (inner.number() == versions::producer) {
                            model.opsets = {{"", inner.integer()}};
                        }
                    }
                    break;
                default:
                    break;
            }
        }
        if (nodes.empty()) {
            throw Error(Fault::input, fmt::format("'{}' has a graph without nodes", file_->name));
        }
        auto allowed = results + file_->bytes.size() / bytes_per_result;
        Library library(file_, functions, allowed);
        if (!restore_.empty()) {
            variables_.set_restored(restored_keys(file_, nodes, library, restore_));
        }
        GraphReader reader(
            file_, [this](const Node& node) { return variables_.find(node); }, allowed);
        const auto graph = read_nodes(reader, std::move(nodes), ports);
        if (reader.left_out() > 0) {
            model.metadata.push_back({"nodes left out", std::to_string(reader.left_out())});
        }
        Flattener flattener(library, copies + copies_per_byte * file_->bytes.size());
        model.graph = flattener.flatten(graph, ports == nullptr);
        if (flattener.calls() > 0) {
            model.metadata.push_back({"calls inlined", std::to_string(flattener.calls())});
        }
        model.functions = flattener.functions(model.graph);
        set_modules(model.graph);
        for (const auto& function : model.functions) {
            set_modules(function->body);
        }
        if (ports != nullptr) {
            describe(*ports, model);
        }
    }

    static Graph read_nodes(GraphReader& reader, std::vector<Node> nodes, const Ports* ports) {
        if (ports == nullptr) {
            return reader.read(std::move(nodes));
        }
        std::vector<std::string> inputs;
        std::vector<std::string> outputs;
        for (const auto& port : ports->inputs) {
            inputs.push_back(node_of(port));
        }
        for (const auto& port : ports->outputs) {
            outputs.push_back(port.name);
        }
        return reader.read_part(std::move(nodes), inputs, outputs);
    }

    // The names that callers have for inputs and outputs, and the types they may count on.
    static void describe(const Ports& ports, Model& model) {
        auto& graph = model.graph;
        Signature signature;
        signature.name = ports.name;
        for (const auto& port : ports.inputs) {
            const auto id = graph.find_tensor(node_of(port));
            if (id && graph.tensor(*id).is_input) {
                graph.tensor_from_file(*id).type = port.type;
                signature.inputs.push_back({port.key, *id});
            }
        }
        for (std::size_t i = 0; i < ports.outputs.size(); ++i) {
            const auto id = graph.outputs()[i];
            auto& tensor = graph.tensor_from_file(id);
            const auto& type = ports.outputs[i].type;
            const bool better = tensor.type.kind == Type::Kind::unknown || !tensor.type.dims;
            if (better && !tensor.constant && !tensor.is_input) {
                tensor.type = type;
            }
            signature.outputs.push_back({ports.outputs[i].key, id});
        }
        model.signatures.push_back(std::move(signature));
    }

    fs::path path_;
    FilePtr file_;
    Variables variables_;
    std::string restore_;  // the node that gives variables their values
};

// A field with a length at the beginning of `rest`, as much of it as is there; takes it off.
// Nothing: the tag is another, or this is no length.
std::optional<Bytes> take_field(Bytes& rest, std::byte tag) {
    if (rest.size() < 2 || rest[0] != tag) {
        return std::nullopt;
    }
    std::size_t length = 0;
    for (std::size_t i = 1; i < std::min<std::size_t>(rest.size(), 6); ++i) {
        length |= (static_cast<std::size_t>(rest[i]) & 0x7f) << (7 * (i - 1));
        if (rest[i] < std::byte{0x80}) {
            const auto inside = rest.subspan(i + 1, std::min(length, rest.size() - i - 1));
            rest = rest.subspan(i + 1 + inside.size());
            return inside;
        }
    }
    return std::nullopt;
}

bool is_word(const std::optional<Bytes>& text) {
    return text && !text->empty() && std::all_of(text->begin(), text->end(), [](std::byte b) {
               return b > std::byte{0x20} && b < std::byte{0x7f};
           });
}

// A message that begins with two words: a node's name and type.
bool looks_like_node(Bytes bytes) {
    return is_word(take_field(bytes, std::byte{0x0a})) &&
           is_word(take_field(bytes, std::byte{0x12}));
}

}  // namespace

bool matches(Bytes head, const std::filesystem::path& path) {
    std::error_code failure;
    if (fs::is_directory(path, failure)) {
        return fs::is_regular_file(path / saved_model_name, failure);
    }
    // A schema version, then a graph that begins with its description.
    if (head.size() > 3 && head[0] == std::byte{0x08} && head[1] == std::byte{1}) {
        auto rest = head.subspan(2);
        const auto graph = take_field(rest, std::byte{0x12});
        return graph && !graph->empty() && graph->front() == std::byte{0x0a};
    }
    auto rest = head;
    const auto node = take_field(rest, std::byte{0x0a});
    return node && looks_like_node(*node);
}

Model read_tensorflow(Bytes bytes, std::shared_ptr<const void> owner,
                      const std::filesystem::path& path) {
    return Reader(bytes, std::move(owner), path).read();
}

Model read_path(const std::filesystem::path& path) {
    std::error_code failure;
    const auto file = fs::is_directory(path, failure) ? path / saved_model_name : path;
    const auto mapped = MappedFile::open(file);
    if (mapped->bytes().empty()) {
        throw Error(Fault::input, fmt::format("'{}' is empty", file.string()));
    }
    return read_tensorflow(mapped->bytes(), mapped, file);
}

}  // namespace trocar::tensorflow
