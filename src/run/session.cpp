#include "trocar/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "run/isolate.h"
#include "trocar/error.h"
#include "util/mapped_file.h"

namespace trocar {

namespace {

// Mapped constants above this size are given back to the system after a streaming use.
constexpr std::size_t release_from = std::size_t{1} << 16;

// A program and where its inputs and outputs stand in the graph.
struct Compiled {
    std::unique_ptr<Program> program;
    std::vector<TensorId> inputs;
    std::vector<TensorId> outputs;
};

std::uint64_t nanoseconds() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

}  // namespace

struct Session::Parts {
    const Model& model;
    std::shared_ptr<Engine> engine;
    SessionOptions options;
    Plan plan;
    bool whole = false;  // no cut: the engine is given the model as it is
    std::vector<Compiled> programs;
    std::unique_ptr<Isolated> isolated;

    // Of the run under way, by TensorId.
    std::vector<Value> values;
    std::vector<bool> known;
    std::vector<Value> in;
    std::vector<Value> out;

    Parts(const Model& m, std::shared_ptr<Engine> e, SessionOptions o)
        : model(m), engine(std::move(e)), options(std::move(o)) {}

    const Graph& graph() const { return model.graph; }

    void prepare() {
        std::size_t cuts = 0;
        plan = make_plan(model, [&](OpId id) {
            const bool cut = options.cut(model.graph, id);
            cuts += cut ? 1 : 0;
            return cut;
        });
        whole = cuts == 0;
        programs.resize(plan.segments.size());
        values.resize(graph().tensor_limit());
        known.resize(graph().tensor_limit());
    }

    std::string place(const Segment& segment) const {
        const auto& first = segment.ops.front();
        if (segment.ops.size() == 1) {
            return graph().describe(first);
        }
        return fmt::format("{} ops, {} to {}", segment.ops.size(), graph().describe(first),
                           graph().describe(segment.ops.back()));
    }

    // Errors of the engine say which ops they are about.
    template <class F>
    auto at(const Segment& segment, F&& work) {
        try {
            return work();
        } catch (const Error& e) {
            if (e.fault() != Fault::engine && e.fault() != Fault::unsupported) {
                throw;
            }
            throw Error(e.fault(), fmt::format("{}: {}", place(segment), e.what()), e.hint());
        }
    }

    // A part's inputs need a type. The file's declaration serves where the value at hand agrees;
    // otherwise the value's own type does, without dimensions, which may change from run to run.
    Type input_type(TensorId id) const {
        const auto& declared = graph().tensor(id).type;
        const auto& value = values[index(id)];
        if (graph().tensor(id).is_input || value.kind() == Value::Kind::none ||
            (declared.kind != Type::Kind::tensor && declared.kind != Type::Kind::unknown)) {
            return declared;
        }
        auto type = type_of(value);
        bool agrees = declared.kind == type.kind && declared.dtype == type.dtype && declared.dims &&
                      type.dims && declared.dims->size() == type.dims->size();
        for (std::size_t i = 0; agrees && i < type.dims->size(); ++i) {
            const auto dim = (*declared.dims)[i].value;
            agrees = dim < 0 || dim == (*type.dims)[i].value;
        }
        if (agrees) {
            return declared;
        }
        type.dims.reset();
        return type;
    }

    Compiled compile_whole() {
        Compiled compiled;
        compiled.program = engine->compile(model, options.compile);
        for (const auto& name : compiled.program->input_names()) {
            compiled.inputs.push_back(graph().find_tensor(name).value());
        }
        compiled.outputs.assign(graph().outputs().begin(), graph().outputs().end());
        return compiled;
    }

    Compiled compile(const Segment& segment) {
        auto part = extract_ops(model, segment.ops, segment.outputs, plan.constants);
        Compiled compiled;
        compiled.outputs = segment.outputs;
        const std::vector<TensorId> inputs(part.graph.inputs().begin(), part.graph.inputs().end());
        for (const auto input : inputs) {
            const auto id = graph().find_tensor(part.graph.tensor(input).name).value();
            compiled.inputs.push_back(id);
            auto type = input_type(id);
            if (type != part.graph.tensor(input).type) {
                part.graph.set_type(input, std::move(type));
            }
        }
        auto compile_options = options.compile;
        if (segment.ops.size() == 1) {
            compile_options.optimize = CompileOptions::Optimize::none;
        }
        compiled.program = engine->compile(part, compile_options);
        return compiled;
    }

