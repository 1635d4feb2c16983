// Ops that make tensors from attributes and sizes.
#include <fmt/format.h>

#include <cmath>

#include "engines/reference/call.h"
#include "engines/reference/cast.h"

namespace trocar::reference {

namespace {

template <class T>
const T* held(const Call& call, const char* name) {
    const auto* attribute = call.attribute(name);
    return attribute != nullptr ? std::get_if<T>(&attribute->value) : nullptr;
}

Value constant_value(const Call& call) {
    for (const char* name : {"value", "sparse_value"}) {
        if (const auto* tensor = held<Constant>(call, name)) {
            count(tensor->shape());
            return Value::of(*tensor);
        }
    }
    if (const auto* number = held<float>(call, "value_float")) {
        return scalar(DType::f32, static_cast<double>(*number));
    }
    if (const auto* integer = held<std::int64_t>(call, "value_int")) {
        return write<std::int64_t>(DType::i64, {}, Integers{*integer});
    }
    if (const auto* text = held<std::string>(call, "value_string")) {
        return Value::strings({}, {*text});
    }
    if (const auto* numbers = held<std::vector<float>>(call, "value_floats")) {
        return write<double>(DType::f32, {to_integer(numbers->size())},
                             Numbers(numbers->begin(), numbers->end()));
    }
    if (const auto* integers = held<Integers>(call, "value_ints")) {
        return integers_value(*integers);
    }
    if (const auto* texts = held<std::vector<std::string>>(call, "value_strings")) {
        return Value::strings({to_integer(texts->size())}, *texts);
    }
    fail("the constant has no value");
}

void constant(Call& call) {
    call.give(0, constant_value(call));
}

void constant_of_shape(Call& call) {
    const auto shape = call.integers(0);
    const auto total = count(shape);
    const auto* given = held<Constant>(call, "value");
    const auto value = given != nullptr ? Value::of(*given) : scalar(DType::f32, 0);
    require(value.element_count() == 1, "the value is not one element");
    const Elements one(value);
    Elements made(value.dtype(), total);
    for (std::size_t i = 0; i < total; ++i) {
        made.set(i, one, 0);
    }
    call.give(0, made.value(shape));
}

void range(Call& call) {
    const auto dtype = call.dtype(0);
    require(call.dtype(1) == dtype && call.dtype(2) == dtype, "the inputs are of different types");
    if (is_float(dtype)) {
        const double start = call.number(0);
        const double step = call.number(2);
        const double steps = std::max(std::ceil((call.number(1) - start) / step), 0.0);
        require(steps <= static_cast<double>(most_elements), "the range has too many elements");
        Numbers made(static_cast<std::size_t>(steps));
        for (std::size_t i = 0; i < made.size(); ++i) {
            made[i] = start + static_cast<double>(i) * step;
        }
        call.give(0, dtype, {to_integer(made.size())}, made);
        return;
    }
    const auto start = call.integer(0);
    const auto limit = call.integer(1);
    const auto step = call.integer(2);
    require(step != 0, "the step of the range is zero");
    const bool up = step > 0;
    const auto distance = [](std::int64_t low, std::int64_t high) {
        return high > low ? static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)
                          : std::uint64_t{0};
    };
    const auto room = up ? distance(start, limit) : distance(limit, start);
    const auto stride =
        up ? static_cast<std::uint64_t>(step) : std::uint64_t{0} - static_cast<std::uint64_t>(step);
    const auto steps = room / stride + (room % stride != 0 ? 1 : 0);
    require(steps <= most_elements, "the range has too many elements");
    Integers made(steps);
    for (std::size_t i = 0; i < made.size(); ++i) {
        made[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                            static_cast<std::uint64_t>(step) * i);
    }
    call.give(0, dtype, {to_integer(made.size())}, made);
}

void eye_like(Call& call) {
    const auto shape = call.shape(0);
    require(shape.size() == 2, "a matrix is wanted");
    const auto dtype =
        static_cast<DType>(call.integer("dtype", static_cast<std::int64_t>(call.dtype(0))));
    const auto shift = call.integer("k", 0);
    Numbers made(count(shape), 0);
    for (std::int64_t row = 0; row < shape[0]; ++row) {
        if (shift >= -row && shift < shape[1] - row) {
            made[to_size(row * shape[1] + row + shift)] = 1;
        }
    }
    call.give(0, dtype, shape, made);
}

void one_hot(Call& call) {
    const auto depth_at = call.numbers(1);
    require(depth_at.size() == 1, "the depth is not one number");
    require(depth_at[0] >= 0 && depth_at[0] <= static_cast<double>(most_elements),
            "the depth is out of range");
    const auto depth = static_cast<std::int64_t>(depth_at[0]);
    const Elements values(call.tensor(2));
    require(values.size() == 2, "two values are wanted");
    auto shape = call.shape(0);
    const auto axis = axis_of(call.integer("axis", -1), shape.size() + 1);
    const auto indices = call.numbers(0);
    shape.insert(shape.begin() + to_integer(axis), depth);
    Elements made(values.dtype(), count(shape));
    const auto lines = lines_along(shape, {axis});
    for (std::size_t l = 0; l < lines.starts.size(); ++l) {
        const auto wanted = indices[l];
        const auto hot = wanted < 0 ? wanted + static_cast<double>(depth) : wanted;
        for (std::size_t i = 0; i < lines.steps.size(); ++i) {
            made.set(lines.starts[l] + lines.steps[i], values,
                     static_cast<double>(i) == hot ? 1 : 0);
        }
    }
    call.give(0, made.value(shape));
}

void shape_of(Call& call) {
    const auto shape = call.shape(0);
    const auto rank = to_integer(shape.size());
    const auto place = [&](const char* name, std::int64_t otherwise) {
        const auto at = call.integer(name, otherwise);
        return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    const auto start = place("start", 0);
    const auto end = std::max(place("end", rank), start);
    call.give(0, integers_value(Integers(shape.begin() + start, shape.begin() + end)));
}

void size_of(Call& call) {
    const auto total = to_integer(call.tensor(0).element_count());
    call.give(0, write<std::int64_t>(DType::i64, {}, Integers{total}));
}

void identity(Call& call) {
    call.give(0, call.value(0));
}

// Inference only: the input as it is, and a mask of ones.
void dropout(Call& call) {
    if (call.has(2) && call.integer(2) != 0 && (!call.has(1) || call.number(1) != 0)) {
        fail("training is not for the reference engine: it would be random");
    }
    call.give(0, call.tensor(0));
    if (call.wants(1)) {
        const auto shape = call.shape(0);
        const auto mask = call.opset() < 10 ? call.dtype(0) : DType::boolean;
        call.give(1, mask, shape, Numbers(count(shape), 1));
    }
}

}  // namespace

std::span<const Entry> creation_ops() {
    static constexpr Entry ops[]{
        {"Constant", constant}, {"ConstantOfShape", constant_of_shape},
        {"Dropout", dropout},   {"EyeLike", eye_like},
        {"Identity", identity}, {"OneHot", one_hot},
        {"Range", range},       {"Shape", shape_of},
        {"Size", size_of},
    };
    return ops;
}

}  // namespace trocar::reference
