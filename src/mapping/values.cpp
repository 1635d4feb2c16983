#include "mapping/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "trocar/error.h"
#include "util/elements.h"
#include "util/text.h"

namespace trocar::mapping {

namespace {

template <class T>
RuleValue list_of(const std::vector<T>& items) {
    RuleValue::List made;
    for (const auto& item : items) {
        if constexpr (std::is_same_v<T, float>) {
            made.emplace_back(static_cast<double>(item));
        } else {
            made.emplace_back(item);
        }
    }
    return RuleValue::list(std::move(made));
}

// The numbers of a list of lists in order, with the shape in `shape`.
void flatten(const RuleValue& value, std::size_t depth, Shape& shape,
             std::vector<double>& numbers) {
    if (const auto* items = value.items()) {
        if (depth == shape.size()) {
            shape.push_back(static_cast<std::int64_t>(items->size()));
        }
        if (depth >= shape.size() || shape[depth] != static_cast<std::int64_t>(items->size()) ||
            depth > 8) {
            throw Error(Fault::input, "the lists that make a constant have different lengths");
        }
        for (const auto& item : *items) {
            flatten(item, depth + 1, shape, numbers);
        }
        return;
    }
    if (depth != shape.size()) {
        throw Error(Fault::input, "a constant is made of numbers and lists at the same depth");
    }
    if (const auto* integer = value.integer()) {
        numbers.push_back(static_cast<double>(*integer));
    } else if (const auto* number = value.number()) {
        numbers.push_back(*number);
    } else if (const auto* truth = value.truth()) {
        numbers.push_back(*truth ? 1 : 0);
    } else {
        throw Error(Fault::input, fmt::format("a constant is not made of {}", value.kind()));
    }
}

}  // namespace

RuleValue RuleValue::integers(const std::vector<std::int64_t>& items) {
    return list_of(items);
}

const RuleValue::List* RuleValue::items() const {
    const auto* held = std::get_if<std::shared_ptr<const List>>(&what);
    return held == nullptr ? nullptr : held->get();
}

const char* RuleValue::kind() const {
    constexpr const char* kinds[] = {"nothing", "a truth", "an integer", "a number",
                                     "a text",  "a list",  "a tensor",   "a constant"};
    return kinds[what.index()];
}

std::string RuleValue::shown() const {
    if (const auto* value = truth()) {
        return *value ? "true" : "false";
    }
    if (const auto* value = integer()) {
        return fmt::format("{}", *value);
    }
    if (const auto* value = number()) {
        return fmt::format("{}", *value);
    }
    if (const auto* value = text()) {
        return *value;
    }
    if (const auto* list = items()) {
        std::vector<std::string> texts;
        for (const auto& item : *list) {
            texts.push_back(item.shown());
        }
        return fmt::format("[{}]", join(texts, ", "));
    }
    return kind();
}

bool operator==(const RuleValue& a, const RuleValue& b) {
    const auto number = [](const RuleValue& value) -> const double* { return value.number(); };
    if ((number(a) != nullptr || number(b) != nullptr) && a.what.index() != b.what.index()) {
        const auto widened = [](const RuleValue& value) {
            return value.integer() != nullptr ? RuleValue(static_cast<double>(*value.integer()))
                                              : value;
        };
        const auto left = widened(a);
        const auto right = widened(b);
        return left.number() != nullptr && right.number() != nullptr &&
               *left.number() == *right.number();
    }
    if (a.what.index() != b.what.index() || a.tensor() != nullptr || a.constant() != nullptr) {
        return false;
    }
    if (const auto* items = a.items()) {
        return std::equal(items->begin(), items->end(), b.items()->begin(), b.items()->end());
    }
    return a.is_none() || (a.truth() != nullptr && *a.truth() == *b.truth()) ||
           (a.integer() != nullptr && *a.integer() == *b.integer()) ||
           (a.number() != nullptr && *a.number() == *b.number()) ||
           (a.text() != nullptr && *a.text() == *b.text());
}

RuleValue value_of(const Attribute& attribute) {
    return std::visit(
        [](const auto& value) -> RuleValue {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::string> ||
                          std::is_same_v<T, Constant>) {
                return value;
            } else if constexpr (std::is_same_v<T, float>) {
                return static_cast<double>(value);
            } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>> ||
                                 std::is_same_v<T, std::vector<float>> ||
                                 std::is_same_v<T, std::vector<std::string>>) {
                return list_of(value);
            } else {
                return {};
            }
        },
        attribute.value);
}

