#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/engine.h"
#include "trocar/model.h"
#include "trocar/selector.h"
#include "trocar/tool.h"

#pragma GCC visibility push(default)
namespace trocar {

// What the processor counted in user mode.
struct Counts {
    std::uint64_t cycles = 0;
    std::uint64_t instructions = 0;
    std::uint64_t cache_misses = 0;  // of the last level
};

// The counters of the calling thread, and of threads it starts later.
class HardwareCounters {
public:
    HardwareCounters();
    HardwareCounters(const HardwareCounters&) = delete;
    HardwareCounters& operator=(const HardwareCounters&) = delete;
    ~HardwareCounters();
    const std::string& unavailable() const { return unavailable_; }  // why; empty: they are there
    void start();
    Counts read() const;  // since the start
    Counts stop();

private:
    std::vector<int> files_;
    std::string unavailable_;
};

struct ProfileOptions {
    // deployed: every op that the engine made of the model, inside one program.
    // source: layers of the model, each a program of its own.
    View view = View::deployed;
    Selector cut;          // source view: layers end after these ops
    double seconds = 5;    // runs are begun until then
    std::size_t runs = 0;  // or this many; 0: as many as fit
    bool count = true;     // run op by op once, for shapes: MACs, bytes, memory
    std::function<bool()> interrupted = {};
    std::function<void(std::string_view what, std::uint64_t done, std::uint64_t total)> progress =
        {};
};

// What is measured of one part: an op of the deployed graph, or a layer between cuts.
struct ProfilePart {
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    std::string name;
    std::string type;           // of the ops in it: "Conv + BatchNormalization + Relu"
    std::string module;         // around all of its ops
    std::vector<OpId> ops;      // of the model, in order; empty: the engine's own, or in a subgraph
    std::size_t inside = none;  // the part in whose subgraph it stands
    std::uint64_t calls = 1;    // in the last run
    std::vector<double> total_ns;  // by run
    std::vector<double> self_ns;   // without the parts inside it
    std::vector<double> start_ns;  // of the first call, since the begin of the run
    double cold_ns = 0;            // in the first run, which the lists leave out

    std::optional<std::uint64_t> macs;
    std::optional<std::uint64_t> flops;
    std::optional<std::uint64_t> bytes;  // read and written, each tensor once
    std::string uncounted;               // why not
    std::optional<Counts> counts;        // of one run; layers only

    // Of tensors, each with memory of its own.
    std::optional<std::uint64_t> allocated_bytes;
    std::optional<std::uint64_t> freed_bytes;
    std::optional<std::uint64_t> live_bytes;  // when it has run, what it frees included
};

struct Profile {
    View view = View::deployed;
    std::vector<ProfilePart> parts;  // in the order in which they ran
    std::vector<double> wall_ns;     // of the profiled runs, but for the first
    std::vector<double> begin_ns;    // of these runs, since that of the first in the list
    std::vector<double> plain_ns;    // of runs of the whole model unprofiled, beside each
    double cold_ns = 0;              // of the first profiled run
    double compile_ns = 0;           // of the whole model
    double cold_plain_ns = 0;        // its first run
    std::size_t steady = 0;          // the run from which on the state is steady
    std::size_t programs = 1;
    double resolution_ns = 0;  // of the clock that timed the parts
    std::vector<OpId> folded;  // ops of the model that no part runs
    std::optional<std::uint64_t> peak_bytes;
    std::size_t peak_part = ProfilePart::none;
    std::optional<Counts> counts;    // of one run of the whole model unprofiled
    std::string counts_unavailable;  // why not
    bool partial = false;
    std::vector<std::string> notes;
};

// Throws Error(unsupported) where the engine cannot give the view, Error(engine) when it fails,
// Error(interrupted) before there was a run.
Profile profile(const Model& model, const std::shared_ptr<Engine>& engine,
                const std::vector<NamedValue>& inputs, const ProfileOptions& options);

// The runs over which times are averaged: of the steady ones the half whose wall times lie in the
// middle. The same for all parts, so that what is averaged over them adds up.
std::vector<std::size_t> typical_runs(const Profile& profile);
// Averages over these runs.
double typical(const std::vector<double>& by_run, const std::vector<std::size_t>& runs);
// What of these runs no part accounts for: wall time less the self times.
double unattributed(const Profile& profile, const std::vector<std::size_t>& runs);

// What this machine can do at most, measured.
struct Peaks {
    double flops = 0;  // per second: a product of large f32 matrices on the engine
    double bytes = 0;  // per second: STREAM's triad
    int threads = 1;
};
Peaks measure_peaks(Engine& engine, int threads);

}  // namespace trocar
#pragma GCC visibility pop
