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
#include "trocar/value.h"

namespace trocar {

// A convex part of the graph that becomes one program.
struct Segment {
    std::vector<OpId> ops;          // in order; at most one of them is cut at
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
// `cut_after` says after which ops a program ends.
Plan make_plan(const Model& model, const std::function<bool(OpId)>& cut_after);

struct SessionOptions {
    Selector cut;            // programs end after these ops; none: the whole model is one program
    CompileOptions compile;  // single-op programs are never optimised: there is nothing to fuse
    // Compile each program right before it runs and drop it after: memory stays near that of
    // the largest op and the live tensors, every run compiles anew.
    bool streaming = false;
    // Run the engine in a child process: a crash there is an Error(engine) here. Needs the
    // constructor that takes EngineOptions; observers are not told of anything then.
    bool isolate = false;
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

    const Plan& plan() const;
    // Inputs that must be given: the graph's inputs without a default.
    std::vector<TensorId> required_inputs() const;

    // Runs once. `inputs` by name, in any order; a name with a default may be given too. Throws
    // Error(input) on missing, unknown or ill-typed inputs (all of them in one message),
    // Error(engine) when a program fails, with its ops. The session stays usable after either.
    // Outputs in graph order.
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

// The types of tensors, seen in a run of what they depend on: for tensors whose type the file does
// not declare. Runs op by op; `inputs` may hold more than is needed. Throws Error(engine) when a
// tensor cannot be computed.
std::vector<Type> observe_types(const Model& model, const std::shared_ptr<Engine>& engine,
                                const std::vector<NamedValue>& inputs,
                                std::span<const TensorId> tensors);

// Checks values against the declared inputs of a model. Returns one sentence per fault.
std::vector<std::string> check_inputs(const Model& model, const std::vector<NamedValue>& inputs);

}  // namespace trocar