Attribute::Value attribute_of(const RuleValue& value) {
    if (const auto* truth = value.truth()) {
        return std::int64_t{*truth ? 1 : 0};
    }
    if (const auto* integer = value.integer()) {
        return *integer;
    }
    if (const auto* number = value.number()) {
        return static_cast<float>(*number);
    }
    if (const auto* text = value.text()) {
        return *text;
    }
    if (const auto* constant = value.constant()) {
        return *constant;
    }
    const auto* items = value.items();
    if (items == nullptr) {
        return {};
    }
    const auto all = [&](auto&& test) { return std::all_of(items->begin(), items->end(), test); };
    if (all([](const RuleValue& item) { return item.integer() != nullptr; })) {
        std::vector<std::int64_t> list;
        for (const auto& item : *items) {
            list.push_back(*item.integer());
        }
        return list;
    }
    if (all([](const RuleValue& item) { return item.text() != nullptr; })) {
        std::vector<std::string> list;
        for (const auto& item : *items) {
            list.push_back(*item.text());
        }
        return list;
    }
    if (all([](const RuleValue& item) {
            return item.integer() != nullptr || item.number() != nullptr;
        })) {
        std::vector<float> list;
        for (const auto& item : *items) {
            list.push_back(item.number() != nullptr ? static_cast<float>(*item.number())
                                                    : static_cast<float>(*item.integer()));
        }
        return list;
    }
    return {};
}

RuleValue elements(const Constant& constant) {
    if (constant.is_string()) {
        return list_of(constant.string_values());
    }
    const auto dense = constant.is_sparse() ? densify(constant) : constant;
    if (dense.dtype() == DType::i64) {  // not every one is a double
        std::vector<std::int64_t> integers(dense.element_count());
        std::memcpy(integers.data(), dense.bytes().data(), dense.bytes().size());
        return list_of(integers);
    }
    const auto numbers = numbers_of(dense);
    const bool whole = is_integer(dense.dtype());
    RuleValue::List items;
    for (const double number : numbers) {
        if (dense.dtype() == DType::boolean) {
            items.emplace_back(number != 0);
        } else if (whole) {
            items.emplace_back(static_cast<std::int64_t>(number));
        } else {
            items.emplace_back(number);
        }
    }
    return RuleValue::list(std::move(items));
}

Constant constant_of(const RuleValue& value, DType dtype) {
    Shape shape;
    std::vector<double> numbers;
    flatten(value, 0, shape, numbers);
    if (dtype == DType::i64 && shape.size() < 2) {
        const auto items = value.items() != nullptr ? *value.items() : RuleValue::List{value};
        std::vector<std::int64_t> integers;
        for (std::size_t i = 0; i < items.size(); ++i) {
            integers.push_back(items[i].integer() != nullptr
                                   ? *items[i].integer()
                                   : static_cast<std::int64_t>(numbers[i]));
        }
        return Constant::of(dtype, shape, integers);
    }
    return constant_of_numbers(dtype, shape, numbers);
}

Constant each(const Constant& constant, const std::function<double(double)>& f) {
    return each(constant, constant, [&](double x, double) { return f(x); });
}

