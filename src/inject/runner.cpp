#include "inject/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>

#include "inject/runner_parts.h"
#include "trocar/error.h"

namespace trocar::inject {

Saved& Saved::operator+=(const Saved& other) {
    lanes += other.lanes;
    skipped += other.skipped;
    clean += other.clean;
    after_death += other.after_death;
    whole += other.whole;
    gathered += other.gathered;
    positions += other.positions;
    blocks += other.blocks;
    stacked += other.stacked;
    columns += other.columns;
    seconds_stacked += other.seconds_stacked;
    seconds_columns += other.seconds_columns;
    rebuilt += other.rebuilt;
    uncalibrated += other.uncalibrated;
    seconds_whole += other.seconds_whole;
    seconds_gathered += other.seconds_gathered;
    seconds_blocks += other.seconds_blocks;
    seconds_rebuilt += other.seconds_rebuilt;
    return *this;
}

Runner::Runner(const Circuit& circuit, const Accelerate& accelerate)
    : circuit_(circuit),
      accelerate_(accelerate),
      programs_(circuit.steps().size()),
      parts_(std::make_unique<Parts>(circuit, circuit.steps().size(),
                                     circuit.graph().tensor_limit())) {}
Runner::~Runner() = default;

OpProgram& Runner::program(std::size_t step, const Golden& golden) {
    auto& made = programs_[step];
    if (!made.program) {
        made = circuit_.compile(circuit_.steps()[step], golden.values);
    }
    return made;
}

std::vector<Value> Runner::run_program(OpProgram& program, const Step& step,
                                       const std::vector<Value>& values) {
    auto& in = parts_->in;
    in.clear();
    for (const auto id : program.inputs) {
        in.push_back(values[index(id)]);
    }
    std::vector<Value> out(step.outputs.size());
    try {
        program.program->run(in, out);
    } catch (const Error& e) {
        in.clear();
        throw Error(e.fault(), fmt::format("{}: {}", circuit_.graph().describe(step.op), e.what()),
                    e.hint());
    }
    in.clear();
    return out;
}

Value aligned(const Value& value) {
    const bool as_it_is =
        !value.is_tensor() || bits(value.dtype()) == 0 ||
        reinterpret_cast<std::uintptr_t>(value.bytes().data()) % memory_alignment == 0;
    return as_it_is ? value : copy_of(value);
}

namespace {

void take_inputs(const Circuit& circuit, const std::vector<NamedValue>& inputs,
                 std::vector<Value>& values) {
    const auto& graph = circuit.graph();
    for (const auto& input : inputs) {
        const auto id = graph.find_tensor(input.name);
        if (!id) {
            continue;  // the engine found that it is not needed
        }
        values[index(*id)] = aligned(fit_optional(input.value, graph.tensor(*id).type));
    }
    for (const auto id : graph.inputs()) {
        const auto& tensor = graph.tensor(id);
        if (values[index(id)].kind() == Value::Kind::none && tensor.constant) {
            values[index(id)] = Value::of(*tensor.constant);  // its default
        }
    }
}

}  // namespace

std::uint64_t next_golden() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
}

// The outputs of a step of the golden run, and what nobody reads after it.
void Runner::run_golden(Golden& golden, std::size_t number) {
    const auto& step = circuit_.steps()[number];
    auto outputs = run_program(program(number, golden), step, golden.values);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        golden.values[index(step.outputs[i])] = std::move(outputs[i]);
    }
}

void Runner::forget_read(Golden& golden, std::size_t number) const {
    for (const auto id : circuit_.steps()[number].inputs) {
        if (circuit_.last_read(id) <= number && circuit_.written_at(id) != no_step) {
            golden.values[index(id)] = {};
        }
    }
}

