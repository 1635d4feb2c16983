#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trocar/graph.h"

#pragma GCC visibility push(default)
namespace trocar {

// A version of an op set that a model (or a function) uses.
struct OpSet {
    std::string domain;
    std::int64_t version = 0;
    bool operator==(const OpSet&) const = default;
};

// An op type defined by the model itself.
struct Function {
    std::string domain;
    std::string name;
    std::string overload;
    std::vector<std::string> attributes;  // names without default
    std::vector<Attribute> defaults;      // with default
    std::vector<OpSet> opsets;
    std::string doc;
    std::vector<Property> metadata;
    Graph body;
    Source source;
};

// An entry point of a model under a name of its own, whose inputs and outputs have names too.
struct Signature {
    struct Argument {
        std::string name;
        TensorId tensor = TensorId::none;  // of the graph that the signature is of
        bool operator==(const Argument&) const = default;
    };
    std::string name;
    std::size_t function = main_graph;  // which of the model's functions; or its graph
    std::vector<Argument> inputs;
    std::vector<Argument> outputs;
    static constexpr std::size_t main_graph = static_cast<std::size_t>(-1);
    bool operator==(const Signature&) const = default;
};

// A model file in memory: its graph, and what the file says besides. Constants are views of the
// mapped file, which stays mapped as long as anything refers to it.
struct Model {
    std::string format;          // name of the Format that read it: "onnx"
    std::string dialect;         // vocabulary of its ops: "onnx"
    std::filesystem::path path;  // empty: not from a file
    std::uint64_t file_bytes = 0;
    std::uint64_t external_bytes = 0;  // in further files

    Graph graph;
    std::vector<std::shared_ptr<Function>> functions;
    std::vector<OpSet> opsets;
    std::int64_t ir_version = 0;
    std::string producer;
    std::string producer_version;
    std::string domain;
    std::int64_t model_version = 0;
    std::string doc;
    std::vector<Property> metadata;  // values may be any bytes
    std::vector<Signature> signatures;

    Source source;
    std::shared_ptr<const void> image;  // the format's own memory of the file

    // Nothing in graph or functions was edited since it was read from `path`.
    bool intact() const;
    std::int64_t opset(std::string_view domain = "") const;  // 0: not imported
};

// Reads a model of any known format; `format` forces one. Throws Error(input) on a broken file,
// Error(unsupported) when no format takes it.
Model load(const std::filesystem::path& path, std::string_view format = {});

enum class ExternalPolicy {
    copy,       // external files are copied beside the new file: same bytes, runs where it stands
    reference,  // the model file alone is written; external files are left where they are
    inlined,    // all data goes into the model file
    separate,   // constants of 1 kB and more go into one file beside the model: NAME.data
};

struct SaveOptions {
    ExternalPolicy external = ExternalPolicy::copy;
};

// Writes a model in the format its suffix names. A model that was not edited is written as the
// bytes it was read from. The file appears under its name only when it is complete.
void save(const Model& model, const std::filesystem::path& path, const SaveOptions& options = {});

// A deep copy: same handles, constants shared.
Model clone(const Model& model);

// Puts the bodies of the model's functions in the place of their calls, where the body is written
// for the same versions of the op sets. Calls in bodies of control flow are left. Returns the
// number of calls.
std::size_t inline_functions(Model& model);

// A runnable model of the part between tensors: all that `to` needs, computed from `from`.
// `from` empty: the model's inputs that are needed. Constants are shared with `model`, functions
// that are used come along. Throws Error(usage) when a tensor does not exist or `to` needs an
// input that `from` does not give (says which).
Model extract(const Model& model, std::span<const TensorId> from, std::span<const TensorId> to);
// The same for a set of convex ops given in order, with what must be visible outside as `outputs`.
// `constants`, when not empty, is indexed by TensorId and says what stands for a tensor that no op
// of the part writes (nullptr: an input of the part); empty: the graph's own constants do. Takes
// time in the size of the part, not of the model.
Model extract_ops(const Model& model, std::span<const OpId> ops, std::span<const TensorId> outputs,
                  std::span<const Constant* const> constants = {});

}  // namespace trocar
#pragma GCC visibility pop
