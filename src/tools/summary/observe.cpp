#include "tools/summary/observe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "trocar/error.h"
#include "trocar/session.h"

namespace trocar::summary {
namespace {

Fact fact_of(const Value& value) {
    Fact fact;
    fact.text = value_text(value);
    if (value.is_tensor()) {
        fact.kind = Type::Kind::tensor;
        fact.dtype = value.dtype();
        fact.shape = value.shape();
        fact.known = Known::run;
    } else if (value.kind() == Value::Kind::sequence) {
        fact.kind = Type::Kind::sequence;
        fact.known = Known::run;
    }
    return fact;
}

class Observer {
public:
    Observer(const Model& model, std::shared_ptr<Engine> engine, const ObserveHooks& hooks)
        : model_(model), engine_(std::move(engine)), hooks_(hooks) {}

    // `model` holds the ops of `scope`, under the same handles.
    void run(Scope& scope, const Model& model, const std::vector<NamedValue>& inputs,
             bool outermost) {
        for (const NamedValue& input : inputs) {
            if (auto id = model.graph.find_tensor(input.name);
                id && index(*id) < scope.tensors.size()) {
                keep(scope, *id, input.value);
            }
        }
        SessionOptions options{.cut = every_op(), .compile = {}, .streaming = true};
        options.compile.optimize = CompileOptions::Optimize::none;
        options.compile.low_memory = true;
        Session session(model, engine_, options);
        std::size_t total = session.plan().segments.size();
        session.run_what_can(inputs, [&](const SegmentRun& run) {
            if (hooks_.interrupted && hooks_.interrupted()) {
                throw Error(Fault::interrupted, "interrupted while the ops were run");
            }
            if (outermost && hooks_.progress) {
                hooks_.progress(run.number + 1, total);
            }
            see(scope, model, run);
        });
    }

private:
    static void keep(Scope& scope, TensorId id, const Value& value) {
        const Constant* constant = scope.fact(id).constant;
        scope.fact(id) = fact_of(value);
        scope.fact(id).constant = constant;
    }

    void see(Scope& scope, const Model& model, const SegmentRun& run) {
        const Segment& segment = run.segment;
        if (!run.failure.empty()) {
            for (OpId id : segment.ops) {
                scope.failures[id] = run.failure;
            }
            return;
        }
        for (std::size_t i = 0; i < segment.outputs.size() && i < run.outputs.size(); ++i) {
            if (index(segment.outputs[i]) < scope.tensors.size()) {
                keep(scope, segment.outputs[i], run.outputs[i]);
            }
        }
        for (OpId id : segment.ops) {
            auto bodies = scope.bodies.find(id);
            if (bodies != scope.bodies.end()) {
                enter(scope, model, id, bodies->second, run);
            }
        }
    }

    // The value of a tensor that the segment reads: what it was run with, or a constant.
    static Value value_at(const Scope& scope, const SegmentRun& run, TensorId id) {
        for (std::size_t i = 0; i < run.segment.inputs.size() && i < run.inputs.size(); ++i) {
            if (run.segment.inputs[i] == id) {
                return run.inputs[i];
            }
        }
        const Constant* constant = id == TensorId::none ? nullptr : scope.fact(id).constant;
        return constant == nullptr ? Value() : Value::of(*constant);
    }

    // What the body's own inputs are for the first time it runs. Empty: not known how.
    static std::vector<Value> first_inputs(const Scope& scope, const SegmentRun& run, const Op& op,
                                           const Body& body) {
        std::vector<Value> values;
        auto given = [&](std::size_t slot) { return value_at(scope, run, op.inputs[slot]); };
        if (body.function != nullptr) {
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
                values.push_back(given(slot));
            }
        } else if (op.type == "Loop" && op.inputs.size() >= 2) {
            values.push_back(Value::tensor(DType::i64, {}));
            Value go = Value::tensor(DType::boolean, {});
            go.mutable_bytes()[0] = std::byte{1};
            values.push_back(go);
            for (std::size_t slot = 2; slot < op.inputs.size(); ++slot) {
                values.push_back(given(slot));
            }
        } else if (op.type == "Scan") {
            auto scanned = static_cast<std::size_t>(std::clamp<std::int64_t>(
                op.integer("num_scan_inputs", 0), 0, static_cast<std::int64_t>(op.inputs.size())));
            std::size_t states = op.inputs.size() - scanned;
            std::vector<std::int64_t> axes = op.integers("scan_input_axes");
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
                std::size_t n = slot - states;
                values.push_back(slot < states
                                     ? given(slot)
                                     : first_slice(given(slot), n < axes.size() ? axes[n] : 0));
            }
        }
        return values;
    }