Golden Runner::golden(const std::vector<NamedValue>& inputs, std::size_t budget,
                      const std::function<void(TensorId, const Value&)>& seen) {
    Golden golden;
    golden.id = next_golden();
    golden.values.resize(circuit_.graph().tensor_limit());
    golden.geometries.resize(golden.values.size());
    golden.types.resize(golden.values.size());
    take_inputs(circuit_, inputs, golden.values);
    const auto describe = [&](TensorId id) {
        const auto& value = golden.values[index(id)];
        golden.types[index(id)] = type_of(value);
        if (value.is_tensor() && bits(value.dtype()) > 0) {
            golden.geometries[index(id)] =
                geometry(value.dtype(), value.shape(), circuit_.layout(id), circuit_.is_image(id));
        }
    };
    for (const auto id : circuit_.graph().inputs()) {
        describe(id);
    }
    for (std::size_t s = 0; s < circuit_.steps().size(); ++s) {
        const auto& step = circuit_.steps()[s];
        program(s, golden);
        const auto start = now_seconds();
        run_golden(golden, s);
        golden.seconds.push_back(now_seconds() - start);
        for (const auto id : step.outputs) {
            describe(id);
            if (seen) {
                seen(id, golden.values[index(id)]);
            }
            golden.bytes += golden.geometries[index(id)].bytes();
        }
        if (golden.bytes > budget && !golden.partial) {
            golden.partial = true;
            for (std::size_t earlier = 0; earlier < s; ++earlier) {
                forget_read(golden, earlier);
            }
        }
        if (golden.partial) {
            forget_read(golden, s);
        }
    }
    return golden;
}

void take_failure(Lane& lane, const Error& error) {
    if (error.fault() != Fault::engine && error.fault() != Fault::input &&
        error.fault() != Fault::unsupported) {
        throw;
    }
    lane.failure = error.what();
    lane.done = true;
}

Value copy_of(const Value& value) {
    return Value::copy(value.dtype(), value.shape(), value.bytes());
}

namespace {

bool shares_memory(const Value& a, const Value& b) {
    return a.is_tensor() && b.is_tensor() && bits(a.dtype()) > 0 && bits(b.dtype()) > 0 &&
           a.bytes().data() == b.bytes().data();
}

}  // namespace

// A tensor with a patch for one run of an op: a copy of the golden one that is patched, and then
// mended by `give_back`.
Value Runner::lend(const Golden& golden, TensorId id, const Patch& patch) {
    const auto& value = golden.values[index(id)];
    if (patch.is_whole()) {
        return patch.whole;
    }
    auto& copy = parts_->copies[index(id)];
    if (copy.of != golden.id) {
        copy.of = golden.id;
        copy.value = copy_of(value);
    }
    overlay(golden.geometries[index(id)], patch, copy.value.mutable_bytes().data());
    return copy.value;
}

void Runner::give_back(const Golden& golden, TensorId id, const Patch& patch) {
    if (patch.is_whole()) {
        return;
    }
    const auto& g = golden.geometries[index(id)];
    auto* to = parts_->copies[index(id)].value.mutable_bytes().data();
    const auto* from = golden.values[index(id)].bytes().data();
    for (const auto position : patch.positions) {
        auto offset = g.at(position) + static_cast<std::size_t>(patch.low) * g.group_step;
        for (auto group = patch.low; group < patch.high; ++group) {
            std::memcpy(to + offset, from + offset, g.cell);
            offset += g.group_step;
        }
    }
}

void Runner::Parts::meet(const Golden& golden, std::size_t number, const Step& step) {
    std::vector<Shape> now;
    for (const auto id : step.inputs) {
        const auto& type = golden.types[index(id)];
        now.push_back(type.kind == Type::Kind::tensor ? type.shape().value_or(Shape{}) : Shape{});
    }
    if (shapes[number] == now) {
        return;
    }
    shapes[number] = std::move(now);
    gathered[number] = {};
    blocks[number] = {};
    stacked[number] = {};
    columns[number] = {};
}

// The program of an op with its constants as a lane has them.
OpProgram& Runner::rebuilt(const Golden& golden, std::size_t number, const Lane& lane) {
    const auto replaces = [&](const ConstantChange& c) {
        return c.step == number && c.constant.has_value();
    };
    if (std::none_of(lane.constants.begin(), lane.constants.end(), replaces)) {
        ProgramSpec spec{.step = number};
        spec.add(lane);
        return parts_->programs.get(spec, golden.values);
    }
    Variant variant;
    for (const auto& c : lane.constants) {
        if (c.step == number) {
            variant.constants.emplace_back(c.tensor, changed(*circuit_.constant(c.tensor), c));
        }
    }
    parts_->replaced = circuit_.compile(circuit_.steps()[number], golden.values, variant);
    return parts_->replaced;
}

