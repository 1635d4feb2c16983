#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "run/session_parts.h"
#include "util/mapped_file.h"
#include "util/text.h"

namespace trocar {

namespace {

// Mapped constants above this size are given back to the system after a streaming use.
constexpr std::size_t release_from = std::size_t{1} << 16;

std::uint64_t nanoseconds() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

// An engine that leaves out an op which does nothing gives back what it was given: that must not be
// written to.
bool stands_in(const Value& output, const std::vector<Value>& inputs) {
    if (!output.is_tensor() || output.body()->own_bytes().empty()) {
        return false;
    }
    return std::any_of(inputs.begin(), inputs.end(), [&](const Value& input) {
        return input.is_tensor() && bits(input.dtype()) != 0 && input.device().is_host() &&
               input.bytes().data() == output.bytes().data();
    });
}

}  // namespace

void Session::Parts::take_inputs(const std::vector<NamedValue>& inputs) {
    auto faults = check_inputs(model(), inputs);
    for (const auto& input : inputs) {
        const auto id = graph().find_tensor(input.name);
        if (id && plan.constants[index(*id)] != nullptr && graph().tensor(*id).is_input) {
            faults.push_back(fmt::format(
                "input '{}' is a constant: models of IR version {} do not let it be overridden",
                input.name, model().ir_version));
        }
    }
    if (!faults.empty()) {
        throw Error(Fault::input, fmt::format("{}", join(faults, "; ")),
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
std::uint64_t Session::Parts::run_program(Compiled& compiled) {
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

void Session::Parts::run_whole(const std::vector<NamedValue>& inputs, const Observer& observer) {
    const bool overrides = std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) {
        return graph().tensor(*graph().find_tensor(input.name)).constant.has_value();
    });
    auto fresh = overrides && !plan.segments.empty() ? std::optional(compile(plan.segments.front()))
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

void Session::Parts::run_segment(std::size_t number, const Observer& observer) {
    const auto& segment = plan.segments[number];
    auto& compiled = programs[number];
    auto* cut = cuts.empty() ? nullptr : cuts[number];
    std::uint64_t spent = 0;
    if (cut != nullptr) {
        spent = run_at_ports(segment, compiled, *cut);
    } else {
        spent = at(segment, [&] {
            if (!compiled.program) {
                compiled = compile(segment);
            }
            return run_program(compiled);
        });
    }
    if (observer) {
        observer({number, segment, in, out, spent, {}});
    }
}

void Session::Parts::stop_if_asked() const {
    if (instruments && instruments->state().stopped) {
        throw StopRun{};
    }
}

// Gives a port what the op reads: its inputs at hand, and constants where they may be changed.
void Session::Parts::give_inputs(SitePort& port, OpId op, const Instruments::AtCut& cut) const {
    const auto& inputs = graph().op(op).inputs;
    for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
        if (inputs[slot] == TensorId::none) {
            continue;
        }
        const auto* constant = plan.constants[index(inputs[slot])];
        if (constant == nullptr) {
            port.give_input(slot, values[index(inputs[slot])]);
        } else if (cut.constants) {
            port.give_constant(slot);
        }
    }
}

void Session::Parts::take_outputs(const SitePort& port, OpId op) {
    const auto& outputs = graph().op(op).outputs;
    for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
        if (outputs[slot] == TensorId::none) {
            continue;
        }
        const auto& tensor = port.output_tensor(slot);
        if (tensor.changed) {
            set(outputs[slot], SitePort::leaving(tensor));
        } else if (!known[index(outputs[slot])]) {
            const auto& t = graph().tensor(outputs[slot]);
            if (!t.uses.empty() || t.is_output) {
                throw Error(Fault::usage,
                            fmt::format("{}: no tool set its output {}, which is read",
                                        graph().describe(op), slot));
            }
        }
    }
}

// What the op reads is changed for it alone: the values at hand are put back after it ran.
std::uint64_t Session::Parts::run_at_ports(const Segment& segment, Compiled& compiled,
                                           Instruments::AtCut& cut) {
    const auto op = segment.ops.back();
    std::vector<std::pair<TensorId, Value>> kept;
    bool runs = true;
    if (cut.before) {
        auto& port = *cut.before;
        port.open();
        give_inputs(port, op, cut);
        instruments->call(cut, Port::When::before);
        stop_if_asked();
        const auto& inputs = graph().op(op).inputs;
        for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
            if (inputs[slot] != TensorId::none &&
                (port.input_tensor(slot).changed || cut.constants)) {
                kept.emplace_back(inputs[slot], values[index(inputs[slot])]);
                const auto& tensor = port.input_tensor(slot);
                values[index(inputs[slot])] =
                    tensor.changed ? SitePort::leaving(tensor) : port.input(slot);
            }
        }
        runs = !port.skipped();
        if (!runs) {
            take_outputs(port, op);
        }
        port.end();
    }
    std::uint64_t spent = 0;
    if (runs && cut.instead) {
        auto& port = *cut.instead;
        port.open();
        give_inputs(port, op, cut);
        const auto start = nanoseconds();
        instruments->call(cut, Port::When::instead);
        spent = nanoseconds() - start;
        take_outputs(port, op);
        port.end();
        stop_if_asked();
    } else if (runs) {
        spent = at(segment, [&] {
            if (!compiled.program) {
                compiled = compile(segment);
            }
            return run_program(compiled);
        });
    }
    for (auto& [id, value] : kept) {
        values[index(id)] = std::move(value);
    }
    call_after(cut, op);
    return spent;
}

void Session::Parts::call_after(Instruments::AtCut& cut, OpId op) {
    if (!cut.after) {
        return;
    }
    auto& port = *cut.after;
    port.open();
    const auto& outputs = graph().op(op).outputs;
    for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
        if (outputs[slot] != TensorId::none && known[index(outputs[slot])]) {
            auto& value = values[index(outputs[slot])];
            if (cut.modifies && stands_in(value, in)) {
                value = Value::copy(value.dtype(), value.shape(), value.bytes());
            }
            port.give_output(slot, value);
        }
    }
    if (cut.alone) {
        give_inputs(port, op, cut);
    }
    instruments->call(cut, Port::When::after);
    take_outputs(port, op);
    port.end();
    stop_if_asked();
}

