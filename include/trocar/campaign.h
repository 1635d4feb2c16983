#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trocar/engine.h"
#include "trocar/fault.h"
#include "trocar/selector.h"
#include "trocar/tool.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// Where random faults may be.
struct Population {
    enum class Target {
        weights,      // constants of floating point or quantized numbers that ops read
        activations,  // outputs of ops
        reads,        // what one op reads, and nobody else sees changed
        inputs,       // of the model
        constants,    // all constants, shapes and indices included
    };
    Target target = Target::weights;
    Selector ops = every_op();  // that write the tensor, or read the constant
    std::string tensors = {};   // glob on the tensor's name; empty: any
    std::optional<DType> dtype = std::nullopt;
    Elements elements = {};    // within each tensor
    std::string bits = "all";  // see parse_bits; "all" where the effect has no bits
    Effect effect = {};        // its mask is drawn from `bits`, its key from the trial
    int bits_at_once = 1;      // flip, stuck: neighbouring bits changed together
    int elements_at_once = 1;  // neighbouring elements along the last dimension
    // The whole of what the element is in, instead of the element alone.
    enum class Extent { element, row, channel, tensor } extent = Extent::element;
    bool all_readers = false;  // a constant that several ops read is changed for all of them
    Duration duration = {};
};

// What makes a campaign faster than running the model for every fault, without changing a bit of
// its results. All can be switched off.
struct Accelerate {
    bool prefix = true;    // begin at the op of the fault, from stored tensors; without it: nothing
    bool dead = true;      // stop when every tensor has its golden bits again
    bool region = true;    // recompute only the positions that a change can reach
    bool channels = true;  // recompute only the output channels of a changed filter
    bool screen = true;    // do not run what changes no bit
    bool twins = true;     // run once what several trials have in common
    std::size_t batch = 32;  // trials that go through the model side by side
};

// How trials go to strata: by their sizes, evenly, or more where outcomes are expected to vary
// most.
enum class Allocation { proportional, equal, data_aware };
// How often some faults are drawn, against others. The factor of a fault is the product of those of
// all entries that fit it; Trial::weight makes up for it.
struct Importance {
    std::string bits = {};    // see parse_bits; empty: any
    std::string layers = {};  // glob on the name of the layer; empty: any
    double factor = 1;        // above 0
    bool operator==(const Importance&) const = default;
};
// "bits:23-30=10", "layer:/conv1/*=5". Throws Error(usage).
Importance parse_importance(std::string_view text);
// What is made of the ranges that tensors have in golden runs: nothing, a note when one is left, or
// what lies outside is clipped to it.
enum class Ranges { off, observe, clip };

// What a run with a fault did, from bad to good; the first that holds is the outcome.
enum class Outcome {
    crash,   // the process that ran it died of a signal
    hang,    // it did not end within the time limit
    failed,  // the engine refused
    due,     // NaN or infinity where the golden run has a number, in a monitored tensor
    sdc,     // another decision
    benign,  // other bits, same decision
    masked,  // the golden output bit for bit
};
std::string name(Outcome outcome);
std::optional<Outcome> parse_outcome(std::string_view text);

// Numbers of the user's own about a run, by name.
using Metrics = std::vector<std::pair<std::string, double>>;

// What the faults of one trial did to one input.
struct TrialResult {
    static constexpr double none = std::numeric_limits<double>::quiet_NaN();

    std::uint64_t trial = 0;
    std::uint64_t input = 0;
    Outcome outcome = Outcome::masked;
    // By the decision of the campaign; see trocar/decision.h.
    std::int64_t golden_top = -1;  // the class, or the number compared, at the first position
    std::int64_t faulty_top = -1;  // -1: none (NaN, failure, crash, hang)
    std::uint64_t positions = 0;   // that are decided; 0 also where there are no outputs
    std::uint64_t changed = 0;     // of them, those decided otherwise
    bool sdc1 = false;             // another decision: at some position, or other positions
    // The next three for scores only.
    bool sdc5 = false;   // the faulty first choice is not among the golden first five
    bool sdc10 = false;  // the score of the golden first choice is off by over 10 %
    bool sdc20 = false;  // … by over 20 %
    std::optional<bool> golden_correct;  // with labels
    std::optional<bool> faulty_correct;
    bool detected = false;  // a monitor's range was left
    // Of all outputs, against the golden ones.
    double max_abs = none;
    double mean_abs = none;
    double max_rel = none;
    double sqnr_db = none;
    double cosine = none;
    double metric = none;      // the user's, where it has no name
    Metrics metrics = {};      // … where they have, in the order of their names
    std::string failure = {};  // what the engine said; the signal of a crash; the limit of a hang

    bool operator==(const TrialResult& other) const;  // NaN equals NaN
};

// What it did to one tensor on the way, where that was asked for.
struct LayerEffect {
    std::uint64_t trial = 0;
    std::uint64_t input = 0;
    std::string tensor = {};
    std::string op = {};
    std::uint64_t changed = 0;  // elements with other bits
    std::uint64_t bad = 0;      // of them, NaN or infinite
    double max_abs = 0;
};

// One trial as it was drawn: all of its faults are there together.
struct Trial {
    std::uint64_t number = 0;
    std::vector<ModelFault> faults = {};
    // Where all of its faults agree; else empty.
    std::string target = {};  // "weights"
    std::string layer = {};   // the op that reads or writes the tensor
    std::uint32_t stratum = 0;
    double weight = 1;  // likelihood ratio, where the sampling was not uniform
};

// A part of all faults from which trials are drawn on its own.
struct Stratum {
    std::string name;              // "weights / layer1.0.conv1 / bit 30"
    std::string target;            // "weights"
    std::string layer = {};        // of the op; empty: all
    int bit = -1;                  // -1: all
    std::uint64_t population = 0;  // faults in it
    std::uint64_t planned = 0;     // trials
};

}  // namespace trocar
#pragma GCC visibility pop
