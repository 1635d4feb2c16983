#include "formats/onnx/reader.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "formats/onnx/declaration.h"
#include "formats/onnx/graph_reader.h"
#include "formats/onnx/schema.h"
#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar::onnx {

using namespace schema;

namespace {

std::shared_ptr<Function> read_function(GraphReader& reader, const File& file, Bytes message,
                                        int depth) {
    auto result = std::make_shared<Function>();
    result->source.bytes = message;
    GraphParts parts;
    parts.whole = message;
    for (Fields at(file, message, depth); at.next();) {
        switch (at.number()) {
            case function::name:
                result->name = at.text();
                break;
            case function::input:
                parts.input_names.push_back(at.text());
                break;
            case function::output:
                parts.output_names.push_back(at.text());
                break;
            case function::attribute:
                result->attributes.emplace_back(at.text());
                break;
            case function::attribute_default:
                result->defaults.push_back(reader.read_attribute(at.bytes(), depth + 1));
                break;
            case function::node:
                parts.nodes.push_back(at.bytes());
                break;
            case function::doc:
                result->doc = at.text();
                break;
            case function::opset:
                result->opsets.push_back(read_opset(file, at.bytes()));
                break;
            case function::domain:
                result->domain = plain_domain(at.text());
                break;
            case function::overload:
                result->overload = at.text();
                break;
            case function::value_info:
                parts.value_infos.push_back(at.bytes());
                break;
            case function::metadata:
                result->metadata.push_back(read_property(file, at.bytes()));
                break;
            default:
                break;
        }
    }
    try {
        result->body = reader.build(parts, depth, false);
    } catch (const Error& e) {
        throw Error(e.fault(), fmt::format("{} (in function '{}')", e.what(), result->name),
                    e.hint());
    }
    result->body.name = result->name;
    return result;
}

// The functions that ops of a graph call, and ops of its subgraphs.
template <class Index>
void collect_calls(const Graph& graph, const Index& functions, std::vector<std::size_t>& calls) {
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        if (const auto found = functions.find(std::tie(op.domain, op.type, op.overload));
            found != functions.end()) {
            calls.push_back(found->second);
        }
        for (const auto& body : op.subgraphs()) {
            collect_calls(*body, functions, calls);
        }
    }
}

// A function that calls itself, also through others, would never end: Error(input).
void refuse_recursion(const File& file, const std::vector<std::shared_ptr<Function>>& functions) {
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t, std::less<>> by_name;
    for (std::size_t i = 0; i < functions.size(); ++i) {
        by_name.emplace(
            std::tuple(functions[i]->domain, functions[i]->name, functions[i]->overload), i);
    }
    std::vector<std::vector<std::size_t>> calls(functions.size());
    std::vector<std::size_t> callers(functions.size());
    for (std::size_t i = 0; i < functions.size(); ++i) {
        collect_calls(functions[i]->body, by_name, calls[i]);
        for (const auto called : calls[i]) {
            ++callers[called];
        }
    }
    // Those that nobody calls are taken away, then those that only these called, and so on.
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < functions.size(); ++i) {
        if (callers[i] == 0) {
            free.push_back(i);
        }
    }
    for (std::size_t at = 0; at < free.size(); ++at) {
        for (const auto called : calls[free[at]]) {
            if (--callers[called] == 0) {
                free.push_back(called);
            }
        }
    }
    for (std::size_t i = 0; i < functions.size(); ++i) {
        if (callers[i] != 0) {
            fail_in(file, functions[i]->source.bytes,
                    fmt::format("function '{}' calls itself, or is called by one that does",
                                functions[i]->name));
        }
    }
}

Model read_model(const FilePtr& file, ExternalFiles& external) {
    Model result;
    GraphReader reader(file, external);
    Bytes graph_message;
    bool has_graph = false;
    std::vector<Bytes> functions;
    for (Fields at(*file, file->bytes, 1); at.next();) {
        switch (at.number()) {
            case model::ir_version:
                result.ir_version = at.integer();
                break;
            case model::producer:
                result.producer = at.text();
                break;
            case model::producer_version:
                result.producer_version = at.text();
                break;
            case model::domain:
                result.domain = at.text();
                break;
            case model::version:
                result.model_version = at.integer();
                break;
            case model::doc:
                result.doc = at.text();
                break;
            case model::graph:
                if (has_graph) {
                    at.fail("the model has a second graph");
                }
                has_graph = true;
                graph_message = at.bytes();
                break;
            case model::opset:
                result.opsets.push_back(read_opset(*file, at.bytes()));
                break;
            case model::metadata:
                result.metadata.push_back(read_property(*file, at.bytes()));
                break;
            case model::function:
                functions.push_back(at.bytes());
                break;
            default:
                break;
        }
    }
    if (!has_graph) {
        throw Error(Fault::input, fmt::format("'{}' holds no graph", file->name),
                    "it may be a file of another kind, such as a single tensor");
    }
    result.graph = reader.read(graph_message, 2, false);
    for (const auto message : functions) {
        result.functions.push_back(read_function(reader, *file, message, 2));
    }
    refuse_recursion(*file, result.functions);
    return result;
}

}  // namespace

Model read_onnx(Bytes bytes, std::shared_ptr<const void> owner, const std::filesystem::path& path,
                bool is_mapped) {
    const auto name = path.empty() ? std::string("the model") : path.string();
    auto folder = path.parent_path();
    if (!path.empty() && folder.empty()) {
        folder = ".";
    }
    if (bytes.empty()) {
        throw Error(Fault::input, fmt::format("'{}' is empty", name));
    }
    auto file =
        std::make_shared<const File>(File{name, bytes, std::move(owner), folder, is_mapped});
    ExternalFiles external(name, folder);
    auto result = read_model(file, external);
    result.format = "onnx";
    result.dialect = "onnx";
    result.path = path;
    result.file_bytes = bytes.size();
    result.external_bytes = external.total_bytes();
    result.source.bytes = bytes;
    result.image = file;
    return result;
}

Model read_file(const std::filesystem::path& path) {
    const auto mapped = MappedFile::open(path);
    return read_onnx(mapped->bytes(), mapped, path, true);
}

}  // namespace trocar::onnx
