#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/engine.h"
#include "trocar/parts.h"

#pragma GCC visibility push(default)
namespace trocar {

// Who runs parts of a model: an engine with its options, or a command. Text form: that of an
// engine, where the keys `threads` and `optimize` (none, default) are taken here, or
// "command:" and a command with {model}, {inputs} and {outputs} in it.
struct SideOptions {
    std::string text;
    EngineOptions engine;
    CompileOptions::Optimize optimize = CompileOptions::Optimize::engine_default;
    std::string command;                      // empty: the engine
    std::chrono::milliseconds time_limit{0};  // of one part; 0: none
    std::uint64_t memory_limit = 0;           // resident bytes of its process; 0: none
};
// `base` says what the text does not: search folders, threads, log. Throws Error(usage).
SideOptions parse_side(std::string_view text, const EngineOptions& base);

// How an attempt to run a part ended.
enum class RunEnd { done, failed, crashed, hung, over_memory, bad_output };
const char* name(RunEnd end);

struct PartRun {
    RunEnd end = RunEnd::done;
    std::string reason;          // a sentence, unless done
    std::vector<Value> outputs;  // in the order of part.outputs; empty unless done
    std::vector<Value> refused;  // the same of a command whose outputs have the wrong types
    double seconds = 0;          // in the program or the command; compiling left out for an engine
};

// Runs parts in a process of its own, where a crash or a hang harms nothing: the next part is given
// a new process. Keeps chain by reference. Not for several threads at once.
class Side {
public:
    // How a part becomes a model; called in the other process. Default: chain.extract.
    using Build = std::function<Model(const Part&, std::span<const Value>)>;

    // `keep`: programs are kept for further runs of the same part. Throws Error(engine) where the
    // engine cannot be opened.
    Side(const Chain& chain, SideOptions options, Build build = {}, bool keep = false);
    Side(Side&&) noexcept;
    Side& operator=(Side&&) noexcept;
    ~Side();

    // "openvino 2026.4.1", "onnxruntime 1.31.1 (threads=1)".
    const std::string& label() const;
    const SideOptions& options() const;
    // `inputs` in the order of part.inputs. `expected`, where given, says the types of outputs: a
    // command that writes raw elements needs them, and what does not fit is RunEnd::bad_output.
    PartRun run(const Part& part, std::span<const Value> inputs,
                std::span<const Type> expected = {});

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace trocar
#pragma GCC visibility pop
