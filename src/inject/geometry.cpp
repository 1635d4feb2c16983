#include "inject/geometry.h"

namespace trocar::inject {

namespace {

std::int64_t product(const Shape& shape, std::size_t first) {
    std::int64_t result = 1;
    for (std::size_t i = first; i < shape.size(); ++i) {
        result *= shape[i];
    }
    return result;
}

Geometry one_cell(std::size_t bytes) {
    Geometry g;
    g.cell = bytes;
    g.position_step = g.group_step = g.outer_step = bytes;
    return g;
}

}  // namespace

Geometry geometry(DType dtype, const Shape& shape, const Layout& layout, bool image) {
    const auto element = bits(dtype) / 8;
    const auto count = element_count(shape);
    if (element == 0 || shape.empty() || count == 0) {
        return one_cell(byte_size(dtype, count));
    }
    Geometry g;
    if (!image || shape.size() < 3) {
        g.width = product(shape, 0) / shape.back();
        g.cell = static_cast<std::size_t>(shape.back()) * element;
        g.position_step = g.group_step = g.cell;
        g.outer_step = static_cast<std::size_t>(g.width) * g.cell;
        return g;
    }
    const auto block = layout.block > 0 ? layout.block : 1;
    g.image = true;
    g.outer = shape[0];
    g.groups = shape[1] / block;
    g.height = shape.size() > 3 ? product(shape, 2) / shape.back() : 1;
    g.width = shape.back();
    g.cell = static_cast<std::size_t>(block) * element;
    g.position_step = g.cell;
    g.group_step = static_cast<std::size_t>(g.inner()) * g.cell;
    g.outer_step = static_cast<std::size_t>(g.groups) * g.group_step;
    return g;
}

std::size_t stored_place(std::size_t place, const Shape& shape, const Layout& layout) {
    if (layout.block == 0 || shape.size() < 3) {
        return place;
    }
    const auto channels =
        static_cast<std::size_t>(layout.channels > 0 ? layout.channels : shape[1]);
    const auto inner = static_cast<std::size_t>(product(shape, 2));
    const auto block = static_cast<std::size_t>(layout.block);
    const auto image = place / (channels * inner);
    const auto channel = place / inner % channels;
    const auto padded = static_cast<std::size_t>(shape[1]);
    return ((image * (padded / block) + channel / block) * inner + place % inner) * block +
           channel % block;
}

Shape plain_shape(Shape stored, const FilterLayout& layout) {
    if (layout.outputs > 0 && !stored.empty()) {
        stored[0] = layout.outputs;
    }
    if (layout.inputs > 0 && stored.size() > 1) {
        stored[1] = layout.inputs;
    }
    return stored;
}

std::size_t stored_place(std::size_t place, const Shape& stored, const FilterLayout& layout) {
    if (layout.block == 0 || stored.size() < 3) {
        return place;
    }
    const auto block = static_cast<std::size_t>(layout.block);
    const auto padded = static_cast<std::size_t>(stored[1]);
    const auto inputs = layout.inputs > 0 ? static_cast<std::size_t>(layout.inputs) : padded;
    const auto inner = static_cast<std::size_t>(product(stored, 2));
    const auto output = place / (inputs * inner);
    const auto input = place / inner % inputs;
    const auto tap = place % inner;
    if (!layout.inputs_blocked) {
        return ((output / block * padded + input) * inner + tap) * block + output % block;
    }
    return (((output / block * (padded / block) + input / block) * inner + tap) * block +
            input % block) *
               block +
           output % block;
}

}  // namespace trocar::inject
