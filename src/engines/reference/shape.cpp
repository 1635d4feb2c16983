// Ops that arrange all elements anew.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "engines/reference/call.h"
#include "engines/reference/stack.h"

namespace trocar::reference {

namespace {

void reshape(Call& call) {
    const auto from = call.shape(0);
    auto shape = call.integers("shape", 1).value_or(Integers{});
    const bool keep_zero = call.integer("allowzero", 0) != 0;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 0 && !keep_zero) {
            shape[i] = to_integer(size_at(from, i));
        } else if (shape[i] == -1) {
            require(!open, "two dimensions are left open");
            open = i;
            shape[i] = 1;
        }
    }
    if (open) {
        const auto rest = count(shape);
        shape[*open] = rest == 0 ? 0 : to_integer(count(from) / rest);
    }
    call.give(0, reshaped(call.tensor(0), shape));
}

void flatten(Call& call) {
    const auto shape = call.shape(0);
    const auto rank = to_integer(shape.size());
    auto axis = call.integer("axis", 1);
    require(axis >= -rank && axis <= rank, "the axis is outside the tensor");
    axis = axis < 0 ? axis + rank : axis;
    const Shape head(shape.begin(), shape.begin() + axis);
    const Shape tail(shape.begin() + axis, shape.end());
    call.give(0, reshaped(call.tensor(0), {to_integer(count(head)), to_integer(count(tail))}));
}

void squeeze(Call& call) {
    const auto shape = call.shape(0);
    Indices axes;
    if (const auto given = call.integers("axes", 1)) {
        axes = axes_of(*given, shape.size());
    } else {
        for (std::size_t i = 0; i < shape.size(); ++i) {
            if (shape[i] == 1) {
                axes.push_back(i);
            }
        }
    }
    for (const auto axis : axes) {
        require(shape[axis] == 1, "a dimension to be squeezed is not 1");
    }
    call.give(0, reshaped(call.tensor(0), without(shape, axes)));
}

void unsqueeze(Call& call) {
    auto shape = call.shape(0);
    const auto given = call.integers("axes", 1);
    require(given.has_value(), "the axes are missing");
    for (const auto axis : axes_of(*given, shape.size() + given->size())) {
        shape.insert(shape.begin() + to_integer(axis), 1);
    }
    call.give(0, reshaped(call.tensor(0), shape));
}

void transpose(Call& call) {
    const auto shape = call.shape(0);
    const auto strides = strides_of(shape);
    auto order = call.integers("perm");
    if (!order) {
        order.emplace(shape.size());
        std::iota(order->rbegin(), order->rend(), std::int64_t{0});
    }
    require(order->size() == shape.size(), "the permutation has another length than the shape");
    axes_of(*order, shape.size());
    Shape to;
    Integers steps;
    for (const auto axis : *order) {
        const auto from = axis_of(axis, shape.size());
        to.push_back(shape[from]);
        steps.push_back(strides[from]);
    }
    call.give(0, take(call.tensor(0), to, strided(to, steps)));
}

void expand(Call& call) {
    const auto to = broadcast(call.shape(0), call.integers(1));
    call.give(0, take(call.tensor(0), to, spread(call.shape(0), to)));
}

void tile(Call& call) {
    const auto shape = call.shape(0);
    const auto repeats = call.integers(1);
    require(repeats.size() == shape.size(), "one repeat per dimension is wanted");
    // Dimensions of copies stand before those that are copied.
    Shape to;
    Shape pairs;
    Integers steps;
    const auto strides = strides_of(shape);
    for (std::size_t i = 0; i < shape.size(); ++i) {
        require(repeats[i] >= 0 && repeats[i] <= to_integer(most_elements),
                "a repeat is out of range");
        pairs.insert(pairs.end(), {repeats[i], shape[i]});
        steps.insert(steps.end(), {0, strides[i]});
        to.push_back(repeats[i] * shape[i]);
    }
    call.give(0, take(call.tensor(0), to, strided(pairs, steps)));
}

void concat(Call& call) {
    std::vector<Value> parts;
    for (std::size_t i = 0; i < call.input_count(); ++i) {
        parts.push_back(call.tensor(i));
    }
    call.give(0, joined(parts, call.integer("axis", call.opset() < 4 ? 1 : 0)));
}

// The lengths are given, or the parts are equal but for the last.
Integers split_lengths(const Call& call, std::int64_t total) {
    if (auto given = call.integers("split", 1)) {
        return *given;
    }
    const auto parts = call.integer("num_outputs", to_integer(call.output_count()));
    require(parts > 0 && parts <= std::max<std::int64_t>(total, 1), "the number of parts is wrong");
    const auto length = (total + parts - 1) / parts;
    Integers lengths(to_size(parts), length);
    lengths.back() = total - length * (parts - 1);
    return lengths;
}

void split(Call& call) {
    auto shape = call.shape(0);
    const auto axis = axis_of(call.integer("axis", 0), shape.size());
    const auto lengths = split_lengths(call, shape[axis]);
    std::int64_t total = 0;
    for (const auto length : lengths) {
        require(length >= 0 && length <= shape[axis] - total, "the parts do not fit the dimension");
        total += length;
    }
    require(total == shape[axis], "the parts are not all of the dimension");
    const auto strides = strides_of(shape);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        shape[axis] = lengths[i];
        if (call.wants(i)) {
            call.give(i, take(call.tensor(0), shape, strided(shape, strides, start)));
        }
        start += lengths[i] * strides[axis];
    }
}

