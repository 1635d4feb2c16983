// Ops that choose elements.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engines/reference/call.h"
#include "engines/reference/places.h"

namespace trocar::reference {

std::int64_t place_in(std::int64_t at, std::int64_t size) {
    if (at < -size || at >= size) {
        fail(fmt::format("the index {} is outside a dimension of {}", at, size));
    }
    return at < 0 ? at + size : at;
}

namespace {

// --- Slice --------------------------------------------------------------------------------------

struct Cut {
    std::int64_t start = 0;
    std::int64_t step = 1;
    std::int64_t length = 0;
};

// As Python does it.
Cut cut_of(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t size) {
    require(step != 0, "the step of a slice is zero");
    step = std::clamp<std::int64_t>(step, -to_integer(most_elements) - 1,
                                    to_integer(most_elements) + 1);
    const std::int64_t lowest = step < 0 ? -1 : 0;
    const std::int64_t highest = step < 0 ? size - 1 : size;
    const auto bound = [&](std::int64_t at) {
        return std::clamp(at < 0 ? at + size : at, lowest, highest);
    };
    Cut cut{bound(start), step, 0};
    const auto last = bound(end);
    const auto room = step > 0 ? last - cut.start : cut.start - last;
    cut.length = room > 0 ? (room + std::abs(step) - 1) / std::abs(step) : 0;
    return cut;
}

void slice(Call& call) {
    auto shape = call.shape(0);
    const auto starts = call.integers("starts", 1);
    const auto ends = call.integers("ends", 2);
    require(starts && ends && starts->size() == ends->size(), "starts and ends are wanted");
    auto axes = call.integers("axes", 3).value_or(Integers{});
    if (axes.empty()) {
        for (std::size_t i = 0; i < starts->size(); ++i) {
            axes.push_back(to_integer(i));
        }
    }
    const auto steps = call.has(4) ? call.integers(4) : Integers(starts->size(), 1);
    require(axes.size() == starts->size() && steps.size() == starts->size(),
            "starts, axes and steps differ in length");
    axes_of(axes, shape.size());
    auto strides = strides_of(shape);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto axis = axis_of(axes[i], shape.size());
        const auto cut = cut_of((*starts)[i], (*ends)[i], steps[i], shape[axis]);
        offset += cut.start * strides[axis];
        strides[axis] *= cut.step;
        shape[axis] = cut.length;
    }
    call.give(0, take(call.tensor(0), shape, strided(shape, strides, offset)));
}

// --- Gather -------------------------------------------------------------------------------------

void gather(Call& call) {
    const auto shape = call.shape(0);
    const auto axis = axis_of(call.integer("axis", 0), shape.size());
    const auto indices = call.integers(1);
    const auto at = call.shape(1);
    const auto split = to_integer(axis);
    const Shape head(shape.begin(), shape.begin() + split);
    const Shape tail(shape.begin() + split + 1, shape.end());
    Shape to = head;
    to.insert(to.end(), at.begin(), at.end());
    to.insert(to.end(), tail.begin(), tail.end());
    Indices from;
    from.reserve(count(to));
    const auto block = count(tail);
    for (std::size_t h = 0; h < count(head); ++h) {
        for (const auto given : indices) {
            const auto place = h * size_at(shape, axis) + to_size(place_in(given, shape[axis]));
            for (std::size_t t = 0; t < block; ++t) {
                from.push_back(place * block + t);
            }
        }
    }
    call.give(0, take(call.tensor(0), to, from));
}

void gather_elements(Call& call) {
    const auto shape = call.shape(0);
    const auto to = call.shape(1);
    const auto axis = axis_of(call.integer("axis", 0), shape.size());
    call.give(0, take(call.tensor(0), to, element_places(shape, to, axis, call.integers(1))));
}

void gather_nd(Call& call) {
    const auto shape = call.shape(0);
    const auto places =
        block_places(shape, call.shape(1), call.integers(1), call.integer("batch_dims", 0));
    Indices from;
    for (const auto start : places.starts) {
        for (std::size_t i = 0; i < places.block; ++i) {
            from.push_back(start + i);
        }
    }
    call.give(0, take(call.tensor(0), places.shape, from));
}

void compress(Call& call) {
    auto value = call.tensor(0);
    const auto* given = call.attribute("axis");
    if (given == nullptr) {
        value = reshaped(value, {to_integer(count(value.shape()))});
    }
    auto shape = value.shape();
    const auto axis = axis_of(call.integer("axis", 0), shape.size());
    const auto condition = call.integers(1);
    require(condition.size() <= size_at(shape, axis), "the condition is too long");
    Integers kept;
    for (std::size_t i = 0; i < condition.size(); ++i) {
        if (condition[i] != 0) {
            kept.push_back(to_integer(i));
        }
    }
    const auto strides = strides_of(shape);
    shape[axis] = to_integer(kept.size());
    const auto own = strides_of(shape);
    Indices from = strided(shape, own);
    auto steps = strides;
    steps[axis] = 0;
    const auto starts = strided(shape, steps);
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto k = to_integer(from[i]) / own[axis] % shape[axis];
        from[i] = starts[i] + to_size(kept[to_size(k)] * strides[axis]);
    }
    call.give(0, take(value, shape, from));
}

void non_zero(Call& call) {
    const auto shape = call.shape(0);
    const auto strides = strides_of(shape);
    const auto x = call.numbers(0);
    Indices found;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] != 0) {
            found.push_back(i);
        }
    }
    const Shape to{to_integer(shape.size()), to_integer(found.size())};
    count(to);
    Integers places;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        for (const auto at : found) {
            places.push_back(to_integer(at) / strides[axis] % shape[axis]);
        }
    }
    call.give(0, DType::i64, to, places);
}

