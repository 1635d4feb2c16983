// Ops that write into places of a tensor.
#include <fmt/format.h>

#include <algorithm>

#include "engines/reference/call.h"
#include "engines/reference/places.h"

namespace trocar::reference {

Indices element_places(const Shape& shape, const Shape& index_shape, std::size_t axis,
                       const Integers& indices) {
    require(shape.size() == index_shape.size(), "the indices have another rank than the tensor");
    require(indices.size() == count(index_shape), "the indices have another size than their shape");
    for (std::size_t i = 0; i < shape.size(); ++i) {
        require(i == axis || index_shape[i] <= shape[i],
                "the indices reach beyond the tensor in another dimension than the axis");
    }
    auto strides = strides_of(shape);
    const auto stride = strides[axis];
    strides[axis] = 0;
    auto places = strided(index_shape, strides);
    for (std::size_t i = 0; i < places.size(); ++i) {
        places[i] += to_size(place_in(indices[i], shape[axis]) * stride);
    }
    return places;
}

Blocks block_places(const Shape& shape, const Shape& index_shape, const Integers& indices,
                    std::int64_t batch_dims) {
    const auto rank = to_integer(shape.size());
    const auto index_rank = to_integer(index_shape.size());
    require(index_rank >= 1 && batch_dims >= 0 && batch_dims < index_rank,
            "the indices have too few dimensions");
    const auto width = index_shape.back();
    require(width >= 0 && width <= rank - batch_dims, "the indices are longer than the shape");
    for (std::int64_t i = 0; i < batch_dims; ++i) {
        require(shape[to_size(i)] == index_shape[to_size(i)], "the batches differ");
    }
    const auto strides = strides_of(shape);
    Blocks blocks;
    blocks.shape.assign(index_shape.begin(), index_shape.end() - 1);
    blocks.shape.insert(blocks.shape.end(), shape.begin() + batch_dims + width, shape.end());
    count(blocks.shape);
    blocks.block = count(Shape(shape.begin() + batch_dims + width, shape.end()));
    const Shape tuples(index_shape.begin(), index_shape.end() - 1);
    Integers batch_strides(tuples.size(), 0);
    std::copy_n(strides.begin(), batch_dims, batch_strides.begin());
    blocks.starts = strided(tuples, batch_strides);
    for (std::size_t i = 0; i < blocks.starts.size(); ++i) {
        for (std::int64_t k = 0; k < width; ++k) {
            const auto axis = to_size(batch_dims + k);
            const auto given = indices[i * to_size(width) + to_size(k)];
            blocks.starts[i] += to_size(place_in(given, shape[axis]) * strides[axis]);
        }
    }
    return blocks;
}

namespace {

template <class T>
T reduced(const std::string& how, T old, T update) {
    if (how == "max") {
        return std::max(old, update);
    }
    if (how == "min") {
        return std::min(old, update);
    }
    if constexpr (std::is_integral_v<T>) {
        const auto a = static_cast<std::uint64_t>(old);
        const auto b = static_cast<std::uint64_t>(update);
        return static_cast<T>(how == "add" ? a + b : a * b);
    } else {
        return how == "add" ? old + update : old * update;
    }
}

// Puts update i at places[i] of the first input.
void scatter_to(Call& call, const Indices& places) {
    const auto how = call.text("reduction", "none");
    require(how == "none" || how == "add" || how == "mul" || how == "max" || how == "min",
            "there is no such reduction");
    const auto shape = call.shape(0);
    const auto dtype = call.dtype(0);
    require(call.dtype(2) == dtype, "the updates are of another type");
    require(places.size() == count(call.shape(2)), "the updates do not fit the indices");
    if (how == "none") {
        Elements made(call.tensor(0));
        const Elements updates(call.tensor(2));
        for (std::size_t i = 0; i < places.size(); ++i) {
            made.set(places[i], updates, i);
        }
        call.give(0, made.value(shape));
        return;
    }
    with_number(dtype, [&](auto zero) {
        using T = decltype(zero);
        auto made = read<T>(call.tensor(0));
        const auto updates = read<T>(call.tensor(2));
        for (std::size_t i = 0; i < places.size(); ++i) {
            made[places[i]] = reduced(how, made[places[i]], updates[i]);
        }
        call.give(0, dtype, shape, made);
    });
}

void scatter_elements(Call& call) {
    const auto shape = call.shape(0);
    const auto axis = axis_of(call.integer("axis", 0), shape.size());
    require(call.shape(1) == call.shape(2), "indices and updates differ in shape");
    scatter_to(call, element_places(shape, call.shape(1), axis, call.integers(1)));
}

void scatter_nd(Call& call) {
    const auto blocks = block_places(call.shape(0), call.shape(1), call.integers(1), 0);
    Indices places;
    for (const auto start : blocks.starts) {
        for (std::size_t i = 0; i < blocks.block; ++i) {
            places.push_back(start + i);
        }
    }
    scatter_to(call, places);
}

// Writes new entries of a cache along an axis, from a place of each sample on.
void tensor_scatter(Call& call) {
    const auto shape = call.shape(0);
    const auto update = call.shape(1);
    const auto axis = axis_of(call.integer("axis", -2), shape.size());
    require(axis > 0 && update.size() == shape.size(), "the update does not fit the cache");
    const auto mode = call.text("mode", "linear");
    require(mode == "linear" || mode == "circular", "there is no such mode");
    const auto starts = call.has(2) ? call.integers(2) : Integers(size_at(shape, 0), 0);
    require(starts.size() == size_at(shape, 0), "one place per sample is wanted");
    auto strides = strides_of(shape);
    const auto own = strides_of(update);
    Elements made(call.tensor(0));
    const Elements from(call.tensor(1));
    for (std::size_t i = 0; i < from.size(); ++i) {
        std::int64_t place = 0;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            auto at = to_integer(i) / own[d] % update[d];
            if (d == axis) {
                const auto start = starts[to_size(to_integer(i) / own[0])];
                require(start >= 0 && start <= to_integer(most_elements),
                        "a place is out of range");
                at += start;
                at = mode == "circular" && shape[d] > 0 ? at % shape[d] : at;
            }
            require(at < shape[d], "the update reaches beyond the cache");
            place += at * strides[d];
        }
        made.set(to_size(place), from, i);
    }
    call.give(0, made.value(shape));
}

}  // namespace

std::span<const Entry> scatter_ops() {
    static constexpr Entry ops[]{
        {"Scatter", scatter_elements},
        {"ScatterElements", scatter_elements},
        {"ScatterND", scatter_nd},
        {"TensorScatter", tensor_scatter},
    };
    return ops;
}

}  // namespace trocar::reference