// Both rearrange blocks: a reshape to six dimensions, a transposition, a reshape.
void rearrange(Call& call, const Shape& six, const std::array<std::size_t, 6>& order,
               const Shape& to) {
    const auto strides = strides_of(six);
    Shape shape;
    Integers steps;
    for (const auto axis : order) {
        shape.push_back(six[axis]);
        steps.push_back(strides[axis]);
    }
    call.give(0, take(call.tensor(0), to, strided(shape, steps)));
}

std::int64_t block_of(const Call& call) {
    const auto block = call.integer("blocksize", 0);
    require(block > 0 && block < 1 << 15, "the block size is out of range");
    require(call.shape(0).size() == 4, "a tensor of four dimensions is wanted");
    return block;
}

void depth_to_space(Call& call) {
    const auto b = block_of(call);
    const auto s = call.shape(0);
    require(s[1] % (b * b) == 0, "the channels are no multiple of the block");
    const auto depth = s[1] / (b * b);
    const Shape to{s[0], depth, s[2] * b, s[3] * b};
    const auto mode = call.text("mode", "DCR");
    require(mode == "DCR" || mode == "CRD", "there is no such mode");
    if (mode == "DCR") {
        rearrange(call, {s[0], b, b, depth, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, to);
    } else {
        rearrange(call, {s[0], depth, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, to);
    }
}

void space_to_depth(Call& call) {
    const auto b = block_of(call);
    const auto s = call.shape(0);
    require(s[2] % b == 0 && s[3] % b == 0, "the picture is no multiple of the block");
    const auto mode = call.text("mode", "DCR");
    rearrange(call, {s[0], s[1], s[2] / b, b, s[3] / b, b},
              mode == "CRD" ? std::array<std::size_t, 6>{0, 1, 3, 5, 2, 4}
                            : std::array<std::size_t, 6>{0, 3, 5, 1, 2, 4},
              {s[0], s[1] * b * b, s[2] / b, s[3] / b});
}

void where(Call& call) {
    require(call.dtype(0) == DType::boolean, "the condition is not boolean");
    const auto shape = broadcast(broadcast(call.shape(0), call.shape(1)), call.shape(2));
    const auto condition = call.integers(0);
    const Elements yes(call.tensor(1));
    const Elements no(call.tensor(2));
    const auto from_condition = spread(call.shape(0), shape);
    const auto from_yes = spread(call.shape(1), shape);
    const auto from_no = spread(call.shape(2), shape);
    Elements made(yes.dtype(), from_yes.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
        if (condition[from_condition[i]] != 0) {
            made.set(i, yes, from_yes[i]);
        } else {
            made.set(i, no, from_no[i]);
        }
    }
    call.give(0, made.value(shape));
}

void trilu(Call& call) {
    const auto shape = call.shape(0);
    require(shape.size() >= 2, "a matrix is wanted");
    const bool upper = call.integer("upper", 1) != 0;
    const auto shift = call.has(1) ? std::clamp<std::int64_t>(call.integer(std::size_t{1}),
                                                              -to_integer(most_elements),
                                                              to_integer(most_elements))
                                   : 0;
    const auto rows = shape[shape.size() - 2];
    const auto columns = shape.back();
    const Elements from(call.tensor(0));
    Elements made(from.dtype(), from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto column = to_integer(i) % columns;
        const auto row = to_integer(i) / columns % rows;
        if (upper ? column - row >= shift : column - row <= shift) {
            made.set(i, from, i);
        }
    }
    call.give(0, made.value(shape));
}

void reverse_sequence(Call& call) {
    const auto shape = call.shape(0);
    const auto time = axis_of(call.integer("time_axis", 0), shape.size());
    const auto batch = axis_of(call.integer("batch_axis", 1), shape.size());
    const auto lengths = call.integers(1);
    require(time != batch && lengths.size() == size_at(shape, batch),
            "one length per entry of the batch is wanted");
    const auto strides = strides_of(shape);
    auto from = strided(shape, strides);
    for (auto& at : from) {
        const auto place = to_integer(at);
        const auto length = lengths[to_size(place / strides[batch] % shape[batch])];
        require(length >= 0 && length <= shape[time], "a length is out of range");
        const auto t = place / strides[time] % shape[time];
        if (t < length) {
            at = to_size(place + (length - 1 - 2 * t) * strides[time]);
        }
    }
    call.give(0, take(call.tensor(0), shape, from));
}

}  // namespace

std::span<const Entry> shape_ops() {
    static constexpr Entry ops[]{
        {"Concat", concat},
        {"DepthToSpace", depth_to_space},
        {"Expand", expand},
        {"Flatten", flatten},
        {"Reshape", reshape},
        {"ReverseSequence", reverse_sequence},
        {"SpaceToDepth", space_to_depth},
        {"Split", split},
        {"Squeeze", squeeze},
        {"Tile", tile},
        {"Transpose", transpose},
        {"Trilu", trilu},
        {"Unsqueeze", unsqueeze},
        {"Where", where},
    };
    return ops;
}

}  // namespace trocar::reference
