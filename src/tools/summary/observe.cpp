#include "tools/summary/observe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "tools/summary/body_inputs.h"
#include "tools/summary/dependence.h"
#include "trocar/error.h"
#include "trocar/session.h"
#include "util/mapped_file.h"
#include "util/text.h"

namespace trocar::summary {
namespace {

constexpr std::size_t release_from = std::size_t{1} << 16;  // bytes of a constant worth giving back

Fact observed_fact(const Value& value) {
    Fact fact;
    if (value.is_tensor()) {
        fact.kind = Type::Kind::tensor;
        fact.dtype = value.dtype();
        fact.shape = value.shape();
        fact.known = Known::run;
    } else if (value.kind() == Value::Kind::sequence) {
        fact.kind = Type::Kind::sequence;
        fact.known = Known::run;
    }
    if (!fact.shape) {
        fact.text = value_text(value);
    }
    return fact;
}

// A float tensor of ones: stands for values that nothing depends on.
Value stand_in(const Fact& fact) {
    Value value = Value::tensor(fact.dtype, *fact.shape);
    std::span<std::byte> bytes = value.mutable_bytes();
    auto fill = [&](auto one) {
        for (std::size_t at = 0; at + sizeof one <= bytes.size(); at += sizeof one) {
            std::memcpy(bytes.data() + at, &one, sizeof one);
        }
    };
    switch (fact.dtype) {
        case DType::f32:
            fill(1.0F);
            break;
        case DType::f64:
            fill(1.0);
            break;
        case DType::f16:
            fill(std::uint16_t{0x3c00});
            break;
        case DType::bf16:
            fill(std::uint16_t{0x3f80});
            break;
        default:
            break;
    }
    return value;
}

// What a graph is run with.
struct Given {
    std::vector<NamedValue> inputs;
    // What stands for tensors that a body captures, by the handle they have there: bodies within it
    // look for them under their own names.
    std::vector<std::pair<TensorId, Value>> captured;
    std::vector<std::pair<TensorId, const Constant*>> captured_constants;
};

class Observer {
public:
    Observer(const Model& model, std::shared_ptr<Engine> engine, const ObserveHooks& hooks)
        : model_(model), engine_(std::move(engine)), hooks_(hooks) {}

    // `model` holds the ops of `scope`, under the same handles.
    void run(Scope& scope, const Model& model, const Given& given) {
        Run run{scope, model, make_plan(model, {}), {}, {}, {}, {}, opset_text(model)};
        const Graph& graph = model.graph;
        run.values.resize(graph.tensor_limit());
        run.known.resize(graph.tensor_limit());
        run.readers.resize(graph.tensor_limit());
        run.matter = values_that_matter(graph, run.plan.constants);
        for (TensorId id : graph.tensors()) {
            run.readers[index(id)] = graph.tensor(id).uses.size();
        }
        start(run, given);
        bool outermost = &model == &model_;
        std::size_t done = 0;
        for (OpId id : graph.ops()) {
            if (hooks_.interrupted && hooks_.interrupted()) {
                throw Error(Fault::interrupted, "interrupted while the ops were run");
            }
            if (outermost && hooks_.progress) {
                hooks_.progress(++done, graph.op_count());
            }
            const Op& op = graph.op(id);
            bool passes = op.outputs.size() == 1 && op.outputs[0] != TensorId::none &&
                          run.plan.constants[index(op.outputs[0])] != nullptr;
            if (!passes) {
                see(run, id);
            }
            forget(run, op);
        }
    }

private:
    static std::string opset_text(const Model& model) {
        std::string text;
        for (const OpSet& set : model.opsets) {
            text += fmt::format("{} {}\n", set.domain, set.version);
        }
        return text;
    }

    // One graph while it is run. Tables are indexed by TensorId.
    struct Run {
        Scope& scope;
        const Model& model;
        Plan plan;
        std::vector<Value> values;
        std::vector<bool> known;  // its shape is known, the value may have been left out
        std::vector<bool> matter;
        std::vector<std::size_t> readers;  // that are still to come
        std::string opsets;
    };

    static void keep(Run& run, TensorId id, const Value& value) {
        run.values[index(id)] = value;
        run.known[index(id)] = true;
        if (index(id) < run.scope.tensors.size()) {
            const Constant* constant = run.scope.fact(id).constant;
            run.scope.fact(id) = observed_fact(value);
            run.scope.fact(id).constant = constant;
        }
    }

