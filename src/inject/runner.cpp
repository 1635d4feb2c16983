#include "inject/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>

#include "inject/bits.h"
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
    rebuilt += other.rebuilt;
    uncalibrated += other.uncalibrated;
    seconds_whole += other.seconds_whole;
    seconds_gathered += other.seconds_gathered;
    seconds_blocks += other.seconds_blocks;
    seconds_rebuilt += other.seconds_rebuilt;
    return *this;
}

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

Runner::Runner(const Circuit& circuit, const Accelerate& accelerate)
    : circuit_(circuit),
      accelerate_(accelerate),
      programs_(circuit.steps().size()),
      parts_(std::make_unique<Parts>(circuit.steps().size(), circuit.graph().tensor_limit())) {}
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

namespace {

void take_inputs(const Circuit& circuit, const std::vector<NamedValue>& inputs,
                 std::vector<Value>& values) {
    const auto& graph = circuit.graph();
    for (const auto& input : inputs) {
        const auto id = graph.find_tensor(input.name);
        if (!id) {
            continue;  // the engine found that it is not needed
        }
        values[index(*id)] = fit_optional(input.value, graph.tensor(*id).type);
    }
}

}  // namespace

namespace {

std::uint64_t next_golden() {
    static std::atomic<std::uint64_t> last = 0;
    return ++last;
}

}  // namespace

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

