#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/energy.h"
#include "trocar/engine.h"
#include "trocar/intervals.h"
#include "trocar/model.h"
#include "trocar/op_predict.h"
#include "trocar/selector.h"
#include "trocar/tool.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// --- What is measured
// -------------------------------------------------------------------------

// Where an operator finds what it reads, which is most of what its time depends on beside its work.
enum class CacheMode {
    reuse,           // the same input in every call
    stream_inputs,   // another input in every call, out of more than the last cache holds
    stream_weights,  // as above, and other weights too
    cold,            // caches filled with something else before every call
    in_situ,         // as inside a model: the op that makes its input has run just before, and
                     // before that as much was read as a run of the model reads
    chain,           // one of many such layers behind each other, each with weights of its own
};
inline constexpr std::size_t cache_modes = 6;
const char* name(CacheMode mode);                   // "stream-inputs"
const char* describe(CacheMode mode);               // a sentence
CacheMode parse_cache_mode(std::string_view text);  // throws Error(usage)

// What an operator is, apart from where it runs: op, attributes, types of all it reads, layout,
// quantisation, how sparse its weights are.
struct OpConfig {
    std::string key;             // of all that follows, the same on every machine
    std::string text;            // from which the key is made
    View unit = View::deployed;  // an op of the engine's own graph, or one of the model
    OpFeatures features;
    std::string inputs;     // "f32 1x64x56x56, f32 64x64x1x1"
    std::string uncounted;  // why its work is not known
};
// An operator of a model.
struct ModelOp {
    OpConfig config;
    std::uint64_t count = 0;         // calls in one run of the model
    std::vector<std::string> sites;  // names of the ops, in order
    std::string failure;             // why it could not be run: nothing is known of its inputs
};
// A model as an engine runs it, with inputs of these types.
struct OpModelFacts {
    std::string name;    // of its file
    std::string sha256;  // of its file
    std::string inputs;  // "input f32 1x3x224x224"
    View unit = View::deployed;
    std::vector<ModelOp> ops;
};

// --- How
// ----------------------------------------------------------------------------------------

struct MeasureOptions {
    EngineOptions engine;
    View unit = View::deployed;
    std::vector<CacheMode> modes = {CacheMode::reuse, CacheMode::in_situ};
    double half_width = 0.01;       // of the 95 % interval of the median, as a share: enough
    double seconds_per_op = 1.5;    // and mode, at most
    double window_seconds = 0.004;  // of one sample
    std::size_t visits = 8;         // at least: samples are taken at this many different times
    std::chrono::milliseconds time_limit{60000};  // of one step: an op that takes longer hangs
    std::uint64_t memory_limit = 0;               // resident bytes; 0: none
    std::uint64_t seed = 0;                       // of the order
    bool again = false;                           // measure what the database has already
    // Where not empty: only these keys.
    std::vector<std::string> only = {};
    // Where not empty: only operators with an op of these types.
    std::vector<std::string> types = {};
    bool whole = true;  // the model too
    EnergyOptions energy = {};
    std::function<bool(std::string_view what, std::uint64_t done, std::uint64_t total)> progress =
        {};  // false: stop
};

// What a call costs beside the op, measured with ops that do nothing.
struct CallCost {
    double run_ns = 0;   // of running a program
    double port_ns = 0;  // of each input and output beyond the first pair
    double node_ns = 0;  // of each op in it
};

// A stretch of calls.
struct OpWindow {
    double ns = 0;      // of one call, all included
    double cpu_ns = 0;  // of one call, on all threads
    std::uint64_t calls = 0;
    std::uint64_t switches = 0;  // times that another process had the core
    std::uint32_t visit = 0;
};

struct OpTime {
    double ns = 0;       // median of one call, less what the call costs
    Interval interval;   // 95 %, of the median
    double mean_ns = 0;  // of the windows within 3 standard deviations; less that cost too
    double call_ns = 0;  // what was taken off
    double cpu_ns = 0;
    bool doubtful = false;  // median and mean disagree by more than 2 %
    char grade = 'D';       // A: interval within 2 %; B: 5 %; C: 10 %; D: worse, or disturbed
    std::vector<OpWindow> windows;
};
// Of windows as they were taken.
OpTime summarize(std::vector<OpWindow> windows, double call_ns);

// Joules of one call, or why there are none.
struct OpEnergy {
    std::string label = "unavailable";  // or measured, integrated, modelled
    std::string source;
    std::string why;  // not
    double gross = 0;
    double idle = 0;  // what the machine would have taken meanwhile
    double net = 0;
    double uncertainty = 0;  // of the net; a bound
    double watts = 0;        // gross
};

struct MeasureSummary {
    std::size_t configurations = 0;  // distinct
    std::size_t known = 0;           // in the database before
    std::size_t measured = 0;
    std::size_t failed = 0;
    bool complete = true;
    double seconds = 0;
    std::vector<std::string> warnings;
};

}  // namespace trocar
#pragma GCC visibility pop
