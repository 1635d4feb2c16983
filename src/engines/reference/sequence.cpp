// Sequences and optionals.
#include <algorithm>

#include "engines/reference/call.h"
#include "engines/reference/places.h"
#include "engines/reference/stack.h"

namespace trocar::reference {

namespace {

std::vector<Value> items_of(const Call& call, std::size_t slot) {
    const auto& value = call.value(slot);
    require(value.kind() == Value::Kind::sequence, "a sequence is wanted");
    return value.items();
}

void construct(Call& call) {
    std::vector<Value> items;
    for (std::size_t i = 0; i < call.input_count(); ++i) {
        items.push_back(call.tensor(i));
    }
    call.give(0, Value::sequence(std::move(items)));
}

void empty(Call& call) {
    call.give(0, Value::sequence({}));
}

void at(Call& call) {
    const auto items = items_of(call, 0);
    const auto place = place_in(call.integer(std::size_t{1}), to_integer(items.size()));
    call.give(0, items[to_size(place)]);
}

void insert(Call& call) {
    auto items = items_of(call, 0);
    require(items.size() < most_elements, "the sequence is too long");
    auto place = to_integer(items.size());
    if (call.has(2)) {
        const auto given = call.integer(std::size_t{2});
        place = given == place ? place : place_in(given, place);
    }
    items.insert(items.begin() + place, call.tensor(1));
    call.give(0, Value::sequence(std::move(items)));
}

void erase(Call& call) {
    auto items = items_of(call, 0);
    const auto last = to_integer(items.size());
    require(last > 0, "the sequence is empty");
    const auto place = call.has(1) ? place_in(call.integer(std::size_t{1}), last) : last - 1;
    items.erase(items.begin() + place);
    call.give(0, Value::sequence(std::move(items)));
}

void length(Call& call) {
    const auto size = to_integer(items_of(call, 0).size());
    call.give(0, write<std::int64_t>(DType::i64, {}, Integers{size}));
}

void concat_from_sequence(Call& call) {
    const auto items = items_of(call, 0);
    const auto axis = call.integer("axis", 0);
    const bool fresh = call.integer("new_axis", 0) != 0;
    call.give(0, fresh ? stacked(items, axis, {}) : joined(items, axis));
}

void split_to_sequence(Call& call) {
    auto shape = call.shape(0);
    const auto axis = axis_of(call.integer("axis", 0), shape.size());
    const auto total = shape[axis];
    bool keep = true;
    Integers lengths;
    if (!call.has(1)) {
        lengths.assign(to_size(total), 1);
        keep = call.integer("keepdims", 1) != 0;
    } else if (call.shape(1).empty()) {
        const auto length = call.integer(std::size_t{1});
        require(length > 0, "the parts are empty");
        for (std::int64_t start = 0; start < total; start += std::min(length, total - start)) {
            lengths.push_back(std::min(length, total - start));
        }
    } else {
        lengths = call.integers(1);
    }
    const auto strides = strides_of(shape);
    std::vector<Value> items;
    std::int64_t start = 0;
    for (const auto length : lengths) {
        require(length >= 0 && length <= total - start, "the parts do not fit the dimension");
        shape[axis] = length;
        auto part = take(call.tensor(0), shape, strided(shape, strides, start * strides[axis]));
        items.push_back(keep ? part : reshaped(part, without(shape, {axis})));
        start += length;
    }
    require(start == total, "the parts are not all of the dimension");
    call.give(0, Value::sequence(std::move(items)));
}

void optional(Call& call) {
    call.give(0, call.input_count() > 0 ? call.value(0) : Value{});
}

void has_element(Call& call) {
    call.give(0, scalar(DType::boolean, call.has(0) ? 1 : 0));
}

void get_element(Call& call) {
    require(call.has(0), "the optional has no value");
    call.give(0, call.value(0));
}

}  // namespace

std::span<const Entry> sequence_ops() {
    static constexpr Entry ops[]{
        {"ConcatFromSequence", concat_from_sequence},
        {"Optional", optional},
        {"OptionalGetElement", get_element},
        {"OptionalHasElement", has_element},
        {"SequenceAt", at},
        {"SequenceConstruct", construct},
        {"SequenceEmpty", empty},
        {"SequenceErase", erase},
        {"SequenceInsert", insert},
        {"SequenceLength", length},
        {"SplitToSequence", split_to_sequence},
    };
    return ops;
}

}  // namespace trocar::reference
