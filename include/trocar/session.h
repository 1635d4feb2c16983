#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trocar/engine.h"
#include "trocar/model.h"
#include "trocar/selector.h"
#include "trocar/tool.h"
#include "trocar/value.h"

#pragma GCC visibility push(default)
namespace trocar {

// A convex part of the graph that becomes one program.
struct Segment {
    std::vector<OpId> ops;          // in order; at most one of them is cut at: the last one
    std::vector<TensorId> inputs;   // from the graph's inputs or earlier segments; no constants
    std::vector<TensorId> outputs;  // read by later segments, or outputs of the graph
    std::vector<TensorId> dead;     // values nobody reads after this segment
};

// The graph cut into segments. Identity and Constant ops on constants are not run: `constants` says
// what stands for their outputs. Refers to the model it was made of.
struct Plan {
    std::vector<Segment> segments;
    std::vector<const Constant*> constants;  // by TensorId; nullptr: not a constant
    std::deque<Constant> made;               // those that Constant ops give as plain attributes
    std::vector<OpId> folded;                // ops that need not run
};
// Where programs end.
struct CutAt {
    bool after = false;   // a program ends after the op, which shares it with what comes before
    bool around = false;  // the op has a program of its own
    // The op is run, and gives all its outputs, even when it only passes a constant on or nobody
    // reads them.
    bool always = false;
};
Plan make_plan(const Model& model, const std::function<CutAt(OpId)>& cut);

struct SessionOptions {
    Selector cut;            // programs end after these ops; none: the whole model is one program
    CompileOptions compile;  // single-op programs are never optimised: there is nothing to fuse
    // Compile each program right before it runs and drop it after: memory stays near that of
    // the largest op and the live tensors, every run compiles anew.
    bool streaming = false;
    // Run the engine in a child process: a crash there is an Error(engine) here. Needs the
    // constructor that takes EngineOptions; observers are not told of anything then.
    bool isolate = false;

    // Instruments. They must outlive the session. Selectors are resolved when the session is made;
    // ops that nobody asked for stay as they are.
    std::vector<Tool*> tools = {};
    View view = View::source;
    Lowering lowering = Lowering::automatic;
};

// How the ports of a session's tools were brought in.
struct Ports {
    std::size_t taps = 0;
    std::size_t cuts = 0;
    std::size_t constants = 0;           // at ops that only pass a constant on
    std::vector<std::string> unmatched;  // texts of selectors that chose no op
    std::vector<std::string> notes;      // what could not be done as asked, a sentence each
};

// What an observer sees after a segment ran. Valid during the call.
struct SegmentRun {
    std::size_t number;
    const Segment& segment;
    std::span<const Value> inputs;
    std::span<const Value> outputs;
    std::uint64_t nanoseconds;  // in Program::run
    // Streaming with `keep_going`: why the segment has no outputs. Empty: it ran.
    std::string failure;
};

// A model ready to run on an engine.
class Session {
public:
    using Observer = std::function<void(const SegmentRun&)>;

    // Keeps `model` by reference: it must outlive the session and not be edited meanwhile. Throws
    // Error(engine) naming the ops where a program cannot be compiled.
    Session(const Model& model, std::shared_ptr<Engine> engine, SessionOptions options = {});
    // Opens the engine itself; with `isolate` in the child process, where alone it is then loaded.
    Session(const Model& model, const EngineOptions& engine, SessionOptions options = {});
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;
    ~Session();

    // The model that `plan` and observers speak of: the one that was given or, with tools, what
    // was made of it.
    const Model& model() const;
    const Plan& plan() const;
    Ports ports() const;
    // Inputs that must be given: the graph's inputs without a default.
    std::vector<TensorId> required_inputs() const;

    // Runs once. `inputs` by name, in any order; a name with a default may be given too. Throws
    // Error(input) on missing, unknown or ill-typed inputs (all of them in one message),
    // Error(engine) when a program fails, with its ops. The session stays usable after either.
    // Outputs in graph order; none when a tool stopped the run.
    std::vector<NamedValue> run(const std::vector<NamedValue>& inputs,
                                const Observer& observer = {});
    // As above, but an op that cannot be compiled or run does not end the run: what depends on it
    // has no value, and the observer is told. For streaming sessions.
    std::vector<NamedValue> run_what_can(const std::vector<NamedValue>& inputs,
                                         const Observer& observer);

    Footprint footprint() const;  // of all programs together

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

// How a run in parts differs from a run of the whole model without optimization. It does where the
// engine computes half floats in f32 and rounds only where a program ends.
struct WholeRun {
    bool same = true;
    double largest = 0;            // |difference| of the numbers of an output
    std::string output = {};       // which one; empty where shapes or types differ
    std::vector<std::string> ops;  // whose results reach the next op unrounded, as far as is known
};
// `outputs`: of the run in parts, as `plan` has them. Runs the model whole and, where the bits
// differ, its parts alone and in pairs.
WholeRun compare_whole_run(const Model& model, const std::shared_ptr<Engine>& engine,
                           const Plan& plan, const std::vector<NamedValue>& inputs,
                           const std::vector<NamedValue>& outputs);
// The same of outputs that are there; without `ops`.
WholeRun compare_outputs(const std::vector<NamedValue>& whole,
                         const std::vector<NamedValue>& parts);
std::string text(const WholeRun& run);  // a sentence, for reports
// Does it declare or hold any f16 or bf16?
bool has_half_floats(const Graph& graph);

// The types of tensors, seen in a run of what they depend on: for tensors whose type the file does
// not declare. Runs op by op; `inputs` may hold more than is needed. Throws Error(engine) when a
// tensor cannot be computed.
std::vector<Type> observe_types(const Model& model, const std::shared_ptr<Engine>& engine,
                                const std::vector<NamedValue>& inputs,
                                std::span<const TensorId> tensors);

// Checks values against the declared inputs of a model. Returns one sentence per fault.
std::vector<std::string> check_inputs(const Model& model, const std::vector<NamedValue>& inputs);

}  // namespace trocar
#pragma GCC visibility pop