// --- Pad ----------------------------------------------------------------------------------------

// Where a place before or behind a dimension is read; nothing where the constant stands.
std::optional<std::int64_t> padded_from(std::int64_t at, std::int64_t size,
                                        const std::string& mode) {
    if (at >= 0 && at < size) {
        return at;
    }
    if (mode == "constant" || size == 0) {
        return std::nullopt;
    }
    if (mode == "edge") {
        return std::clamp<std::int64_t>(at, 0, size - 1);
    }
    if (mode == "wrap") {
        return (at % size + size) % size;
    }
    const auto period = std::max<std::int64_t>(2 * (size - 1), 1);
    const auto folded = (at % period + period) % period;
    return folded < size ? folded : period - folded;
}

struct Padding {
    Integers before, after;
};

Padding padding_of(const Call& call, std::size_t rank) {
    auto pads = call.integers("pads", 1);
    if (!pads) {
        pads = call.integers("paddings");
    }
    require(pads.has_value(), "the pads are missing");
    Integers axes;
    if (call.has(3)) {
        axes = call.integers(3);
    } else {
        for (std::size_t i = 0; i < rank; ++i) {
            axes.push_back(to_integer(i));
        }
    }
    axes_of(axes, rank);
    require(pads->size() == 2 * axes.size(), "two pads per axis are wanted");
    Padding padding{Integers(rank, 0), Integers(rank, 0)};
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto axis = axis_of(axes[i], rank);
        padding.before[axis] = (*pads)[i];
        padding.after[axis] = (*pads)[axes.size() + i];
        for (const auto pad : {padding.before[axis], padding.after[axis]}) {
            require(std::abs(pad) <= to_integer(most_elements) && pad != INT64_MIN,
                    "a pad is out of range");
        }
    }
    return padding;
}

Value pad_fill(const Call& call) {
    if (call.has(2)) {
        require(call.dtype(2) == call.dtype(0) && call.tensor(2).element_count() == 1,
                "the value to pad with is not one element of the type");
        return call.tensor(2);
    }
    return call.dtype(0) == DType::string
               ? Value::strings({}, {""})
               : scalar(call.dtype(0), call.opset() < 11 ? call.number("value", 0) : 0);
}

void pad(Call& call) {
    const auto shape = call.shape(0);
    const auto mode = call.text("mode", "constant");
    require(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap",
            "there is no such mode");
    const auto padding = padding_of(call, shape.size());
    Shape to = shape;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        to[i] += padding.before[i] + padding.after[i];
        require(to[i] >= 0, "the pads take away more than there is");
    }
    const auto strides = strides_of(shape);
    const auto own = strides_of(to);
    const Elements from(call.tensor(0));
    const Elements fill(pad_fill(call));
    Elements made(from.dtype(), count(to));
    for (std::size_t i = 0; i < made.size(); ++i) {
        std::int64_t place = 0;
        bool outside = false;
        for (std::size_t axis = 0; axis < to.size(); ++axis) {
            const auto at = to_integer(i) / own[axis] % to[axis] - padding.before[axis];
            const auto source = padded_from(at, shape[axis], mode);
            outside = outside || !source;
            place += source.value_or(0) * strides[axis];
        }
        made.set(i, outside ? fill : from, outside ? 0 : to_size(place));
    }
    call.give(0, made.value(to));
}

// Cuts or pads around the middle.
void center_crop_pad(Call& call) {
    const auto shape = call.shape(0);
    const auto sizes = call.integers(1);
    Integers axes = call.integers("axes").value_or(Integers{});
    if (axes.empty()) {
        for (std::size_t i = 0; i < shape.size(); ++i) {
            axes.push_back(to_integer(i));
        }
    }
    axes_of(axes, shape.size());
    require(sizes.size() == axes.size(), "one size per axis is wanted");
    Shape to = shape;
    Integers shift(shape.size(), 0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto axis = axis_of(axes[i], shape.size());
        require(sizes[i] >= 0 && sizes[i] <= to_integer(most_elements), "a size is out of range");
        to[axis] = sizes[i];
        shift[axis] =
            sizes[i] < shape[axis] ? (shape[axis] - sizes[i]) / 2 : -((sizes[i] - shape[axis]) / 2);
    }
    const auto strides = strides_of(shape);
    const auto own = strides_of(to);
    const Elements from(call.tensor(0));
    Elements made(from.dtype(), count(to));
    for (std::size_t i = 0; i < made.size(); ++i) {
        std::int64_t place = 0;
        bool inside = true;
        for (std::size_t axis = 0; axis < to.size(); ++axis) {
            const auto at = to_integer(i) / own[axis] % to[axis] + shift[axis];
            inside = inside && at >= 0 && at < shape[axis];
            place += at * strides[axis];
        }
        if (inside) {
            made.set(i, from, to_size(place));
        }
    }
    call.give(0, made.value(to));
}

}  // namespace

std::span<const Entry> gather_ops() {
    static constexpr Entry ops[]{
        {"CenterCropPad", center_crop_pad},
        {"Compress", compress},
        {"Gather", gather},
        {"GatherElements", gather_elements},
        {"GatherND", gather_nd},
        {"NonZero", non_zero},
        {"Pad", pad},
        {"Slice", slice},
    };
    return ops;
}

}  // namespace trocar::reference
