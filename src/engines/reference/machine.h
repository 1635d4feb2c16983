#pragma once

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "engines/reference/call.h"
#include "trocar/engine.h"
#include "trocar/model.h"

namespace trocar::reference {

struct Routine;

// An op of a routine, with all that is known of it before it runs.
struct Step {
    OpId op = OpId::none;
    std::int64_t opset = 0;
    Kernel kernel = nullptr;             // or:
    const Function* function = nullptr;  // of the model
    const Routine* function_body = nullptr;
    std::vector<std::unique_ptr<Routine>> bodies;  // in the order of Op::subgraphs()
    std::vector<TensorId> last_reads;              // what nobody reads after it
};

// A graph, ready to run.
struct Routine {
    const Graph* graph = nullptr;
    std::vector<Step> steps;
    std::vector<std::pair<TensorId, Value>> constants;
    std::vector<std::pair<TensorId, TensorId>> captures;  // here, in the graph around
};

// What the references of attributes in the body of a function stand for.
struct FunctionCall {
    const Function& function;
    const Call& call;
    const Attribute* attribute(std::string_view name) const;
};

// The values of a routine that runs.
struct Frame {
    const Routine& routine;
    const FunctionCall* function = nullptr;
    std::vector<Value> values;  // by TensorId
};

// A model made ready: routines for its graph, its functions, and all bodies in them.
class Library {
public:
    explicit Library(Model model);  // throws Error(unsupported) on an op that the engine lacks
    const Model& model() const { return model_; }
    const Routine& main() const { return *main_; }

private:
    using FunctionKey = std::tuple<std::string, std::string, std::string>;
    std::unique_ptr<Routine> prepare(const Graph& graph, const Graph* around,
                                     const std::vector<OpSet>& opsets);
    Step prepare_step(const Graph& graph, OpId id, const std::vector<OpSet>& opsets);
    const Function* find_function(const Op& op) const;
    const Routine* prepare_function(const Function& function);

    Model model_;
    std::map<FunctionKey, std::unique_ptr<Routine>> functions_;
    std::size_t depth_ = 0;
    std::unique_ptr<Routine> main_;
};

// Runs routines, op after op.
class Machine {
public:
    Machine(HostFunction host, bool time_ops) : host_(std::move(host)), time_ops_(time_ops) {}

    // The outputs of a routine. `around`: the frame that its captures come from.
    std::vector<Value> run(const Routine& routine, std::span<const Value> inputs,
                           const Frame* around, const FunctionCall* function);
    // A body of the op at work.
    std::vector<Value> run_body(const Call& call, std::size_t body, std::span<const Value> inputs);

    const HostFunction& host() const { return host_; }

    void start_timing();  // of a run of the whole
    void end_timing();
    KernelTimes take_times();
    bool times_ops() const { return time_ops_; }

private:
    void run_step(const Step& step, Frame& frame);
    void call_function(Call& call);
    double now() const;

    HostFunction host_;
    bool time_ops_;
    std::size_t depth_ = 0;
    KernelTimes times_;
};

// What a callback threw, on its way out of the ops around it.
struct HostFailure {
    std::exception_ptr thrown;
};

// The ops of `host_domain`; nullptr for other names.
Kernel find_host_kernel(std::string_view op);

}  // namespace trocar::reference
