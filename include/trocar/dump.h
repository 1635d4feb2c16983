#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trocar/format.h"
#include "trocar/statistics.h"
#include "trocar/tool.h"

#pragma GCC visibility push(default)
namespace trocar {

// A dump is a folder with what went through the ports of a model: `index.jsonl`, one JSON object
// per line, and the tensors where they were asked for. The first line says what was dumped, then
// come a line for each set of inputs and one for each tensor, after that tensor is written; the
// last one says how the dump ended. A dump without it was cut short and is readable up to there.

// One tensor of a dump.
struct DumpRecord {
    std::uint64_t set = 0;  // of inputs, from 0
    std::uint64_t op = 0;   // place of the op in its graph
    std::string type;       // of the op
    std::string name;
    std::string module;
    std::string scope;  // where the op's graph is: "If 'x' then_branch"; empty: the model's own
    std::vector<std::string> sources;      // deployed view: the model's ops that it computes
    std::vector<std::int64_t> iterations;  // of the loops around, outermost first
    std::uint64_t slot = 0;
    std::string tensor;
    std::string source_tensor;  // deployed view: the model's tensor of the same value, where named
                                // otherwise

    std::string kind;  // "tensor", else "sequence"…, of which the rest says nothing
    DType dtype = DType::undefined;
    Shape shape;
    std::uint64_t bytes = 0;
    std::string hash;  // of the elements; empty: not taken
    std::optional<Statistics> statistics;
    std::string file;  // relative to the folder; empty: not written
    // Where in the file the elements begin; absent: the file is to be read as its suffix says.
    std::optional<std::uint64_t> offset;
};

// A value that the model was given.
struct DumpInput {
    std::string name;
    std::string type;    // "f32 1x3x224x224"
    std::string origin;  // "x.npy"
    std::string hash;
};

struct DumpOptions {
    enum class Tensors { none, npy, npz, safetensors };
    enum class Hash { none, xxh64, sha256 };
    std::filesystem::path folder;
    Tensors tensors = Tensors::none;  // what npy and safetensors cannot hold goes to ONNX .pb files
    Hash hash = Hash::xxh64;
    StatisticsOptions statistics;
    bool histograms = false;       // in the index
    bool first_bad = false;        // stop at the first NaN or infinity
    std::vector<Property> about;   // for the first line: model, engine…
    std::function<bool()> cancel;  // asked at every port: stop here
};

// Who made the first NaN or infinity.
struct FirstBad {
    DumpRecord record;
    std::vector<std::string> bad_inputs;  // "'x' holds 3 NaN"; empty: it was made from finite ones
};

// A tool that writes a dump of what it sees after the ops of `at`. What was written is kept
// whatever happens; every failure to write is an Error(input) that ends the run.
class DumpWriter : public Tool {
public:
    // Makes the folder. Throws Error(usage) when there is something in it. `model` must outlive it.
    DumpWriter(const Model& model, const Selector& at, DumpOptions options);
    ~DumpWriter() override;

    // Before each run: what the model is given.
    void start_set(std::span<const DumpInput> inputs);
    // Ends the dump: "complete", "interrupted", "stopped". Without it the dump counts as cut short.
    void finish(std::string_view how);

    // Called with each record that was written.
    std::function<void(const DumpRecord&)> on_record;
    const std::optional<FirstBad>& first_bad() const;
    bool cancelled() const;
    std::uint64_t tensor_bytes() const;  // written so far
    std::filesystem::path index() const;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

// A dump as it was read.
struct Dump {
    std::filesystem::path folder;
    std::vector<Property> about;
    std::string hash_kind;                     // "xxh64", "sha256", "none"
    std::vector<std::vector<DumpInput>> sets;  // by number
    std::vector<DumpRecord> records;
    std::string end;  // as given to `finish`; empty: it was cut short
};

// `path`: the folder, or the index in it. Throws Error(input) on what is no dump; an unfinished
// last line is left out.
Dump read_dump(const std::filesystem::path& path);

// A tensor of a dump, mapped where that can be. Throws Error(input) when it was not written or the
// file does not hold it.
Value load_tensor(const Dump& dump, const DumpRecord& record);

// The hash of a tensor's elements; empty for values without.
std::string dump_hash(const Value& value, DumpOptions::Hash hash);

}  // namespace trocar
#pragma GCC visibility pop
