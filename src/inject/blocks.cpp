#include <algorithm>
#include <cstring>

#include "inject/bits.h"
#include "inject/runner_parts.h"
#include "trocar/error.h"

namespace trocar::inject {

namespace {

constexpr std::int64_t plain_block =
    16;  // channels that are computed together where none block them
constexpr std::size_t most_blocks = 16;

// How a convolution's output channels are cut into blocks.
struct Cut {
    std::int64_t channels = 0;  // in a block
    std::int64_t groups = 0;    // of cells, in a block
    std::size_t filter_bytes = 0;
    std::size_t bias_bytes = 0;
};

Cut cut(const Circuit& circuit, const Op& op) {
    const auto& filters = *circuit.constant(op.inputs[1]);
    const auto outputs = filters.shape()[0];
    const auto block = circuit.filter_layout(op, 1).block;
    Cut c;
    c.channels = block > 0 ? block : std::min(plain_block, outputs);
    c.groups = block > 0 ? 1 : c.channels;
    const auto element = bits(filters.dtype()) / 8;
    c.filter_bytes = filters.bytes().size() / static_cast<std::size_t>(outputs) *
                     static_cast<std::size_t>(c.channels);
    c.bias_bytes = static_cast<std::size_t>(c.channels) * element;
    return c;
}

// The first channel of the block that a changed element belongs to.
std::int64_t block_of(const Circuit& circuit, const Op& op, const Cut& c, TensorId tensor,
                      std::uint64_t stored) {
    const auto& filters = *circuit.constant(op.inputs[1]);
    const auto per_channel = filters.element_count() / static_cast<std::size_t>(filters.shape()[0]);
    // Blocks stand one after the other; inside of one, channels may not.
    const auto channel = tensor == op.inputs[1] ? static_cast<std::int64_t>(stored / per_channel)
                                                : static_cast<std::int64_t>(stored);
    return std::min(channel / c.channels * c.channels, filters.shape()[0] - c.channels);
}

bool has_bias(const Op& op) {
    return op.inputs.size() > 2 && op.inputs[2] != TensorId::none;
}
bool has_sum(const Op& op) {
    return op.inputs.size() > 3 && op.inputs[3] != TensorId::none;
}

void append(Buffer& to, Bytes from, std::size_t offset, std::size_t size) {
    const auto part = from.subspan(offset, size);
    to.insert(to.end(), part.begin(), part.end());
}

// The planes of some blocks of a tensor, image by image, side by side.
void take_planes(const Value& value, const Geometry& g, const Cut& c,
                 const std::vector<std::int64_t>& blocks, Buffer& to) {
    to.clear();
    for (std::int64_t image = 0; image < g.outer; ++image) {
        for (const auto block : blocks) {
            const auto group = c.groups == 1 ? block / c.channels : block;
            append(to, value.bytes(),
                   static_cast<std::size_t>(image) * g.outer_step +
                       static_cast<std::size_t>(group) * g.group_step,
                   static_cast<std::size_t>(c.groups) * g.group_step);
        }
    }
}

Shape with_channels(Shape shape, std::int64_t channels) {
    shape[1] = channels;
    return shape;
}

std::int64_t group_of(const Cut& c, std::int64_t block) {
    return c.groups == 1 ? block / c.channels : block;
}

}  // namespace

bool Runner::can_block(const Golden& golden, std::size_t number, const Lane& lane) const {
    const auto& step = circuit_.steps()[number];
    const auto& op = circuit_.graph().op(step.op);
    const auto& f = step.footprint;
    if (!f.filters || parts_->blocks[number].failed || step.outputs.size() != 1) {
        return false;
    }
    if (!f.depthwise && op.integer("group", 1) != 1) {
        return false;
    }
    const auto& in = golden.geometries[index(op.inputs[0])];
    const auto& out = golden.geometries[index(step.outputs[0])];
    const auto& filters = *circuit_.constant(op.inputs[1]);
    if (!in.image || !out.image || bits(filters.dtype()) % 8 != 0) {
        return false;
    }
    const auto c = cut(circuit_, op);
    if (filters.shape()[0] % c.channels != 0 && c.groups == 1) {
        return false;
    }
    std::int64_t block = -1;
    for (const auto& change : lane.constants) {
        if (change.step != number) {
            continue;
        }
        const bool known =
            change.tensor == op.inputs[1] || (has_bias(op) && change.tensor == op.inputs[2]);
        if (!known || change.pokes.empty()) {
            return false;
        }
        for (const auto& [stored, word] : change.pokes) {
            const auto here = block_of(circuit_, op, c, change.tensor, stored);
            if (block >= 0 && here != block) {
                return false;
            }
            block = here;
        }
    }
    return block >= 0;
}

// Filters and bias as inputs: the program holds for all changes of them. That of a depthwise
// convolution is for so many channels.
Variant channels_variant(const Circuit& circuit, const ProgramSpec& spec) {
    const auto& op = circuit.graph().op(circuit.steps()[spec.step].op);
    Variant variant;
    variant.as_inputs = {op.inputs[1]};
    if (has_bias(op)) {
        variant.as_inputs.push_back(op.inputs[2]);
    }
    if (spec.width > 0) {
        Attribute group;
        group.name = "group";
        group.value = spec.width;
        variant.attributes = {group};
    }
    return variant;
}

Value Runner::run_filters(const Golden& golden, std::size_t number,
                          const std::vector<std::int64_t>& blocks, std::span<Lane* const> lanes) {
    const auto& step = circuit_.steps()[number];
    const auto& op = circuit_.graph().op(step.op);
    const auto c = cut(circuit_, op);
    auto& parts = parts_->blocks[number];
    const auto& filters = *circuit_.constant(op.inputs[1]);
    const auto channels = c.channels * static_cast<std::int64_t>(blocks.size());
    ProgramSpec spec{.step = number, .form = ProgramSpec::Form::channels};
    spec.width = step.footprint.depthwise ? channels : 0;
    auto& compiled = parts_->programs.get(spec, golden.values);
    parts.filters.clear();
    parts.bias.clear();
    const auto per_channel = c.filter_bytes / static_cast<std::size_t>(c.channels);
    const auto element = bits(filters.dtype()) / 8;
    const std::vector<ConstantChange> none;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        append(parts.filters, filters.bytes(), static_cast<std::size_t>(blocks[i]) * per_channel,
               c.filter_bytes);
        if (has_bias(op)) {
            append(parts.bias, circuit_.constant(op.inputs[2])->bytes(),
                   static_cast<std::size_t>(blocks[i]) * element, c.bias_bytes);
        }
        for (const auto& change : lanes.empty() ? none : lanes[i]->constants) {
            if (change.step == number) {
                const bool of_filters = change.tensor == op.inputs[1];
                const auto size = of_filters ? c.filter_bytes : c.bias_bytes;
                const auto first =
                    static_cast<std::size_t>(blocks[i]) * (of_filters ? per_channel / element : 1);
                const auto block = std::span(of_filters ? parts.filters : parts.bias).last(size);
                for (const auto& poke : change.pokes) {
                    store_bits(filters.dtype(), block, poke.stored - first, poke.word);
                }
            }
        }
    }
    auto& values = parts_->values;
    values.resize(golden.values.size());
    auto shape = filters.shape();
    shape[0] = channels;
    const auto set = [&](TensorId id, Shape like, const Buffer& bytes) {
        values[index(id)] = Value::borrow(filters.dtype(), std::move(like), bytes, nullptr);
    };
    set(op.inputs[1], shape, parts.filters);
    if (has_bias(op)) {
        set(op.inputs[2], {channels}, parts.bias);
    }
    const auto& x = golden.values[index(op.inputs[0])];
    if (step.footprint.depthwise) {
        take_planes(x, golden.geometries[index(op.inputs[0])], c, blocks, parts.input);
        set(op.inputs[0], with_channels(x.shape(), channels), parts.input);
    } else {
        values[index(op.inputs[0])] = x;
    }
    if (has_sum(op)) {
        const auto& sum = golden.values[index(op.inputs[3])];
        take_planes(sum, golden.geometries[index(op.inputs[3])], c, blocks, parts.added);
        set(op.inputs[3], with_channels(sum.shape(), channels), parts.added);
    }
    const auto clear = [&] {
        for (const auto id : op.inputs) {
            if (id != TensorId::none) {
                values[index(id)] = {};
            }
        }
    };
    Value made;
    try {
        made = run_program(compiled, step, values)[0];
    } catch (const Error&) {
        clear();
        throw;
    }
    clear();
    const auto& g = golden.geometries[index(step.outputs[0])];
    if (made.bytes().size() !=
        static_cast<std::size_t>(g.outer * c.groups) * blocks.size() * g.group_step) {
        throw Error(Fault::engine, "a convolution of some channels gives another size");
    }
    return made;
}

