#include "engines/reference/stack.h"

#include <algorithm>

namespace trocar::reference {

Value stacked(const std::vector<Value>& items, std::int64_t axis, const Type& declared) {
    if (items.empty()) {
        // Nothing tells the shape but the declaration.
        Shape shape{0};
        for (const auto& dim : declared.dims.value_or(std::vector<Dim>{})) {
            shape.push_back(std::max<std::int64_t>(dim.value, 0));
        }
        require(bits(declared.dtype) != 0, "the type of an output that nothing wrote is not known");
        return Value::tensor(declared.dtype, shape);
    }
    const auto item = items[0].shape();
    const auto place = axis_of(axis, item.size() + 1);
    auto shape = item;
    shape.insert(shape.begin() + to_integer(place), to_integer(items.size()));
    Elements made(items[0].dtype(), count(shape));
    auto strides = strides_of(shape);
    const auto step = strides[place];
    strides.erase(strides.begin() + to_integer(place));
    for (std::size_t i = 0; i < items.size(); ++i) {
        require(items[i].is_tensor() && items[i].shape() == item,
                "outputs of the rounds differ in shape");
        const Elements from(items[i]);
        const auto places = strided(item, strides, to_integer(i) * step);
        for (std::size_t k = 0; k < places.size(); ++k) {
            made.set(places[k], from, k);
        }
    }
    return made.value(shape);
}

Value joined(std::span<const Value> items, std::int64_t along) {
    require(!items.empty(), "there is nothing to be joined");
    auto shape = items[0].shape();
    const auto axis = axis_of(along, shape.size());
    shape[axis] = 0;
    for (const auto& item : items) {
        require(item.is_tensor(), "only tensors can be joined");
        auto part = item.shape();
        require(part.size() == shape.size(), "the parts differ in rank");
        shape[axis] += part[axis];
        part[axis] = shape[axis];
        require(part == shape, "the parts differ in another dimension than the axis");
        count(shape);
    }
    Elements made(items[0].dtype(), count(shape));
    const auto strides = strides_of(shape);
    std::int64_t start = 0;
    for (const auto& item : items) {
        const Elements from(item);
        const auto places = strided(item.shape(), strides, start);
        for (std::size_t k = 0; k < places.size(); ++k) {
            made.set(places[k], from, k);
        }
        start += item.shape()[axis] * strides[axis];
    }
    return made.value(shape);
}

}  // namespace trocar::reference