    void set(TensorId id, Value value) {
        values[index(id)] = std::move(value);
        known[index(id)] = true;
    }
    void forget(TensorId id) {
        values[index(id)] = {};
        known[index(id)] = false;
    }

    void take_inputs(const std::vector<NamedValue>& inputs) {
        auto faults = check_inputs(model, inputs);
        for (const auto& input : inputs) {
            const auto id = graph().find_tensor(input.name);
            if (id && plan.constants[index(*id)] != nullptr && graph().tensor(*id).is_input) {
                faults.push_back(fmt::format(
                    "input '{}' is a constant: models of IR version {} do not let it be overridden",
                    input.name, model.ir_version));
            }
        }
        if (!faults.empty()) {
            throw Error(Fault::input, fmt::format("{}", fmt::join(faults, "; ")),
                        "`trocar summary --no-run` lists what the model takes");
        }
        for (const auto id : graph().inputs()) {
            const auto& t = graph().tensor(id);
            if (t.constant && plan.constants[index(id)] == nullptr) {
                set(id, Value::of(*t.constant));
            } else if (t.type.kind == Type::Kind::optional) {
                set(id, {});
            }
        }
        for (const auto& input : inputs) {
            const auto id = *graph().find_tensor(input.name);
            set(id, fit_optional(input.value, graph().tensor(id).type));
        }
    }

    // Runs one program on the values at hand; its outputs are then known.
    std::uint64_t run_program(Compiled& compiled) {
        in.clear();
        for (const auto id : compiled.inputs) {
            in.push_back(values[index(id)]);
        }
        out.assign(compiled.outputs.size(), {});
        const auto start = nanoseconds();
        compiled.program->run(in, out);
        const auto spent = nanoseconds() - start;
        for (std::size_t i = 0; i < out.size(); ++i) {
            set(compiled.outputs[i], out[i]);
        }
        return spent;
    }

    void run_whole(const std::vector<NamedValue>& inputs, const Observer& observer) {
        const bool overrides = std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) {
            return graph().tensor(*graph().find_tensor(input.name)).constant.has_value();
        });
        auto fresh = overrides && !plan.segments.empty()
                         ? std::optional(compile(plan.segments.front()))
                         : std::nullopt;
        if (!fresh && (programs.empty() || !programs.front().program)) {
            programs.resize(1);
            programs.front() = compile_whole();
        }
        auto& compiled = fresh ? *fresh : programs.front();
        const auto spent = run_program(compiled);
        if (observer && !plan.segments.empty()) {
            observer({0, plan.segments.front(), in, out, spent, {}});
        }
        if (options.streaming) {
            programs.clear();
        }
    }

    void run_segment(std::size_t number, const Observer& observer) {
        const auto& segment = plan.segments[number];
        auto& compiled = programs[number];
        const auto spent = at(segment, [&] {
            if (!compiled.program) {
                compiled = compile(segment);
            }
            return run_program(compiled);
        });
        if (observer) {
            observer({number, segment, in, out, spent, {}});
        }
    }

    void after_segment(std::size_t number) {
        for (const auto id : plan.segments[number].dead) {
            forget(id);
        }
        in.clear();
        out.clear();
        if (!options.streaming) {
            return;
        }
        programs[number] = {};
        for (const auto id : plan.segments[number].ops) {
            const auto& op = graph().op(id);
            for (const auto* list : {&op.inputs, &op.captures}) {
                for (const auto input : *list) {
                    const auto* constant =
                        input == TensorId::none ? nullptr : plan.constants[index(input)];
                    if (constant != nullptr && !constant->is_sparse() && !constant->is_string() &&
                        constant->stored_bytes() >= release_from) {
                        release_pages(constant->bytes());
                    }
                }
            }
        }
    }

    // Why a segment cannot run: an input that has no value. Empty: all are there.
    std::string missing_input(const Segment& segment) const {
        for (const auto id : segment.inputs) {
            if (!known[index(id)]) {
                return fmt::format("not run: '{}' has no value", graph().tensor(id).name);
            }
        }
        return {};
    }

    void try_segment(std::size_t number, const Observer& observer) {
        const auto& segment = plan.segments[number];
        auto failure = missing_input(segment);
        if (failure.empty()) {
            try {
                run_segment(number, observer);
            } catch (const Error& e) {
                if (e.fault() != Fault::engine && e.fault() != Fault::unsupported) {
                    throw;
                }
                failure = e.what();
            }
        }
        if (!failure.empty() && observer) {
            observer({number, segment, {}, {}, 0, failure});
        }
        after_segment(number);
    }

    std::vector<NamedValue> results() {
        std::vector<NamedValue> outputs;
        for (const auto id : graph().outputs()) {
            const auto& t = graph().tensor(id);
            const auto* constant = plan.constants[index(id)];
            outputs.push_back(
                {t.name, constant != nullptr ? Value::of(*constant) : values[index(id)]});
        }
        return outputs;
    }

    std::vector<NamedValue> run(const std::vector<NamedValue>& inputs, const Observer& observer,
                                bool keep_going) {
        struct Cleared {
            Parts& parts;
            ~Cleared() {
                std::fill(parts.values.begin(), parts.values.end(), Value{});
                std::fill(parts.known.begin(), parts.known.end(), false);
                parts.in.clear();
                parts.out.clear();
            }
        } cleared{*this};
        take_inputs(inputs);
        if (whole && !keep_going) {
            run_whole(inputs, observer);
            return results();
        }
        programs.resize(plan.segments.size());
        for (std::size_t s = 0; s < plan.segments.size(); ++s) {
            if (keep_going) {
                try_segment(s, observer);
            } else {
                run_segment(s, observer);
                after_segment(s);
            }
        }
        return results();
    }
};