    static void start(Run& run, const Given& given) {
        std::vector<std::string> faults = check_inputs(run.model, given.inputs);
        if (!faults.empty()) {
            throw Error(Fault::input, fmt::format("{}", join(faults, "; ")));
        }
        for (TensorId id : run.model.graph.inputs()) {
            const Tensor& t = run.model.graph.tensor(id);
            if (t.constant && run.plan.constants[index(id)] == nullptr) {
                keep(run, id, Value::of(*t.constant));
            }
        }
        for (const NamedValue& input : given.inputs) {
            if (auto id = run.model.graph.find_tensor(input.name)) {
                keep(run, *id, input.value);
            }
        }
        for (const auto& [id, value] : given.captured) {
            keep(run, id, value);
        }
        for (const auto& [id, constant] : given.captured_constants) {
            run.plan.constants[index(id)] = constant;
            run.scope.fact(id) = summary::fact_of(*constant);
        }
    }

    // Values live no longer than their last reader.
    static void forget(Run& run, const Op& op) {
        for (const auto* list : {&op.inputs, &op.captures}) {
            for (TensorId id : *list) {
                if (id == TensorId::none) {
                    continue;
                }
                if (run.readers[index(id)] > 0 && --run.readers[index(id)] == 0) {
                    run.values[index(id)] = {};
                }
                const Constant* constant = run.plan.constants[index(id)];
                if (constant != nullptr && !constant->is_sparse() && !constant->is_string() &&
                    constant->stored_bytes() >= release_from) {
                    release_pages(constant->bytes());
                }
            }
        }
        for (TensorId id : op.outputs) {
            if (id != TensorId::none && run.readers[index(id)] == 0) {
                run.values[index(id)] = {};
            }
        }
    }

    void see(Run& run, OpId id) {
        const Op& op = run.model.graph.op(id);
        for (const auto* list : {&op.inputs, &op.captures}) {
            for (TensorId t : *list) {
                bool there = t == TensorId::none || run.plan.constants[index(t)] != nullptr ||
                             run.known[index(t)];
                if (!there) {
                    run.scope.failures[id] =
                        fmt::format("not run: '{}' has no value", run.model.graph.tensor(t).name);
                    return;
                }
            }
        }
        try {
            if (!recall(run, op, id)) {
                execute(run, op, id);
            }
            auto bodies = run.scope.bodies.find(id);
            if (bodies != run.scope.bodies.end()) {
                enter(run, op, id, bodies->second);
            }
        } catch (const Error& e) {
            if (e.fault() == Fault::interrupted) {
                throw;
            }
            run.scope.failures[id] = fmt::format("{}: {}", run.model.graph.describe(id), e.what());
        }
    }

    // Takes the shapes of an equal op that ran, when nothing depends on the values of this one.
    bool recall(Run& run, const Op& op, OpId id) {
        if (hooks_.run_all) {
            return false;
        }
        for (TensorId t : op.outputs) {
            if (t != TensorId::none && run.matter[index(t)]) {
                return false;
            }
        }
        std::optional<std::string> key = shape_key(run.scope, id, run.plan.constants);
        auto found = key ? seen_.find(run.opsets + *key) : seen_.end();
        if (found == seen_.end()) {
            return false;
        }
        for (std::size_t i = 0; i < op.outputs.size(); ++i) {
            if (op.outputs[i] != TensorId::none) {
                run.scope.fact(op.outputs[i]) = found->second[i];
                run.known[index(op.outputs[i])] = true;
            }
        }
        return true;
    }

    // Facts of the outputs of an op that ran, for those like it. Only floats: what stands for their
    // values must not be taken for an index or a divisor.
    void remember(Run& run, const Op& op, const std::optional<std::string>& key) {
        if (!key) {
            return;
        }
        std::vector<Fact> facts;
        for (TensorId t : op.outputs) {
            facts.push_back(t == TensorId::none ? Fact{} : run.scope.fact(t));
            if (t != TensorId::none && (!facts.back().shape || !is_float(facts.back().dtype))) {
                return;
            }
        }
        seen_.try_emplace(run.opsets + *key, std::move(facts));
    }

    void execute(Run& run, const Op& op, OpId id) {
        std::optional<std::string> key = shape_key(run.scope, id, run.plan.constants);
        std::vector<TensorId> outputs;
        for (TensorId t : op.outputs) {
            if (t != TensorId::none) {
                outputs.push_back(t);
            }
        }
        if (outputs.empty()) {
            return;
        }
        Model part = extract_ops(run.model, std::span(&id, 1), outputs, run.plan.constants);
        std::vector<TensorId> own(part.graph.inputs().begin(), part.graph.inputs().end());
        std::vector<Value> values;
        for (TensorId input : own) {
            TensorId outer = run.model.graph.find_tensor(part.graph.tensor(input).name).value();
            Value& value = run.values[index(outer)];
            if (value.kind() == Value::Kind::none) {
                const Fact& fact = run.scope.fact(outer);
                if (!fact.shape) {
                    throw Error(Fault::engine, fmt::format("'{}' is an optional without a value",
                                                           part.graph.tensor(input).name));
                }
                value = stand_in(fact);
            }
            part.graph.set_type(input, type_of(value));
            values.push_back(value);
        }
        CompileOptions options{
            .optimize = CompileOptions::Optimize::none, .low_memory = true, .types_only = true};
        if (hooks_.doing) {
            hooks_.doing(fmt::format("running {} '{}'", op.type, op.name));
        }
        std::unique_ptr<Program> program = engine_->compile(part, options);
        std::vector<Value> results(outputs.size());
        program->run(values, results);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            keep(run, outputs[i], results[i]);
        }
        remember(run, op, key);
    }