void Runner::run_blocks(const Golden& golden, std::size_t number, std::span<Lane*> lanes,
                        const Watch& watch) {
    const auto& step = circuit_.steps()[number];
    const auto& op = circuit_.graph().op(step.op);
    const auto c = cut(circuit_, op);
    const auto id = step.outputs[0];
    const auto& g = golden.geometries[index(id)];
    const auto* wanted = golden.values[index(id)].bytes().data();
    auto& parts = parts_->blocks[number];
    // Where block `at` of a run differs from the golden output.
    const auto differs = [&](const Value& made, std::size_t count, std::size_t at,
                             std::int64_t block) {
        Patch patch;
        patch.low = group_of(c, block);
        patch.high = patch.low + c.groups;
        const auto* bytes = made.bytes().data();
        for (std::int64_t position = 0; position < g.positions(); ++position) {
            const auto image = static_cast<std::size_t>(position / g.inner());
            const auto inner = static_cast<std::size_t>(position % g.inner());
            const auto* here =
                bytes + (image * count + at) * static_cast<std::size_t>(c.groups) * g.group_step +
                inner * g.cell;
            const auto* there =
                wanted + g.at(position) + static_cast<std::size_t>(patch.low) * g.group_step;
            bool other = false;
            for (std::size_t group = 0; group < static_cast<std::size_t>(c.groups); ++group) {
                other = other || std::memcmp(here + group * g.group_step,
                                             there + group * g.group_step, g.cell) != 0;
            }
            if (!other) {
                continue;
            }
            patch.positions.push_back(static_cast<std::int32_t>(position));
            for (std::size_t group = 0; group < static_cast<std::size_t>(c.groups); ++group) {
                const auto* cell = here + group * g.group_step;
                patch.cells.insert(patch.cells.end(), cell, cell + g.cell);
            }
        }
        return patch;
    };
    for (std::size_t first = 0; first < lanes.size(); first += most_blocks) {
        const auto start = now_seconds();
        const auto some = lanes.subspan(first, std::min(most_blocks, lanes.size() - first));
        std::vector<std::int64_t> blocks;
        for (const auto* lane : some) {
            for (const auto& change : lane->constants) {
                if (change.step == number) {
                    blocks.push_back(
                        block_of(circuit_, op, c, change.tensor, change.pokes.front().stored));
                    break;
                }
            }
        }
        const auto count = blocks.size();
        std::optional<Value> made;
        try {
            const auto known = parts.works.find(count);
            if (known == parts.works.end()) {
                const auto golden_made = run_filters(golden, number, blocks, {});
                bool same = true;
                for (std::size_t i = 0; i < count && same; ++i) {
                    same = differs(golden_made, count, i, blocks[i]).positions.empty();
                }
                saved_.uncalibrated += same ? 0 : 1;
                parts.works[count] = same;
            }
            if (parts.works[count]) {
                made = run_filters(golden, number, blocks, some);
            }
        } catch (const Error&) {
            parts.failed = true;
        }
        if (!made) {
            for (auto* lane : some) {
                run_whole(golden, number, *lane, watch);
            }
            continue;
        }
        saved_.blocks += count;
        std::vector<Patch> patches;
        for (std::size_t i = 0; i < count; ++i) {
            patches.push_back(differs(*made, count, i, blocks[i]));
        }
        saved_.seconds_blocks += now_seconds() - start;
        for (std::size_t i = 0; i < count; ++i) {
            std::vector<std::pair<TensorId, Patch>> outputs;
            if (!patches[i].positions.empty()) {
                outputs.emplace_back(id, std::move(patches[i]));
            }
            finish(golden, number, *some[i], std::move(outputs), watch);
        }
    }
}

}  // namespace trocar::inject
