#include "engines/reference/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "trocar/error.h"

namespace trocar::reference {

namespace {

// Bodies and functions inside one another; models have a handful.
constexpr std::size_t deepest = 100;

class Depth {
public:
    explicit Depth(std::size_t& depth) : depth_(depth) {
        if (++depth_ > deepest) {
            --depth_;
            throw Error(Fault::engine, "functions and bodies of the model are too deep in another");
        }
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --depth_; }

private:
    std::size_t& depth_;
};

bool is_own_domain(const std::string& domain) {
    return domain.empty() || domain == "ai.onnx";
}

std::int64_t version_of(const std::vector<OpSet>& opsets, const std::string& domain) {
    for (const auto& set : opsets) {
        if (set.domain == domain || (is_own_domain(domain) && is_own_domain(set.domain))) {
            return set.version;
        }
    }
    return 0;
}

// After which step each tensor is not read any more; outputs of the graph stay.
void find_last_reads(Routine& routine) {
    const auto& graph = *routine.graph;
    std::vector<bool> seen(graph.tensor_limit(), false);
    for (const auto id : graph.outputs()) {
        seen[index(id)] = true;
    }
    for (auto step = routine.steps.rbegin(); step != routine.steps.rend(); ++step) {
        const auto& op = graph.op(step->op);
        for (const auto* list : {&op.inputs, &op.captures, &op.outputs}) {
            for (const auto id : *list) {
                if (id != TensorId::none && !seen[index(id)]) {
                    seen[index(id)] = true;
                    step->last_reads.push_back(id);
                }
            }
        }
    }
}

}  // namespace

const Attribute* FunctionCall::attribute(std::string_view name) const {
    if (const auto* given = call.attribute(name)) {
        return given;
    }
    for (const auto& fallback : function.defaults) {
        if (fallback.name == name) {
            return &fallback;
        }
    }
    return nullptr;
}

Library::Library(Model model) : model_(std::move(model)) {
    main_ = prepare(model_.graph, nullptr, model_.opsets);
}

std::unique_ptr<Routine> Library::prepare(const Graph& graph, const Graph* around,
                                          const std::vector<OpSet>& opsets) {
    const Depth inside(depth_);
    auto routine = std::make_unique<Routine>();
    routine->graph = &graph;
    for (const auto id : graph.tensors()) {
        const auto& tensor = graph.tensor(id);
        if (tensor.constant) {
            routine->constants.emplace_back(id, Value::of(*tensor.constant));
        }
    }
    for (const auto id : graph.captured()) {
        const auto& name = graph.tensor(id).name;
        const auto outside = around != nullptr ? around->find_tensor(name) : std::nullopt;
        if (!outside) {
            throw Error(Fault::input, fmt::format("a body reads '{}', which is not there", name));
        }
        routine->captures.emplace_back(id, *outside);
    }
    for (const auto id : graph.ops()) {
        routine->steps.push_back(prepare_step(graph, id, opsets));
    }
    find_last_reads(*routine);
    return routine;
}

Step Library::prepare_step(const Graph& graph, OpId id, const std::vector<OpSet>& opsets) {
    const auto& op = graph.op(id);
    Step step;
    step.op = id;
    step.opset = version_of(opsets, op.domain);
    step.function = find_function(op);
    if (step.function != nullptr) {
        step.function_body = prepare_function(*step.function);
    } else if (is_own_domain(op.domain)) {
        step.kernel = find_kernel(op.type);
    } else if (op.domain == host_domain) {
        step.kernel = find_host_kernel(op.type);
    }
    if (step.function == nullptr && step.kernel == nullptr) {
        throw Error(Fault::unsupported,
                    fmt::format("the reference engine has no op {}{}{}: {}", op.domain,
                                op.domain.empty() ? "" : ".", op.type, graph.describe(id)),
                    "docs/reference-engine.md lists the ops that it has");
    }
    for (const auto& body : op.subgraphs()) {
        step.bodies.push_back(prepare(*body, &graph, opsets));
    }
    return step;
}

const Function* Library::find_function(const Op& op) const {
    for (const auto& function : model_.functions) {
        if (function->name == op.type && function->domain == op.domain &&
            function->overload == op.overload) {
            return function.get();
        }
    }
    return nullptr;
}

const Routine* Library::prepare_function(const Function& function) {
    const FunctionKey key{function.domain, function.name, function.overload};
    const auto found = functions_.find(key);
    if (found != functions_.end()) {
        if (found->second == nullptr) {
            throw Error(Fault::input, fmt::format("the function '{}' calls itself", function.name));
        }
        return found->second.get();
    }
    functions_[key] = nullptr;
    auto routine = prepare(function.body, nullptr, function.opsets);
    return (functions_[key] = std::move(routine)).get();
}

std::vector<Value> Machine::run(const Routine& routine, std::span<const Value> inputs,
                                const Frame* around, const FunctionCall* function) {
    const Depth inside(depth_);
    const auto& graph = *routine.graph;
    Frame frame{routine, function, std::vector<Value>(graph.tensor_limit())};
    for (const auto& [id, value] : routine.constants) {
        frame.values[index(id)] = value;
    }
    for (const auto& [here, outside] : routine.captures) {
        frame.values[index(here)] = around->values[index(outside)];
    }
    for (std::size_t i = 0; i < std::min(inputs.size(), graph.inputs().size()); ++i) {
        frame.values[index(graph.inputs()[i])] = inputs[i];
    }
    for (const auto& step : routine.steps) {
        run_step(step, frame);
    }
    std::vector<Value> outputs;
    for (const auto id : graph.outputs()) {
        outputs.push_back(frame.values[index(id)]);
    }
    return outputs;
}

std::vector<Value> Machine::run_body(const Call& call, std::size_t body,
                                     std::span<const Value> inputs) {
    const auto& bodies = call.step().bodies;
    require(body < bodies.size(), "a body is missing");
    const auto& routine = *bodies[body];
    if (routine.graph->inputs().size() != inputs.size()) {
        fail(fmt::format("its body takes {} inputs, not {}", routine.graph->inputs().size(),
                         inputs.size()));
    }
    return run(routine, inputs, &call.frame(), call.frame().function);
}

void Machine::run_step(const Step& step, Frame& frame) {
    const auto& graph = *frame.routine.graph;
    const auto& op = graph.op(step.op);
    Call call(*this, frame, step, op);
    const double start = time_ops_ ? now() : 0;
    try {
        if (step.function != nullptr) {
            call_function(call);
        } else {
            step.kernel(call);
        }
    } catch (const std::bad_alloc&) {
        throw Error(Fault::engine,
                    fmt::format("{}: there is not enough memory", graph.describe(step.op)));
    } catch (const Error& e) {
        if (e.fault() != Fault::engine) {
            throw;
        }
        throw Error(e.fault(), fmt::format("{}: {}", graph.describe(step.op), e.what()), e.hint());
    }
    if (time_ops_) {
        auto& times = times_.runs.back().kernels.emplace_back();
        times.op = op.name;
        times.start_ns = start;
        times.spent_ns = now() - start;
        for (const auto id : op.outputs) {
            times.outputs.push_back(id == TensorId::none ? Type{}
                                                         : type_of(frame.values[index(id)]));
        }
    }
    for (const auto id : step.last_reads) {
        frame.values[index(id)] = {};
    }
}

void Machine::call_function(Call& call) {
    const FunctionCall function{*call.step().function, call};
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < call.input_count(); ++i) {
        inputs.push_back(call.has(i) ? call.value(i) : Value{});
    }
    const auto outputs = run(*call.step().function_body, inputs, nullptr, &function);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        call.give(i, outputs[i]);
    }
}

double Machine::now() const {
    return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

void Machine::start_timing() {
    if (time_ops_) {
        times_.runs.emplace_back().start_ns = now();
    }
}

void Machine::end_timing() {
    if (time_ops_) {
        auto& run = times_.runs.back();
        run.spent_ns = now() - run.start_ns;
    }
}

KernelTimes Machine::take_times() {
    time_ops_ = false;
    times_.resolution_ns = 1;
    return std::move(times_);
}

}  // namespace trocar::reference
