#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trocar/engine.h"
#include "trocar/inputs.h"
#include "trocar/model.h"
#include "trocar/selector.h"
#include "trocar/session.h"

#pragma GCC visibility push(default)
namespace trocar {

// One part of a model: no path leaves it and comes back, and it reads from earlier parts alone.
struct ModelPart {
    std::string device;  // where it is to run; empty: nothing was said
    std::vector<OpId> ops;
    std::vector<TensorId> inputs;   // inputs of the model, or outputs of earlier parts
    std::vector<TensorId> outputs;  // read by later parts, or outputs of the model
    std::uint64_t constant_bytes = 0;
    double cost = 0;                          // as PartitionCosts say
    std::optional<std::uint64_t> peak_bytes;  // constants and living tensors at once
};

// Parts in the order in which they run; refers to the model it was made of.
struct Partition {
    std::vector<ModelPart> parts;
    Plan plan;  // what stands for constants
    // Ops that went with others although nobody chose them, and why.
    std::vector<std::pair<OpId, std::string>> joined;
};

struct PartitionCosts {
    std::function<double(OpId)> op;                                // not negative
    std::function<std::optional<std::uint64_t>(TensorId)> tensor;  // bytes; absent: not known
};

// Ops go where the first rule that chooses them says, in as few parts as a greedy order makes (for
// two devices: as few as can be). Ops that no rule chooses go with what comes before them.
struct DeviceRule {
    std::string device;
    Selector ops;
};
Partition partition_by_devices(const Model& model, const std::vector<DeviceRule>& rules,
                               const PartitionCosts& costs);
// So many parts of nearly the same cost, cut where few bytes cross. Throws Error(usage) when the
// model has less ops.
Partition partition_by_cost(const Model& model, std::size_t parts, const PartitionCosts& costs);
// As few parts as can be, each of which needs at most so many bytes for constants and living
// tensors. Throws Error(unsupported) naming an op that alone needs more.
Partition partition_by_bytes(const Model& model, std::uint64_t limit, const PartitionCosts& costs);
// The chosen ops are in parts "private", all others in parts "public". What must stay with them:
// ops that make their weights out of constants, and ops that read the same weights.
Partition partition_private(const Model& model, const Selector& chosen,
                            const PartitionCosts& costs);

// How reports and files of costs speak of an op: by its name, else by what it writes.
std::string op_name(const Graph& graph, OpId op);

// A part as a model of its own, with constants.
Model part_model(const Model& model, const Partition& partition, std::size_t part);

// --- A folder of parts ---------------------------------------------------------------------------

struct PartValue {
    std::string name;
    Type type;
    std::optional<Shape> shape;          // as seen in a run
    std::optional<std::uint64_t> bytes;  // likewise
    std::string sha256;                  // of its bytes in that run; empty: it was not run
    std::size_t from = inputs;           // part that makes it
    std::vector<std::size_t> to;         // parts that read it
    static constexpr std::size_t inputs = static_cast<std::size_t>(-1);
};
struct PartFile {
    std::string file;  // relative to the folder
    std::string sha256;
    std::uint64_t bytes = 0;
};
struct PartEntry {
    std::string device;
    std::vector<PartFile> files;  // the model first
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::size_t ops = 0;
    double cost = 0;
    std::uint64_t constant_bytes = 0;
    std::optional<std::uint64_t> peak_bytes;
};
struct PartitionManifest {
    std::string model;
    std::string model_sha256;
    std::string how;  // "2 parts of equal cost (macs)"
    std::string ran;  // engine and inputs of the run that the values are of; empty: none
    std::vector<PartValue> inputs;
    std::vector<std::string> outputs;
    std::vector<PartEntry> parts;
    std::vector<PartValue> cuts;  // tensors that go from one part to another
};
inline constexpr const char* partition_manifest_file = "manifest.json";

// Throws Error(input) on what is no such folder, and on a manifest that contradicts itself.
PartitionManifest read_partition(const std::filesystem::path& folder);
std::string partition_json(const PartitionManifest& manifest);
PartitionManifest partition_from_json(std::string_view text, const std::filesystem::path& path);

// Throws Error(input) when a file is missing or is not what was written.
void check_parts(const std::filesystem::path& folder, const PartitionManifest& manifest);
// One part; its files are not checked.
Model load_part(const std::filesystem::path& folder, const PartitionManifest& manifest,
                std::size_t part);

struct PartsRun {
    std::vector<NamedValue> outputs;
    std::vector<double> seconds;  // of each part, compiling left out
};
// Runs parts one after the other and hands over what they make. `engine` is asked for each device;
// `see` is shown every tensor that a part made.
struct PartsRunOptions {
    std::function<std::shared_ptr<Engine>(const std::string& device)> engine;
    CompileOptions compile;
    std::function<void(std::size_t part, const NamedValue& value)> see = {};
    std::function<void(std::size_t part)> starts = {};
};
PartsRun run_parts(const std::function<Model(std::size_t)>& part, const PartitionManifest& manifest,
                   const std::vector<NamedValue>& inputs, const PartsRunOptions& options);

}  // namespace trocar
#pragma GCC visibility pop