Session::Session(const Model& model, std::shared_ptr<Engine> engine, SessionOptions options)
    : parts_(std::make_unique<Parts>(model, std::move(engine), std::move(options))) {
    if (parts_->options.isolate) {
        throw Error(Fault::usage, "a session on an engine that is open already cannot be isolated",
                    "give the session EngineOptions instead");
    }
    parts_->prepare();
    if (parts_->whole && !parts_->options.streaming) {
        parts_->programs.resize(1);
        parts_->programs.front() = parts_->compile_whole();
    }
}

Session::Session(const Model& model, const EngineOptions& engine, SessionOptions options) {
    if (!options.isolate) {
        *this = Session(model, open_engine(engine), std::move(options));
        return;
    }
    parts_ = std::make_unique<Parts>(model, nullptr, options);
    parts_->prepare();
    options.isolate = false;
    const auto prepare = [&](const Log& log) -> Isolated::Work {
        auto inside = engine;
        inside.log = log;
        auto session = std::make_shared<Session>(model, open_engine(inside), options);
        return [session](const std::vector<NamedValue>& inputs) { return session->run(inputs); };
    };
    parts_->isolated = std::make_unique<Isolated>(
        prepare, Isolated::Options{.log = engine.log, .timeout = {}, .doing = "running the model"});
}

Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const Plan& Session::plan() const {
    return parts_->plan;
}

std::vector<TensorId> Session::required_inputs() const {
    std::vector<TensorId> required;
    for (const auto id : parts_->graph().inputs()) {
        if (!parts_->graph().tensor(id).constant) {
            required.push_back(id);
        }
    }
    return required;
}

std::vector<NamedValue> Session::run(const std::vector<NamedValue>& inputs,
                                     const Observer& observer) {
    if (parts_->isolated) {
        return parts_->isolated->run(inputs);
    }
    return parts_->run(inputs, observer, false);
}

std::vector<NamedValue> Session::run_what_can(const std::vector<NamedValue>& inputs,
                                              const Observer& observer) {
    if (parts_->isolated) {
        throw Error(Fault::usage, "an isolated session cannot run what it can");
    }
    return parts_->run(inputs, observer, true);
}

Footprint Session::footprint() const {
    Footprint total;
    std::uint64_t sum = 0;
    for (const auto& compiled : parts_->programs) {
        if (!compiled.program) {
            continue;
        }
        const auto one = compiled.program->footprint();
        if (!one.constant_bytes_copied) {
            return one;
        }
        sum += *one.constant_bytes_copied;
    }
    total.constant_bytes_copied = sum;
    return total;
}

}  // namespace trocar