    // The first slice along an axis; of other axes than the first its values are zeros, as only the
    // shape is asked for.
    static Value first_slice(const Value& value, std::int64_t axis) {
        if (!value.is_tensor()) {
            return {};
        }
        Shape shape = value.shape();
        auto rank = static_cast<std::int64_t>(shape.size());
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank || shape[static_cast<std::size_t>(axis)] < 1) {
            return {};
        }
        auto steps = static_cast<std::size_t>(shape[static_cast<std::size_t>(axis)]);
        shape.erase(shape.begin() + axis);
        bool plain = axis == 0 && bits(value.dtype()) >= 8;
        if (!plain) {
            return Value::tensor(value.dtype(), shape);
        }
        Bytes all = value.bytes();
        return Value::copy(value.dtype(), shape, all.first(all.size() / steps));
    }

    void enter(Scope& scope, const Model& model, OpId id, std::vector<Body>& bodies,
               const SegmentRun& run) {
        const Op& op = scope.graph->op(id);
        if (op.type == "If" && !op.inputs.empty()) {
            Value condition = value_at(scope, run, op.inputs[0]);
            bool chosen = condition.is_tensor() && condition.dtype() == DType::boolean &&
                          condition.element_count() == 1 && condition.bytes()[0] != std::byte{0};
            for (Body& body : bodies) {
                body.taken = body.label == (chosen ? "then_branch" : "else_branch");
            }
        }
        if (op.type == "Loop" && !op.inputs.empty() && op.inputs[0] != TensorId::none) {
            Value limit = value_at(scope, run, op.inputs[0]);
            if (limit.is_tensor() && limit.dtype() == DType::i64 && limit.element_count() == 1) {
                std::memcpy(&scope.limits[id], limit.bytes().data(), sizeof(std::int64_t));
            }
        }
        for (Body& body : bodies) {
            if (body.taken) {
                try {
                    run_body(scope, model, op, body, run);
                } catch (const Error& e) {
                    if (e.fault() == Fault::interrupted) {
                        throw;
                    }
                    scope.failures[id] =
                        fmt::format("its body could not be run alone: {}", e.what());
                }
            }
        }
    }

    // Makes a model of a body, with what it captures as further inputs, and runs it.
    void run_body(Scope& scope, const Model& model, const Op& op, Body& body,
                  const SegmentRun& run) {
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

        std::vector<NamedValue> inputs;
        std::vector<Value> firsts = first_inputs(scope, run, op, body);
        std::vector<TensorId> own(graph.inputs().begin(), graph.inputs().end());
        for (std::size_t i = 0; i < own.size(); ++i) {
            if (i >= firsts.size() || firsts[i].kind() == Value::Kind::none) {
                throw Error(Fault::engine,
                            fmt::format("its input '{}' has no value", graph.tensor(own[i]).name));
            }
            graph.set_type(own[i], type_of(firsts[i]));
            inputs.push_back({graph.tensor(own[i]).name, firsts[i]});
        }
        std::vector<TensorId> captured(graph.captured().begin(), graph.captured().end());
        for (TensorId inner : captured) {
            std::string name = graph.tensor(inner).name;
            auto outer = scope.graph->find_tensor(name);
            if (!outer) {
                throw Error(Fault::engine,
                            fmt::format("what it captures as '{}' is not there", name));
            }
            const Constant* constant = scope.fact(*outer).constant;
            if (constant != nullptr && !scope.graph->tensor(*outer).is_input) {
                graph.replace_uses(inner, graph.add_constant(graph.fresh_name(name), *constant));
                continue;
            }
            Value value = value_at(scope, run, *outer);
            if (value.kind() == Value::Kind::none) {
                throw Error(Fault::engine,
                            fmt::format("'{}', which it captures, has no value", name));
            }
            TensorId stands = graph.add_input(graph.fresh_name(name), type_of(value));
            graph.replace_uses(inner, stands);
            inputs.push_back({graph.tensor(stands).name, value});
        }
        this->run(*body.scope, part, inputs, false);
    }

    const Model& model_;
    std::shared_ptr<Engine> engine_;
    const ObserveHooks& hooks_;
};

}  // namespace

void observe(Scope& scope, const Model& model, const std::shared_ptr<Engine>& engine,
             const std::vector<NamedValue>& inputs, const ObserveHooks& hooks) {
    Observer(model, engine, hooks).run(scope, model, inputs, true);
}

}  // namespace trocar::summary