Constant each(const Constant& a, const Constant& b,
              const std::function<double(double, double)>& f) {
    if (!is_numeric(a.dtype()) || !is_numeric(b.dtype())) {
        throw Error(Fault::input, "only numbers can be computed with");
    }
    const auto x = numbers_of(a);
    const auto y = numbers_of(b);
    const auto& longer = a.shape().size() >= b.shape().size() ? a.shape() : b.shape();
    const auto rank = longer.size();
    // Sizes and steps of both along each axis, from the last one; a size of 1 is met again.
    const auto sizes = [rank](const Constant& one) {
        auto shape = one.shape();
        shape.insert(shape.begin(), rank - shape.size(), 1);
        return shape;
    };
    const auto steps = [rank](const Shape& shape) {
        std::vector<std::size_t> made(rank);
        std::size_t step = 1;
        for (auto i = rank; i-- > 0;) {
            made[i] = shape[i] == 1 ? 0 : step;
            step *= static_cast<std::size_t>(shape[i]);
        }
        return made;
    };
    const auto shape_x = sizes(a);
    const auto shape_y = sizes(b);
    Shape shape(rank);
    for (std::size_t i = 0; i < rank; ++i) {
        if (shape_x[i] != shape_y[i] && shape_x[i] != 1 && shape_y[i] != 1) {
            throw Error(Fault::input,
                        fmt::format("constants of the shapes {} and {} cannot be computed with",
                                    shape_text(a.shape()), shape_text(b.shape())));
        }
        shape[i] = shape_x[i] == 1 ? shape_y[i] : shape_x[i];
    }
    const auto step_x = steps(shape_x);
    const auto step_y = steps(shape_y);
    std::vector<double> made(element_count(shape));
    std::vector<std::int64_t> index(rank, 0);
    std::size_t at_x = 0;
    std::size_t at_y = 0;
    for (auto& number : made) {
        number = f(x[at_x], y[at_y]);
        for (auto i = rank; i-- > 0;) {
            at_x += step_x[i];
            at_y += step_y[i];
            if (++index[i] < shape[i]) {
                break;
            }
            at_x -= step_x[i] * static_cast<std::size_t>(shape[i]);
            at_y -= step_y[i] * static_cast<std::size_t>(shape[i]);
            index[i] = 0;
        }
    }
    // The type is that of the larger one.
    return constant_of_numbers(x.size() >= y.size() ? a.dtype() : b.dtype(), shape, made);
}

Constant permuted(const Constant& constant, const std::vector<std::int64_t>& perm) {
    const auto dense = constant.is_sparse() ? densify(constant) : constant;
    const auto& shape = dense.shape();
    const auto rank = shape.size();
    std::vector<bool> seen(rank, false);
    for (const auto axis : perm) {
        if (perm.size() != rank || axis < 0 || axis >= static_cast<std::int64_t>(rank) ||
            seen[static_cast<std::size_t>(axis)]) {
            throw Error(Fault::input, fmt::format("[{}] is no order of the {} axes of a constant",
                                                  join(perm, ", "), rank));
        }
        seen[static_cast<std::size_t>(axis)] = true;
    }
    if (bits(dense.dtype()) == 0 || bits(dense.dtype()) % 8 != 0) {
        throw Error(Fault::unsupported, fmt::format("the axes of a constant of {} cannot be put in "
                                                    "another order",
                                                    name(dense.dtype())));
    }
    const auto width = bits(dense.dtype()) / 8;
    std::vector<std::size_t> from_strides(rank, width);
    for (std::size_t i = rank; i-- > 1;) {
        from_strides[i - 1] = from_strides[i] * static_cast<std::size_t>(shape[i]);
    }
    Shape to(rank);
    std::vector<std::size_t> strides(rank);
    for (std::size_t i = 0; i < rank; ++i) {
        to[i] = shape[static_cast<std::size_t>(perm[i])];
        strides[i] = from_strides[static_cast<std::size_t>(perm[i])];
    }
    const auto bytes = dense.bytes();
    std::vector<std::byte> made(bytes.size());
    std::vector<std::int64_t> place(rank, 0);
    std::size_t from = 0;
    for (std::size_t at = 0; at < made.size(); at += width) {
        std::memcpy(made.data() + at, bytes.data() + from, width);
        for (std::size_t i = rank; i-- > 0;) {
            from += strides[i];
            if (++place[i] < to[i]) {
                break;
            }
            from -= strides[i] * static_cast<std::size_t>(to[i]);
            place[i] = 0;
        }
    }
    return Constant::copy(dense.dtype(), to, made);
}

}  // namespace trocar::mapping
