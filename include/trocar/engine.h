#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trocar/model.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

enum class LogLevel { debug, info, warning, error };
using Log = std::function<void(LogLevel, std::string_view)>;

// Which engine, and how. Text form: NAME[:PATH][,key=value…], as in
// "onnxruntime:/opt/ort/lib,provider=cuda".
struct EngineOptions {
    std::string name = "onnxruntime";
    std::string
        path;  // library, or a folder to look in; empty: look in `search`, then the usual places
    std::vector<std::pair<std::string, std::string>> options;  // "provider" and what it takes
    std::vector<std::string> search;  // folders to look in first (dependency folder, site-packages)
    std::string scratch = "/tmp";     // folder for files that an engine writes for a moment
    int threads = 0;                  // 0: as many as there are cores
    Log log;                          // what the engine has to say; may be empty
};
EngineOptions parse_engine(std::string_view text);  // throws Error(usage)

// What an engine can do; tools ask this instead of knowing names.
struct Capabilities {
    std::vector<std::string> dialects;   // of the models it takes
    std::vector<std::string> providers;  // where it can run: "CPUExecutionProvider"…
    bool deterministic = false;          // same inputs, same bits, whatever the threads
    bool host_calls = false;             // programs may hold ops of `host_domain`
    bool deployed = false;               // it can give the graph that it makes of a model
    bool kernel_times = false;           // it can say what each op of a program took
};

// An engine as found on this machine.
struct EngineInfo {
    std::string name;
    bool available = false;
    std::string version;  // "1.31.1"
    std::string path;     // of the library
    Capabilities can;
    std::string missing;  // when not available: why, in a sentence
    std::string hint;     // and how to get it
};

// Ops of this domain inside a program call back into this process. "Tap": outputs are its first
// inputs, of the same types and, unless the callback sets others, shapes; further inputs are only
// read. "Look": likewise, but it changes nothing, so that its outputs may always stand in the
// memory of its inputs. "Call": outputs are whatever the callback makes, their element types (in
// ONNX's numbers) in the attribute `types`. Both carry an integer `site`.
inline constexpr const char* host_domain = "trocar";

// One such call. All of it is valid during the call.
class HostCall {
public:
    virtual ~HostCall() = default;
    virtual std::size_t input_count() const = 0;
    virtual std::size_t output_count() const = 0;
    virtual const Value& input(std::size_t slot) = 0;
    // An output to be filled, allocated at the first call; none where nobody reads it. For a tap
    // its memory may be that of the input it passes on, where nobody else reads that any more.
    virtual Value output(std::size_t slot, DType dtype, const Shape& shape) = 0;
    // Makes an output a copy of `value`, unless it stands there already.
    virtual void give(std::size_t slot, const Value& value) = 0;
    // Calls `work` with 0 … `parts` - 1, on the engine's threads where it lends them. `work` must
    // not throw.
    virtual void together(std::size_t parts, const std::function<void(std::size_t)>& work) {
        for (std::size_t part = 0; part < parts; ++part) {
            work(part);
        }
    }
};
using HostFunction = std::function<void(std::int64_t site, HostCall& call)>;

struct CompileOptions {
    enum class Optimize { engine_default, none };
    Optimize optimize = Optimize::engine_default;
    bool low_memory = false;  // for a program that runs once: no arena
    // Nobody reads the floats that it computes: no pre-packing, which costs memory and can change
    // their last bits.
    bool types_only = false;
    // Called by ops of `host_domain`. What it throws ends the run and comes out of Program::run.
    HostFunction host = {};
    bool time_kernels = false;  // for Program::take_times
};

// What an engine copied for itself when it compiled, where it tells.
struct Footprint {
    std::optional<std::uint64_t> constant_bytes_copied;
    std::string unavailable;  // why not
};

// What an engine says of one op that it ran.
struct KernelTime {
    std::string op;                  // its name
    double start_ns = 0;             // on the engine's clock
    double spent_ns = 0;             // ops inside its subgraphs included, which are listed too
    std::vector<Type> outputs = {};  // in the last run; empty where it does not tell
};
struct TimedRun {
    double start_ns = 0;  // on the engine's clock
    double spent_ns = 0;
    std::vector<KernelTime> kernels;  // in order of their ends
};
struct KernelTimes {
    std::vector<TimedRun> runs;
    double resolution_ns = 0;  // of the engine's clock
};

// A compiled model, ready to run. One thread at a time may run it.
class Program {
public:
    virtual ~Program() = default;
    virtual std::span<const std::string> input_names() const = 0;
    virtual std::span<const std::string> output_names() const = 0;
    // `inputs` in the order of input_names(); fills `outputs` in that of output_names(). Host
    // values are read in place. Throws Error(engine).
    virtual void run(std::span<const Value> inputs, std::span<Value> outputs) = 0;
    virtual Footprint footprint() const { return {}; }
    // What the ops took in all runs so far, where CompileOptions::time_kernels asked for it; ends
    // the timing. Throws Error(unsupported) where it did not, or the engine cannot tell.
    virtual KernelTimes take_times();
};

class Engine {
public:
    virtual ~Engine() = default;
    virtual const EngineInfo& info() const = 0;
    // Compiles a whole model or a part from `extract`. The program's inputs are the graph's inputs
    // that are not constants, in order; its outputs the graph's outputs. Throws Error(engine).
    virtual std::unique_ptr<Program> compile(const Model& model, const CompileOptions& options) = 0;
    // The graph that the engine runs when it compiles `model` with its own optimisation. Throws
    // Error(unsupported) unless info().can.deployed.
    virtual Model deployed(const Model& model);
};

// The kind of engine that a unit src/engines/NAME/engine.cpp defines as `NAME_engine`.
struct EngineKind {
    const char* name;
    const char* summary;
    // All that can be found without running anything, best first; one entry with `missing` when
    // none.
    std::vector<EngineInfo> (*find)(const EngineOptions& options);
    // Throws Error(engine) when it is missing, of another architecture, too old, or broken.
    std::shared_ptr<Engine> (*open)(const EngineOptions& options);
};

std::span<const EngineKind* const> engine_kinds();
// The name of the first engine that is there and takes models of this dialect: the one of `options`
// where it does, as it does when none is there.
std::string engine_for(std::string_view dialect, const EngineOptions& options);
std::shared_ptr<Engine> open_engine(
    const EngineOptions& options);  // throws Error(usage) on an unknown name

}  // namespace trocar
#pragma GCC visibility pop
