#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "inject/runner_parts.h"
#include "trocar/error.h"
#include "trocar/random.h"

namespace trocar::inject {

namespace {

constexpr std::size_t most_window_bytes = std::size_t{2} << 20;

std::size_t smallest_class(std::size_t columns) {
    const auto found = std::lower_bound(column_classes.begin(), column_classes.end(), columns);
    return static_cast<std::size_t>(std::min(found, column_classes.end() - 1) -
                                    column_classes.begin());
}

Attribute integers(const char* name, std::vector<std::int64_t> values) {
    Attribute a;
    a.name = name;
    a.value = std::move(values);
    return a;
}

bool all_finite(const Constant& constant) {
    if (constant.dtype() != DType::f32) {
        return constant.dtype() == DType::f16 || !is_float(constant.dtype());
    }
    const auto bytes = constant.bytes();
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        std::uint32_t word = 0;
        std::memcpy(&word, bytes.data() + i, 4);
        if ((word & 0x7f800000) == 0x7f800000) {
            return false;
        }
    }
    return true;
}

// One column of cells, group after group.
template <std::size_t size>
void copy_cells(std::byte* to, std::size_t to_step, const std::byte* from, std::size_t from_step,
                std::int64_t count, std::size_t cell) {
    for (std::int64_t g = 0; g < count; ++g) {
        std::memcpy(to, from, size > 0 ? size : cell);
        to += to_step;
        from += from_step;
    }
}

void copy_column(std::byte* to, std::size_t to_step, const std::byte* from, std::size_t from_step,
                 std::int64_t count, std::size_t cell) {
    switch (cell) {
        case 4:
            return copy_cells<4>(to, to_step, from, from_step, count, cell);
        case 32:
            return copy_cells<32>(to, to_step, from, from_step, count, cell);
        case 64:
            return copy_cells<64>(to, to_step, from, from_step, count, cell);
        default:
            return copy_cells<0>(to, to_step, from, from_step, count, cell);
    }
}

void fill_column(std::byte* to, std::size_t to_step, std::int64_t count, std::size_t cell,
                 bool lowest) {
    for (std::int64_t g = 0; g < count; ++g) {
        if (!lowest) {
            std::memset(to, 0, cell);
        } else {
            const auto value = std::numeric_limits<float>::lowest();
            for (std::size_t i = 0; i < cell; i += sizeof value) {
                std::memcpy(to + i, &value, sizeof value);
            }
        }
        to += to_step;
    }
}

// Reads cells of a tensor as a lane has it.
class Reader {
public:
    Reader(const Value& golden, const Geometry& g, const Patch* patch,
           std::vector<std::int32_t>& slots)
        : g_(g), patch_(patch), slots_(slots), bytes_(golden.bytes().data()) {
        if (patch_ == nullptr) {
            return;
        }
        if (patch_->is_whole()) {
            bytes_ = patch_->whole.bytes().data();
            patch_ = nullptr;
            return;
        }
        if (slots_.size() < static_cast<std::size_t>(g.positions())) {
            slots_.resize(static_cast<std::size_t>(g.positions()), -1);
        }
        for (std::size_t i = 0; i < patch_->positions.size(); ++i) {
            slots_[static_cast<std::size_t>(patch_->positions[i])] = static_cast<std::int32_t>(i);
        }
    }
    ~Reader() {
        if (patch_ != nullptr) {
            for (const auto position : patch_->positions) {
                slots_[static_cast<std::size_t>(position)] = -1;
            }
        }
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    void column(std::int64_t position, std::byte* to, std::size_t to_step) const {
        copy_column(to, to_step, bytes_ + g_.at(position), g_.group_step, g_.groups, g_.cell);
        const auto slot = patch_ != nullptr ? slots_[static_cast<std::size_t>(position)] : -1;
        if (slot >= 0) {
            const auto groups = patch_->high - patch_->low;
            copy_column(to + static_cast<std::size_t>(patch_->low) * to_step, to_step,
                        patch_->cells.data() + static_cast<std::size_t>(slot * groups) * g_.cell,
                        g_.cell, groups, g_.cell);
        }
    }

private:
    const Geometry& g_;
    const Patch* patch_;
    std::vector<std::int32_t>& slots_;
    const std::byte* bytes_;
};

// The shape of columns side by side, of a tensor like `shape`.
Shape columns_shape(const Shape& shape, bool image, std::int64_t height, std::int64_t columns) {
    auto result = shape;
    std::fill(result.begin(), result.end(), 1);
    if (image && shape.size() > 2) {
        result[1] = shape[1];
        result.back() = columns;
        if (shape.size() > 3) {
            result[shape.size() - 2] = height;
        }
    } else {
        result.back() = shape.back();
        if (shape.size() > 1) {
            result[shape.size() - 2] = columns;
        }
    }
    return result;
}

bool same_places(const Geometry& a, const Geometry& b) {
    return a.image == b.image && a.outer == b.outer && a.height == b.height && a.width == b.width;
}

}  // namespace

// The op on windows that stand side by side: as many outputs, without padding.
Variant positions_variant(const Circuit& circuit, const ProgramSpec& spec) {
    const auto& f = circuit.steps()[spec.step].footprint;
    Variant variant;
    if (f.kind != Footprint::Kind::window) {
        return variant;
    }
    std::vector<std::int64_t> kernel = {f.kernel_width};
    if (f.dimensions == 2) {
        kernel.insert(kernel.begin(), f.kernel_height);
    }
    const std::vector<std::int64_t> ones(kernel.size(), 1);
    auto strides = ones;
    strides.back() = f.kernel_width;
    Attribute pad;
    pad.name = "auto_pad";
    pad.value = std::string("NOTSET");
    variant.attributes = {integers("kernel_shape", kernel), integers("strides", strides),
                          integers("dilations", ones),
                          integers("pads", std::vector<std::int64_t>(2 * kernel.size(), 0)), pad};
    return variant;
}

bool sees_nan(const Golden& golden, const Step& step, const Lane& lane) {
    return std::any_of(step.inputs.begin(), step.inputs.end(), [&](TensorId id) {
        const auto* patch = lane.patch(id);
        return patch != nullptr && may_have_nan(*patch, golden.values[index(id)].dtype());
    });
}

bool Runner::can_gather(const Golden& golden, std::size_t number, const Lane& lane,
                        std::vector<std::int32_t>& positions) {
    const auto& step = circuit_.steps()[number];
    const auto& f = step.footprint;
    auto& gathered = parts_->gathered[number];
    if (f.kind == Footprint::Kind::whole || gathered.failed || step.outputs.size() != 1) {
        return false;
    }
    const auto& op = circuit_.graph().op(step.op);
    const auto& out = golden.geometries[index(step.outputs[0])];
    const bool blocked = f.filters && circuit_.layout(step.outputs[0]).block > 0;
    if (!blocked && sees_nan(golden, step, lane)) {
        return false;
    }
    std::vector<std::int32_t> all;
    const auto add = [&](const std::vector<std::int32_t>& more) {
        std::vector<std::int32_t> both;
        std::set_union(all.begin(), all.end(), more.begin(), more.end(), std::back_inserter(both));
        all = std::move(both);
    };
    if (f.kind == Footprint::Kind::window) {
        const auto& in = golden.geometries[index(op.inputs[0])];
        const auto* patch = lane.patch(op.inputs[0]);
        const bool image =
            in.image && out.image && golden.values[index(op.inputs[0])].dtype() == DType::f32;
        if (!image || (patch != nullptr && patch->everywhere())) {
            return false;
        }
        if (patch != nullptr) {
            add(reached(f, in, out, patch->positions));
        }
    }
    for (const auto slot : f.local_slots) {
        const auto id = op.inputs[slot];
        const auto& in = golden.geometries[index(id)];
        const auto* patch = lane.patch(id);
        const bool twice = f.kind == Footprint::Kind::window && id == op.inputs[0];
        if (!same_places(in, out) || in.positions() < 2 || twice ||
            (patch != nullptr && patch->everywhere())) {
            return false;
        }
        if (patch != nullptr) {
            add(patch->positions);
        }
    }
    // What the engine needs for that many columns, where that is known, against the whole op.
    const auto count = all.size();
    const auto total = static_cast<std::size_t>(out.positions());
    double best = std::numeric_limits<double>::infinity();
    bool measured = false;
    for (std::size_t c = 0; c < column_classes.size(); ++c) {
        if (gathered.states[c] == Gathered::State::works) {
            measured = true;
            const auto runs = (count + column_classes[c] - 1) / column_classes[c];
            best = std::min(best, static_cast<double>(runs) * gathered.seconds[c]);
        }
    }
    if (measured ? best > golden.seconds[number] : 2 * count > total) {
        return false;
    }
    positions = std::move(all);
    return true;
}

// Windows or positions of the jobs' lanes, from column `first` of all of them on, side by side.
void Runner::gather(const Golden& golden, std::size_t number, std::span<const Job> jobs,
                    std::size_t first, std::size_t count, std::size_t columns) {
    const auto& step = circuit_.steps()[number];
    const auto& f = step.footprint;
    const auto& op = circuit_.graph().op(step.op);
    auto& gathered = parts_->gathered[number];
    const auto& out = golden.geometries[index(step.outputs[0])];
    gathered.locals.resize(f.local_slots.size());
    const auto kernel = static_cast<std::size_t>(f.kernel_height * f.kernel_width);
    if (f.kind == Footprint::Kind::window) {
        const auto& in = golden.geometries[index(op.inputs[0])];
        gathered.windows.resize(static_cast<std::size_t>(in.groups) * in.cell * kernel * columns);
    }
    for (std::size_t i = 0; i < f.local_slots.size(); ++i) {
        const auto& in = golden.geometries[index(op.inputs[f.local_slots[i]])];
        gathered.locals[i].resize(static_cast<std::size_t>(in.groups) * in.cell * columns);
    }
    std::size_t skip = first;
    std::size_t column = 0;
    for (const auto& job : jobs) {
        if (skip >= job.positions.size()) {
            skip -= job.positions.size();
            continue;
        }
        const auto take = std::min(job.positions.size() - skip, count - column);
        const std::span<const std::int32_t> here(job.positions.data() + skip, take);
        skip = 0;
        if (f.kind == Footprint::Kind::window) {
            const auto id = op.inputs[0];
            const auto& in = golden.geometries[index(id)];
            const Reader reader(golden.values[index(id)], in, job.lane->patch(id), parts_->slots);
            const auto row = static_cast<std::size_t>(f.kernel_width) * columns * in.cell;
            const auto group = row * static_cast<std::size_t>(f.kernel_height);
            auto at = column;
            for (const auto position : here) {
                const auto image = position / out.inner();
                const auto y0 = position % out.inner() / out.width * f.stride_height - f.pad_top;
                const auto x0 = position % out.width * f.stride_width - f.pad_left;
                for (std::int64_t ky = 0; ky < f.kernel_height; ++ky) {
                    const auto y = y0 + ky * f.dilation_height;
                    for (std::int64_t kx = 0; kx < f.kernel_width; ++kx) {
                        const auto x = x0 + kx * f.dilation_width;
                        auto* to = gathered.windows.data() + static_cast<std::size_t>(ky) * row +
                                   (at * static_cast<std::size_t>(f.kernel_width) +
                                    static_cast<std::size_t>(kx)) *
                                       in.cell;
                        if (y < 0 || y >= in.height || x < 0 || x >= in.width) {
                            fill_column(to, group, in.groups, in.cell, f.lowest);
                        } else {
                            reader.column(image * in.inner() + y * in.width + x, to, group);
                        }
                    }
                }
                ++at;
            }
        }
        for (std::size_t i = 0; i < f.local_slots.size(); ++i) {
            const auto id = op.inputs[f.local_slots[i]];
            const auto& in = golden.geometries[index(id)];
            const Reader reader(golden.values[index(id)], in, job.lane->patch(id), parts_->slots);
            const auto group = columns * in.cell;
            auto at = column;
            for (const auto position : here) {
                reader.column(position, gathered.locals[i].data() + at * in.cell, group);
                ++at;
            }
        }
        column += take;
        if (column == count) {
            return;
        }
    }
}

Value Runner::run_positions(const Golden& golden, std::size_t number, std::size_t columns) {
    const auto& step = circuit_.steps()[number];
    const auto& f = step.footprint;
    const auto& op = circuit_.graph().op(step.op);
    auto& gathered = parts_->gathered[number];
    auto& values = parts_->values;
    values.resize(golden.values.size());
    const auto lend = [&](TensorId id, const Buffer& bytes, std::int64_t height,
                          std::int64_t width) {
        const auto& like = golden.values[index(id)];
        values[index(id)] = Value::borrow(
            like.dtype(),
            columns_shape(like.shape(), golden.geometries[index(id)].image, height, width), bytes,
            nullptr);
    };
    const auto count = static_cast<std::int64_t>(columns);
    if (f.kind == Footprint::Kind::window) {
        lend(op.inputs[0], gathered.windows, f.kernel_height, count * f.kernel_width);
    }
    for (std::size_t i = 0; i < f.local_slots.size(); ++i) {
        lend(op.inputs[f.local_slots[i]], gathered.locals[i], 1, count);
    }
    const auto clear = [&] {
        for (const auto id : step.inputs) {
            values[index(id)] = {};
        }
    };
    Value made;
    try {
        const ProgramSpec spec{.step = number, .form = ProgramSpec::Form::positions};
        made = run_program(parts_->programs.get(spec, golden.values), step, values)[0];
    } catch (const Error&) {
        clear();
        throw;
    }
    clear();
    const auto& out = golden.geometries[index(step.outputs[0])];
    if (made.bytes().size() != columns * static_cast<std::size_t>(out.groups) * out.cell) {
        throw Error(Fault::engine, "an op at some positions gives another size");
    }
    return made;
}

// Parts of an op are relied on only after they had the golden bits, for that many columns.
bool Runner::calibrated(const Golden& golden, std::size_t number, std::size_t size_class) {
    auto& gathered = parts_->gathered[number];
    auto& state = gathered.states[size_class];
    if (state != Gathered::State::unknown) {
        return state == Gathered::State::works;
    }
    const auto& step = circuit_.steps()[number];
    const auto& f = step.footprint;
    const auto& op = circuit_.graph().op(step.op);
    state = Gathered::State::differs;
    if (f.filters && !gathered.checked_finite) {
        // Outside of the image there is nothing to multiply a filter with; gathered, there are
        // zeros.
        gathered.checked_finite = true;
        gathered.failed = f.padded() && !all_finite(*circuit_.constant(op.inputs[1]));
    }
    if (gathered.failed) {
        return false;
    }
    const auto columns = column_classes[size_class];
    const auto id = step.outputs[0];
    const auto& out = golden.geometries[index(id)];
    const auto total = static_cast<std::uint64_t>(out.positions());
    Lane lane;
    try {
        for (std::uint64_t round = 0; round < 3; ++round) {
            Job job{&lane, {}};
            for (std::size_t c = 0; c < columns; ++c) {
                const auto words = philox(round, number, c);
                // The last round is at the edges.
                const auto drawn = (std::uint64_t{words[0]} << 32 | words[1]) % total;
                const auto place = round < 2    ? drawn
                                   : c % 2 == 0 ? c / 2 % total
                                                : total - 1 - c / 2 % total;
                job.positions.push_back(static_cast<std::int32_t>(place));
            }
            gather(golden, number, std::span(&job, 1), 0, columns, columns);
            const auto start = now_seconds();
            const auto made = run_positions(golden, number, columns);
            gathered.seconds[size_class] = now_seconds() - start;
            const auto* bytes = made.bytes().data();
            const auto* wanted = golden.values[index(id)].bytes().data();
            for (std::size_t c = 0; c < columns; ++c) {
                for (std::int64_t g = 0; g < out.groups; ++g) {
                    const auto group = static_cast<std::size_t>(g);
                    if (std::memcmp(bytes + (group * columns + c) * out.cell,
                                    wanted + out.at(job.positions[c]) + group * out.group_step,
                                    out.cell) != 0) {
                        ++saved_.uncalibrated;
                        return false;
                    }
                }
            }
        }
    } catch (const Error&) {
        gathered.failed = true;
        return false;
    }
    state = Gathered::State::works;
    return true;
}

namespace {

// How many columns a run may have at most for its windows to fit the cache.
std::size_t largest_class(std::size_t column_bytes) {
    std::size_t c = column_classes.size() - 1;
    while (c > 0 && column_classes[c] * column_bytes > most_window_bytes) {
        --c;
    }
    return c;
}

}  // namespace

void Runner::run_gathered(const Golden& golden, std::size_t number, std::span<Job> jobs,
                          const Watch& watch) {
    const auto start = now_seconds();
    const auto& step = circuit_.steps()[number];
    const auto& f = step.footprint;
    const auto& op = circuit_.graph().op(step.op);
    const auto id = step.outputs[0];
    const auto& out = golden.geometries[index(id)];
    const auto* wanted = golden.values[index(id)].bytes().data();
    std::size_t total = 0;
    for (auto& job : jobs) {
        job.made.low = 0;
        job.made.high = out.groups;
        total += job.positions.size();
    }
    std::size_t column_bytes = static_cast<std::size_t>(out.groups) * out.cell;
    if (f.kind == Footprint::Kind::window) {
        const auto& in = golden.geometries[index(op.inputs[0])];
        column_bytes =
            static_cast<std::size_t>(in.groups * f.kernel_height * f.kernel_width) * in.cell;
    }
    // Each alone gives the same, or says what is wrong.
    const auto all_whole = [&] {
        parts_->gathered[number].failed = true;
        for (auto& j : jobs) {
            run_whole(golden, number, *j.lane, watch);
        }
    };
    const auto largest = largest_class(column_bytes);
    std::size_t job = 0;
    std::size_t in_job = 0;
    for (std::size_t first = 0; first < total;) {
        const auto left = total - first;
        auto size_class = std::min(smallest_class(left), largest);
        while (size_class < column_classes.size() && !calibrated(golden, number, size_class)) {
            ++size_class;
        }
        if (size_class == column_classes.size()) {
            return all_whole();
        }
        const auto columns = column_classes[size_class];
        const auto count = std::min(left, columns);
        gather(golden, number, jobs, first, count, columns);
        const auto before = now_seconds();
        Value made;
        try {
            made = run_positions(golden, number, columns);
        } catch (const Error&) {
            return all_whole();
        }
        auto& seconds = parts_->gathered[number].seconds[size_class];
        seconds = 0.7 * seconds + 0.3 * (now_seconds() - before) * 1.3;
        const auto* bytes = made.bytes().data();
        for (std::size_t c = 0; c < count; ++c) {
            while (in_job == jobs[job].positions.size()) {
                ++job;
                in_job = 0;
            }
            const auto position = jobs[job].positions[in_job++];
            bool differs = false;
            const auto place = out.at(position);
            for (std::int64_t g = 0; g < out.groups && !differs; ++g) {
                const auto group = static_cast<std::size_t>(g);
                differs = std::memcmp(bytes + (group * columns + c) * out.cell,
                                      wanted + place + group * out.group_step, out.cell) != 0;
            }
            if (differs) {
                auto& patch = jobs[job].made;
                const auto size = patch.cells.size();
                patch.positions.push_back(position);
                patch.cells.resize(size + static_cast<std::size_t>(out.groups) * out.cell);
                copy_column(patch.cells.data() + size, out.cell, bytes + c * out.cell,
                            columns * out.cell, out.groups, out.cell);
            }
        }
        first += count;
    }
    saved_.gathered += jobs.size();
    saved_.positions += total;
    saved_.seconds_gathered += now_seconds() - start;
    for (auto& j : jobs) {
        std::vector<std::pair<TensorId, Patch>> outputs;
        if (!j.made.positions.empty()) {
            outputs.emplace_back(id, std::move(j.made));
        }
        finish(golden, number, *j.lane, std::move(outputs), watch);
    }
}

}  // namespace trocar::inject