    // The value of a tensor: what flows there, or a constant.
    static Value value_at(const Run& run, TensorId id) {
        if (id == TensorId::none) {
            return {};
        }
        const Constant* constant = run.plan.constants[index(id)];
        return constant == nullptr ? run.values[index(id)] : Value::of(*constant);
    }

    void enter(Run& run, const Op& op, OpId id, std::vector<Body>& bodies) {
        if (op.type == "If" && !op.inputs.empty()) {
            Value condition = value_at(run, op.inputs[0]);
            bool chosen = condition.is_tensor() && condition.dtype() == DType::boolean &&
                          condition.element_count() == 1 && condition.bytes()[0] != std::byte{0};
            for (Body& body : bodies) {
                body.taken = body.label == (chosen ? "then_branch" : "else_branch");
            }
        }
        if (op.type == "Loop" && !op.inputs.empty() && op.inputs[0] != TensorId::none) {
            Value limit = value_at(run, op.inputs[0]);
            if (limit.is_tensor() && limit.dtype() == DType::i64 && limit.element_count() == 1) {
                std::memcpy(&run.scope.limits[id], limit.bytes().data(), sizeof(std::int64_t));
            }
        }
        for (Body& body : bodies) {
            if (body.taken) {
                try {
                    run_body(run, op, body);
                } catch (const Error& e) {
                    if (e.fault() == Fault::interrupted) {
                        throw;
                    }
                    run.scope.failures[id] =
                        fmt::format("its body could not be run alone: {}", e.what());
                }
            }
        }
    }

    // Makes a model of a body, with what it captures as further inputs, and runs it.
    void run_body(Run& run, const Op& op, Body& body) {
        const Model& model = run.model;
        Model part;
        part.format = model.format;
        part.dialect = model.dialect;
        part.functions = model_.functions;
        part.opsets = body.function != nullptr ? body.function->opsets : model.opsets;
        for (const OpSet& set : model.opsets) {
            bool there = std::any_of(part.opsets.begin(), part.opsets.end(),
                                     [&](const OpSet& s) { return s.domain == set.domain; });
            if (!there) {
                part.opsets.push_back(set);
            }
        }
        part.ir_version = model.ir_version;
        part.graph = body.scope->graph->clone();
        Graph& graph = part.graph;

        Given given;
        std::vector<Value> firsts =
            first_inputs(op, body, [&](TensorId id) { return value_at(run, id); });
        std::vector<TensorId> own(graph.inputs().begin(), graph.inputs().end());
        for (std::size_t i = 0; i < own.size(); ++i) {
            if (i >= firsts.size() || firsts[i].kind() == Value::Kind::none) {
                throw Error(Fault::engine,
                            fmt::format("its input '{}' has no value", graph.tensor(own[i]).name));
            }
            graph.set_type(own[i], type_of(firsts[i]));
            given.inputs.push_back({graph.tensor(own[i]).name, firsts[i]});
        }
        std::vector<TensorId> captured(graph.captured().begin(), graph.captured().end());
        for (TensorId inner : captured) {
            std::string name = graph.tensor(inner).name;
            auto outer = model.graph.find_tensor(name);
            if (!outer) {
                throw Error(Fault::engine,
                            fmt::format("what it captures as '{}' is not there", name));
            }
            const Constant* constant = run.plan.constants[index(*outer)];
            if (constant != nullptr) {
                graph.replace_uses(inner, graph.add_constant(graph.fresh_name(name), *constant));
                given.captured_constants.emplace_back(inner, constant);
                continue;
            }
            Value value = value_at(run, *outer);
            if (value.kind() == Value::Kind::none) {
                throw Error(Fault::engine,
                            fmt::format("'{}', which it captures, has no value", name));
            }
            TensorId stands = graph.add_input(graph.fresh_name(name), type_of(value));
            graph.replace_uses(inner, stands);
            given.inputs.push_back({graph.tensor(stands).name, value});
            given.captured.emplace_back(inner, value);
        }
        this->run(*body.scope, part, given);
    }

    const Model& model_;
    std::shared_ptr<Engine> engine_;
    const ObserveHooks& hooks_;
    std::unordered_map<std::string, std::vector<Fact>> seen_;
};

}  // namespace

void observe(Scope& scope, const Model& model, const std::shared_ptr<Engine>& engine,
             const std::vector<NamedValue>& inputs, const ObserveHooks& hooks) {
    Observer(model, engine, hooks).run(scope, model, {inputs, {}, {}});
}

}  // namespace trocar::summary