// An op with all its inputs, of the lane or golden, and its constants as the lane has them.
void Runner::run_whole(const Golden& golden, std::size_t number, Lane& lane, const Watch& watch) {
    const auto& step = circuit_.steps()[number];
    const auto start = now_seconds();
    const bool constants = std::any_of(lane.constants.begin(), lane.constants.end(),
                                       [&](const auto& c) { return c.step == number; });
    std::vector<std::pair<TensorId, Patch>> outputs;
    std::vector<std::pair<TensorId, const Patch*>> lent;
    auto& values = parts_->values;
    values.resize(golden.values.size());
    const auto end = [&] {
        for (const auto& [id, patch] : lent) {
            give_back(golden, id, *patch);
        }
        for (const auto id : step.inputs) {
            values[index(id)] = {};
        }
    };
    try {
        auto& compiled = constants ? rebuilt(golden, number, lane) : program(number, golden);
        for (const auto id : step.inputs) {
            const auto* patch = lane.patch(id);
            values[index(id)] =
                patch == nullptr ? golden.values[index(id)] : lend(golden, id, *patch);
            if (patch != nullptr) {
                lent.emplace_back(id, patch);
            }
        }
        auto made = run_program(compiled, step, values);
        for (std::size_t i = 0; i < made.size(); ++i) {
            const auto id = step.outputs[i];
            auto compared =
                compare(golden.values[index(id)], golden.geometries[index(id)], made[i]);
            if (!compared.same || !accelerate_.dead) {
                if (compared.same) {
                    compared.patch.whole = made[i];
                }
                // What an op passes through stands in memory that is lent for this run only.
                const bool passed = std::any_of(lent.begin(), lent.end(), [&](const auto& l) {
                    return shares_memory(made[i], values[index(l.first)]);
                });
                if (compared.patch.is_whole() && passed) {
                    compared.patch.whole = copy_of(made[i]);
                }
                outputs.emplace_back(id, std::move(compared.patch));
            }
        }
    } catch (const Error& e) {
        end();
        prove(golden, number, lane, e);
        take_failure(lane, e);
        return;
    }
    end();
    const auto spent = now_seconds() - start;
    if (!constants) {
        ++saved_.whole;
        saved_.seconds_whole += spent;
    } else {
        ++saved_.rebuilt;
        saved_.seconds_rebuilt += spent;
    }
    finish(golden, number, lane, std::move(outputs), watch);
}

// What a step gave is the lane's from here on; what nobody reads any more is forgotten.
void Runner::finish(const Golden& golden, std::size_t number, Lane& lane,
                    std::vector<std::pair<TensorId, Patch>>&& outputs, const Watch& watch) {
    const auto& step = circuit_.steps()[number];
    std::erase_if(lane.patches,
                  [&](const auto& p) { return circuit_.last_read(p.first) <= number; });
    for (auto& [id, patch] : outputs) {
        lane.patches.emplace_back(id, std::move(patch));
    }
    change_written(golden, number, lane);
    look_at(golden, step.outputs, lane, watch);
}

// Looks at tensors that are written now, with all their faults in place.
void Runner::look_at(const Golden& golden, std::span<const TensorId> written, Lane& lane,
                     const Watch& watch) const {
    for (const auto id : written) {
        auto* patch = lane.patch(id);
        if (patch != nullptr) {
            look(circuit_, golden, id, *patch, watch, lane);
            const bool gone = patch->positions.empty() && !patch->is_whole();
            if (gone) {
                std::erase_if(lane.patches, [&](const auto& p) { return p.first == id; });
            }
        }
    }
}