void Session::Parts::after_segment(std::size_t number) {
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
std::string Session::Parts::missing_input(const Segment& segment) const {
    for (const auto id : segment.inputs) {
        if (!known[index(id)]) {
            return fmt::format("not run: '{}' has no value", graph().tensor(id).name);
        }
    }
    return {};
}

void Session::Parts::try_segment(std::size_t number, const Observer& observer) {
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

std::vector<NamedValue> Session::Parts::results() {
    std::vector<NamedValue> outputs;
    for (const auto id : graph().outputs()) {
        const auto& t = graph().tensor(id);
        const auto* constant = plan.constants[index(id)];
        outputs.push_back({t.name, constant != nullptr ? Value::of(*constant) : values[index(id)]});
    }
    return outputs;
}

void Session::Parts::run_segments(const Observer& observer, bool keep_going) {
    for (std::size_t s = 0; s < plan.segments.size(); ++s) {
        if (keep_going) {
            try_segment(s, observer);
        } else {
            run_segment(s, observer);
            after_segment(s);
        }
    }
}

std::vector<NamedValue> Session::Parts::run(const std::vector<NamedValue>& inputs,
                                            const Observer& observer, bool keep_going) {
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
    const auto work = [&] {
        if (whole && !keep_going) {
            run_whole(inputs, observer);
        } else {
            programs.resize(plan.segments.size());
            run_segments(observer, keep_going);
        }
        return results();
    };
    if (!instruments) {
        return work();
    }
    std::vector<NamedValue> outputs;
    try {
        instruments->start();
        outputs = work();
    } catch (const StopRun&) {
        outputs.clear();
    } catch (...) {
        instruments->end();
        throw;
    }
    instruments->end();
    return outputs;
}

}  // namespace trocar