Golden Runner::golden(const std::vector<NamedValue>& inputs, std::size_t budget) {
    Golden golden;
    golden.id = next_golden();
    golden.values.resize(circuit_.graph().tensor_limit());
    golden.geometries.resize(golden.values.size());
    take_inputs(circuit_, inputs, golden.values);
    const auto describe = [&](TensorId id) {
        const auto& value = golden.values[index(id)];
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
        const auto start = seconds_now();
        run_golden(golden, s);
        golden.seconds.push_back(seconds_now() - start);
        for (const auto id : step.outputs) {
            describe(id);
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

void change_all(const TensorChange& change, const Layout& layout, Value& value) {
    const auto shape = value.shape();
    const CustomEffect none;
    if (change.effect.kind == Effect::Kind::rate) {
        for (const auto& [element, bit] : rate_flips(change.effect, change.places.size())) {
            const auto stored = stored_place(change.places[element], shape, layout);
            const auto bytes = value.mutable_bytes();
            store_bits(value.dtype(), bytes, stored,
                       load_bits(value.dtype(), bytes, stored) ^ std::uint64_t{1} << bit);
        }
        return;
    }
    for (const auto place : change.places) {
        apply(change.effect, value.dtype(), value.mutable_bytes(),
              stored_place(place, shape, layout), place,
              change.custom != nullptr ? *change.custom : none);
    }
}

namespace {

Value copy_of(const Value& value) {
    return Value::copy(value.dtype(), value.shape(), value.bytes());
}

bool shares_memory(const Value& a, const Value& b) {
    return a.is_tensor() && b.is_tensor() && bits(a.dtype()) > 0 && bits(b.dtype()) > 0 &&
           a.bytes().data() == b.bytes().data();
}

// The cells that hold some elements of a tensor, as a patch of golden bytes.
Patch cells_of(const Geometry& g, const std::vector<std::size_t>& offsets,
               const std::byte* golden) {
    Patch patch;
    patch.low = g.groups;
    for (const auto offset : offsets) {
        const auto image = static_cast<std::int64_t>(offset / g.outer_step);
        const auto within = offset % g.outer_step;
        const auto group = g.image ? static_cast<std::int64_t>(within / g.group_step) : 0;
        const auto inner =
            static_cast<std::int64_t>((g.image ? within % g.group_step : within) / g.position_step);
        patch.positions.push_back(static_cast<std::int32_t>(image * g.inner() + inner));
        patch.low = std::min(patch.low, group);
        patch.high = std::max(patch.high, group + 1);
    }
    std::sort(patch.positions.begin(), patch.positions.end());
    patch.positions.erase(std::unique(patch.positions.begin(), patch.positions.end()),
                          patch.positions.end());
    for (const auto position : patch.positions) {
        for (auto group = patch.low; group < patch.high; ++group) {
            const auto* from =
                golden + g.at(position) + static_cast<std::size_t>(group) * g.group_step;
            patch.cells.insert(patch.cells.end(), from, from + g.cell);
        }
    }
    return patch;
}

}  // namespace

// Few elements of a tensor that is golden so far are changed in their cells alone.
void Runner::change(const Golden& golden, Lane& lane, const TensorChange& change) const {
    const auto id = change.tensor;
    const auto& value = golden.values[index(id)];
    const auto& g = golden.geometries[index(id)];
    const auto layout = circuit_.layout(id);
    auto* before = lane.patch(id);
    const auto element = bits(value.dtype()) / 8;
    if (before != nullptr || element == 0 || change.places.size() > 64 ||
        change.effect.kind == Effect::Kind::rate) {
        auto all = before != nullptr ? copy_of(complete(value, g, *before)) : copy_of(value);
        change_all(change, layout, all);
        auto compared = compare(value, g, all);
        if (before == nullptr && !compared.same) {
            lane.patches.emplace_back(id, std::move(compared.patch));
        } else if (before != nullptr && compared.same) {
            std::erase_if(lane.patches, [&](const auto& p) { return p.first == id; });
        } else if (before != nullptr) {
            *before = std::move(compared.patch);
        }
        return;
    }
    const auto shape = value.shape();
    std::vector<std::size_t> offsets;
    for (const auto place : change.places) {
        offsets.push_back(stored_place(place, shape, layout) * element);
    }
    auto patch = cells_of(g, offsets, value.bytes().data());
    const auto original = patch.cells;
    const CustomEffect none;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        const auto one = cells_of(g, {offsets[i]}, value.bytes().data());
        const auto at = static_cast<std::size_t>(
            std::lower_bound(patch.positions.begin(), patch.positions.end(), one.positions[0]) -
            patch.positions.begin());
        const auto cell = at * static_cast<std::size_t>(patch.high - patch.low) +
                          static_cast<std::size_t>(one.low - patch.low);
        apply(change.effect, value.dtype(), std::span(patch.cells).subspan(cell * g.cell, g.cell),
              offsets[i] % g.cell / element, change.places[i],
              change.custom != nullptr ? *change.custom : none);
    }
    if (patch.cells != original) {
        lane.patches.emplace_back(id, std::move(patch));
    }
}

void Runner::change_outputs(const Golden& golden, std::size_t number, Lane& lane) {
    for (const auto& c : lane.tensors) {
        if (c.reader == no_step && circuit_.written_at(c.tensor) == number) {
            change(golden, lane, c);
        }
    }
}

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
    const auto& g = golden.geometries[index(id)];
    auto* to = copy.value.mutable_bytes().data();
    const auto* from = patch.cells.data();
    for (const auto position : patch.positions) {
        auto* at = to + g.at(position) + static_cast<std::size_t>(patch.low) * g.group_step;
        for (auto group = patch.low; group < patch.high; ++group) {
            std::memcpy(at, from, g.cell);
            at += g.group_step;
            from += g.cell;
        }
    }
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

// The program of an op with its constants as a lane has them.
OpProgram& Runner::rebuilt(const Golden& golden, std::size_t number, const Lane& lane) {
    std::string key(reinterpret_cast<const char*>(&number), sizeof number);
    Variant variant;
    std::size_t bytes = 16384;
    bool known = true;
    for (const auto& c : lane.constants) {
        if (c.step != number) {
            continue;
        }
        key.append(reinterpret_cast<const char*>(&c.tensor), sizeof c.tensor);
        key.append(reinterpret_cast<const char*>(c.pokes.data()),
                   c.pokes.size() * sizeof c.pokes[0]);
        known = known && !c.constant;
    }
    if (auto* found = known ? parts_->rebuilt.find(key) : nullptr) {
        return *found;
    }
    for (const auto& c : lane.constants) {
        if (c.step == number) {
            variant.constants.emplace_back(c.tensor, changed(*circuit_.constant(c.tensor), c));
            bytes += 2 * variant.constants.back().second.stored_bytes();
        }
    }
    auto made = circuit_.compile(circuit_.steps()[number], golden.values, variant);
    return parts_->rebuilt.keep(known ? std::move(key) : std::string(), std::move(made), bytes);
}

// An op with all its inputs, of the lane or golden, and its constants as the lane has them.
void Runner::run_whole(const Golden& golden, std::size_t number, Lane& lane, const Watch& watch) {
    const auto& step = circuit_.steps()[number];
    const auto start = seconds_now();
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
        if (e.fault() != Fault::engine && e.fault() != Fault::input &&
            e.fault() != Fault::unsupported) {
            throw;
        }
        lane.failure = e.what();
        lane.done = true;
        return;
    }
    end();
    const auto spent = seconds_now() - start;
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
                    std::vector<std::pair<TensorId, Patch>> outputs, const Watch& watch) {
    const auto& step = circuit_.steps()[number];
    std::erase_if(lane.patches,
                  [&](const auto& p) { return circuit_.last_read(p.first) <= number; });
    for (auto& [id, patch] : outputs) {
        lane.patches.emplace_back(id, std::move(patch));
    }
    change_outputs(golden, number, lane);
    for (const auto id : step.outputs) {
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
    std::vector<Job> jobs;
    std::vector<Lane*> blocks;
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
        } else {
            run_whole(golden, number, *lane, watch);
        }
    }
    if (!blocks.empty()) {
        run_blocks(golden, number, blocks, watch);
    }
    if (!jobs.empty()) {
        run_gathered(golden, number, jobs, watch);
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
        for (const auto& c : lane.tensors) {
            if (c.reader == no_step && circuit_.written_at(c.tensor) == no_step) {
                change(golden, lane, c);
                if (auto* patch = lane.patch(c.tensor)) {
                    look(circuit_, golden, c.tensor, *patch, watch, lane);
                }
            }
        }
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

void Runner::run_plainly(const Golden& whole, Lane& lane, const Watch& watch) {
    std::optional<Golden> along;
    if (whole.partial) {
        along = whole;
        along->id = next_golden();
    }
    const auto& golden = along ? *along : whole;
    std::vector<Value> values(golden.values.size());
    for (const auto id : circuit_.graph().inputs()) {
        values[index(id)] = golden.values[index(id)];
    }
    const auto note = [&](TensorId id) {
        auto compared =
            compare(golden.values[index(id)], golden.geometries[index(id)], values[index(id)]);
        if (compared.same) {
            return;
        }
        look(circuit_, golden, id, compared.patch, watch, lane);
        if (watch.ranges == Watch::Ranges::clip) {
            values[index(id)] =
                complete(golden.values[index(id)], golden.geometries[index(id)], compared.patch);
        }
        if (circuit_.last_read(id) == no_step) {
            lane.patches.emplace_back(id, std::move(compared.patch));
        }
    };
    const auto change = [&](std::size_t written_at, std::size_t reader) {
        for (const auto& c : lane.tensors) {
            if (c.reader == reader &&
                (reader != no_step || circuit_.written_at(c.tensor) == written_at)) {
                auto other = copy_of(values[index(c.tensor)]);
                change_all(c, circuit_.layout(c.tensor), other);
                values[index(c.tensor)] = std::move(other);
            }
        }
    };
    change(no_step, no_step);
    for (const auto id : circuit_.graph().inputs()) {
        if (values[index(id)].kind() != Value::Kind::none) {
            note(id);
        }
    }
    for (std::size_t s = 0; s < circuit_.steps().size(); ++s) {
        const auto& step = circuit_.steps()[s];
        if (along) {
            run_golden(*along, s);
        }
        Variant variant;
        for (const auto& c : lane.constants) {
            if (c.step == s) {
                variant.constants.emplace_back(c.tensor, changed(*circuit_.constant(c.tensor), c));
            }
        }
        std::vector<std::pair<TensorId, Value>> kept;
        for (const auto& c : lane.tensors) {
            if (c.reader == s) {
                kept.emplace_back(c.tensor, values[index(c.tensor)]);
            }
        }
        try {
            OpProgram rebuilt;
            if (!variant.constants.empty()) {
                rebuilt = circuit_.compile(step, golden.values, variant);
            }
            change(no_step, s);
            auto outputs =
                run_program(rebuilt.program ? rebuilt : program(s, golden), step, values);
            for (std::size_t i = 0; i < outputs.size(); ++i) {
                values[index(step.outputs[i])] = std::move(outputs[i]);
            }
        } catch (const Error& e) {
            if (e.fault() != Fault::engine && e.fault() != Fault::input &&
                e.fault() != Fault::unsupported) {
                throw;
            }
            lane.failure = e.what();
            lane.done = true;
            return;
        }
        for (auto it = kept.rbegin(); it != kept.rend(); ++it) {
            values[index(it->first)] = std::move(it->second);
        }
        change(s, no_step);
        for (const auto id : step.outputs) {
            note(id);
        }
        for (const auto id : step.inputs) {
            if (circuit_.last_read(id) <= s) {
                values[index(id)] = {};
            }
        }
        if (along) {
            forget_read(*along, s);
        }
    }
    lane.done = true;
}

}  // namespace trocar::inject