// What only the reader sees is changed for this step alone.
void Runner::run_reader(const Golden& golden, std::size_t number, Lane& lane, const Watch& watch) {
    const auto before = lane.patches;
    for (const auto& c : lane.tensors) {
        if (c.reader == number) {
            change(golden, lane, c);
        }
    }
    const auto& step = circuit_.steps()[number];
    run_whole(golden, number, lane, watch);
    for (const auto id : step.inputs) {
        std::erase_if(lane.patches, [&](const auto& p) { return p.first == id; });
        for (const auto& [old, patch] : before) {
            if (old == id && circuit_.last_read(id) > number) {
                lane.patches.emplace_back(old, patch);
            }
        }
    }
}

void Runner::step(const Golden& golden, std::size_t number, std::span<Lane*> lanes,
                  const Watch& watch) {
    const auto& step = circuit_.steps()[number];
    parts_->meet(golden, number, step);
    std::vector<Job> jobs;
    std::vector<Lane*> blocks;
    std::vector<Lane*> columns;
    std::vector<Lane*> stack;
    for (auto* lane : lanes) {
        const bool constants = std::any_of(lane->constants.begin(), lane->constants.end(),
                                           [&](const auto& c) { return c.step == number; });
        const bool reads = std::any_of(lane->tensors.begin(), lane->tensors.end(),
                                       [&](const auto& c) { return c.reader == number; });
        const bool dirty = std::any_of(step.inputs.begin(), step.inputs.end(),
                                       [&](TensorId id) { return lane->patch(id) != nullptr; }) ||
                           (!accelerate_.dead && number > lane->first);
        std::vector<std::int32_t> positions;
        if (!constants && !reads && !dirty) {
            saved_.clean += number > lane->first ? 1 : 0;
            finish(golden, number, *lane, {}, watch);
        } else if (reads) {
            run_reader(golden, number, *lane, watch);
        } else if (constants && !dirty && accelerate_.channels &&
                   can_block(golden, number, *lane)) {
            blocks.push_back(lane);
        } else if (!constants && accelerate_.region && accelerate_.dead &&
                   can_gather(golden, number, *lane, positions)) {
            jobs.push_back({lane, std::move(positions)});
        } else if (constants && !dirty && accelerate_.channels &&
                   can_column(golden, number, *lane)) {
            columns.push_back(lane);
        } else if (!constants && can_stack(golden, number, *lane)) {
            stack.push_back(lane);
        } else {
            run_whole(golden, number, *lane, watch);
        }
    }
    if (!blocks.empty()) {
        run_blocks(golden, number, blocks, watch);
    }
    if (!columns.empty()) {
        run_columns_of(golden, number, columns, watch);
    }
    if (!jobs.empty()) {
        run_gathered(golden, number, jobs, watch);
    }
    if (!stack.empty()) {
        run_stacked(golden, number, stack, watch);
    }
}

void Runner::run(const Golden& whole, std::span<Lane> lanes, const Watch& watch) {
    // What is not kept is computed along with the lanes.
    std::optional<Golden> along;
    if (whole.partial) {
        along = whole;
        along->id = next_golden();
    }
    const auto& golden = along ? *along : whole;
    const auto count = circuit_.steps().size();
    std::size_t first = count;
    for (auto& lane : lanes) {
        ++saved_.lanes;
        change_written(golden, no_step, lane);
        look_at(golden, circuit_.graph().inputs(), lane, watch);
        first = std::min(first, lane.first);
        saved_.skipped += lane.first;
    }
    std::vector<Lane*> active;
    for (auto s = along ? 0 : first; s < count; ++s) {
        if (along) {
            run_golden(*along, s);
        }
        active.clear();
        bool any = false;
        for (auto& lane : lanes) {
            if (lane.done) {
                continue;
            }
            if (lane.patches.empty() && s > lane.pending && accelerate_.dead) {
                lane.done = true;
                saved_.after_death += count - s;
                continue;
            }
            any = true;
            if (s >= lane.first) {
                active.push_back(&lane);
            }
        }
        if (!any) {
            break;
        }
        step(golden, s, active, watch);
        if (along) {
            forget_read(*along, s);
        }
    }
    for (auto& lane : lanes) {
        lane.done = true;
    }
}

}  // namespace trocar::inject
