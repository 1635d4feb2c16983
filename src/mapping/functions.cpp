#include "mapping/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "trocar/error.h"
#include "util/elements.h"

namespace trocar::mapping {

namespace {

using Arguments = std::span<const RuleValue>;

[[noreturn]] void wrong(const std::string& sentence) {
    throw Error(Fault::input, sentence);
}
std::int64_t integer(const RuleValue& value) {
    if (const auto* held = value.integer()) {
        return *held;
    }
    if (const auto* held = value.truth()) {
        return *held ? 1 : 0;
    }
    wrong(fmt::format("an integer is wanted, not {}", value.kind()));
}
double number(const RuleValue& value) {
    if (const auto* held = value.number()) {
        return *held;
    }
    return static_cast<double>(integer(value));
}
const RuleValue::List& list(const RuleValue& value) {
    if (const auto* held = value.items()) {
        return *held;
    }
    wrong(fmt::format("a list is wanted, not {}", value.kind()));
}
std::vector<std::int64_t> integers(const RuleValue& value) {
    std::vector<std::int64_t> all;
    for (const auto& item : list(value)) {
        all.push_back(integer(item));
    }
    return all;
}
const std::string& text(const RuleValue& value) {
    if (const auto* held = value.text()) {
        return *held;
    }
    wrong(fmt::format("a text is wanted, not {}", value.kind()));
}
DType dtype_named(const RuleValue& value) {
    const auto found = parse_dtype(text(value));
    if (!found) {
        wrong(fmt::format("there is no element type '{}'", text(value)));
    }
    return *found;
}

// --- About tensors ---

const std::vector<Dim>& dims(const Type& type, const RuleValue& tensor, const Facts& facts) {
    if (!type.dims) {
        throw Declined{fmt::format("the rank of {} is not known", facts.shown(tensor))};
    }
    return *type.dims;
}
RuleValue rank(Arguments a, const Facts& facts) {
    const auto type = facts.type(a[0]);
    return static_cast<std::int64_t>(dims(type, a[0], facts).size());
}
RuleValue shape(Arguments a, const Facts& facts) {
    const auto type = facts.type(a[0]);
    RuleValue::List all;
    for (const auto& dim : dims(type, a[0], facts)) {
        if (dim.value < 0) {
            throw Declined{fmt::format("the shape of {} is not known", facts.shown(a[0]))};
        }
        all.emplace_back(dim.value);
    }
    return RuleValue::list(std::move(all));
}
RuleValue dim(Arguments a, const Facts& facts) {
    const auto type = facts.type(a[0]);
    const auto& all = dims(type, a[0], facts);
    auto at = integer(a[1]);
    at += at < 0 ? static_cast<std::int64_t>(all.size()) : 0;
    if (at < 0 || at >= static_cast<std::int64_t>(all.size())) {
        throw Declined{fmt::format("{} has {} axes", facts.shown(a[0]), all.size())};
    }
    if (all[static_cast<std::size_t>(at)].value < 0) {
        throw Declined{fmt::format("axis {} of {} is not known", at, facts.shown(a[0]))};
    }
    return all[static_cast<std::size_t>(at)].value;
}
RuleValue known(Arguments a, const Facts& facts) {
    const auto type = facts.type(a[0]);
    if (a.size() == 1) {
        return type.shape().has_value();
    }
    const auto count = type.dims ? static_cast<std::int64_t>(type.dims->size()) : 0;
    const auto at = integer(a[1]) + (integer(a[1]) < 0 ? count : 0);
    return at >= 0 && at < count && (*type.dims)[static_cast<std::size_t>(at)].value >= 0;
}
RuleValue has_rank(Arguments a, const Facts& facts) {
    return facts.type(a[0]).dims.has_value();
}
// Of a list of tensors: that of its tensors.
DType element_type(const Type& type) {
    return type.kind == Type::Kind::sequence && !type.element.empty() ? type.element[0].dtype
                                                                      : type.dtype;
}
RuleValue dtype(Arguments a, const Facts& facts) {
    return name(element_type(facts.type(a[0])));
}
RuleValue has_dtype(Arguments a, const Facts& facts) {
    return element_type(facts.type(a[0])) != DType::undefined;
}
RuleValue is_sequence(Arguments a, const Facts& facts) {
    return facts.type(a[0]).kind == Type::Kind::sequence;
}
RuleValue is_constant(Arguments a, const Facts& facts) {
    return a[0].constant() != nullptr || facts.constant(a[0]) != nullptr;
}
const Constant& constant(const RuleValue& value, const Facts& facts) {
    if (const auto* held = value.constant()) {
        return *held;
    }
    if (const auto* held = facts.constant(value)) {
        return *held;
    }
    if (value.tensor() == nullptr) {
        wrong(fmt::format("a constant is wanted, not {}", value.kind()));
    }
    throw Declined{fmt::format("{} is not a constant", facts.shown(value))};
}
RuleValue elements_of(Arguments a, const Facts& facts) {
    const auto& held = constant(a[0], facts);
    constexpr std::size_t most = 1U << 20U;
    if (held.element_count() > most) {
        throw Declined{
            fmt::format("{} has too many elements to be read by a rule", facts.shown(a[0]))};
    }
    return elements(held);
}
RuleValue element(Arguments a, const Facts& facts) {
    const auto all = elements_of(a, facts);
    if (all.items()->size() != 1) {
        throw Declined{
            fmt::format("{} has {} elements, not one", facts.shown(a[0]), all.items()->size())};
    }
    return all.items()->front();
}
RuleValue is_quantized(Arguments a, const Facts& facts) {
    return facts.quantization(a[0]) != nullptr;
}
RuleValue scales(Arguments a, const Facts& facts) {
    RuleValue::List all;
    if (const auto* held = facts.quantization(a[0])) {
        for (const float scale : held->scales) {
            all.emplace_back(static_cast<double>(scale));
        }
    }
    return RuleValue::list(std::move(all));
}
RuleValue zero_points(Arguments a, const Facts& facts) {
    const auto* held = facts.quantization(a[0]);
    return held == nullptr ? RuleValue::list({}) : RuleValue::integers(held->zero_points);
}
RuleValue quantized_axis(Arguments a, const Facts& facts) {
    const auto* held = facts.quantization(a[0]);
    return held == nullptr ? RuleValue() : RuleValue(std::int64_t{held->axis});
}

// --- Constants ---

RuleValue make_constant(Arguments a, const Facts&) {
    return constant_of(a[0], dtype_named(a[1]));
}
template <DType dtype>
RuleValue make_of(Arguments a, const Facts&) {
    return constant_of(a[0], dtype);
}
RuleValue value(Arguments a, const Facts& facts) {
    return constant(a[0], facts);
}
RuleValue full(Arguments a, const Facts&) {
    const auto to = dtype_named(a[2]);
    const auto sizes = integers(a[1]);
    const auto count = element_count(sizes);
    if (count > (std::size_t{1} << 26U)) {
        wrong("a constant of one number may have 2^26 elements at most");
    }
    return constant_of_numbers(to, sizes, std::vector<double>(count, number(a[0])));
}
RuleValue permute(Arguments a, const Facts& facts) {
    return permuted(constant(a[0], facts), integers(a[1]));
}
RuleValue reshape(Arguments a, const Facts& facts) {
    const auto held = constant(a[0], facts);
    auto sizes = integers(a[1]);
    const auto hole = std::find(sizes.begin(), sizes.end(), -1);
    if (hole != sizes.end()) {
        *hole = 1;
        const auto others = static_cast<std::int64_t>(element_count(sizes));
        *hole = others == 0 ? 0 : static_cast<std::int64_t>(held.element_count()) / others;
    }
    const auto dense = held.is_sparse() ? densify(held) : held;
    if (element_count(sizes) != dense.element_count()) {
        throw Declined{
            fmt::format("{} cannot have the shape {}", facts.shown(a[0]), shape_text(sizes))};
    }
    return Constant::view(dense.dtype(), sizes, dense.bytes(), dense.owner());
}
RuleValue cast(Arguments a, const Facts& facts) {
    const auto held = constant(a[0], facts);
    const auto to = dtype_named(a[1]);
    const auto dense = held.is_sparse() ? densify(held) : held;
    if (dense.dtype() == to) {
        return dense;
    }
    return constant_of_numbers(to, dense.shape(), numbers_of(dense));
}

// --- Numbers and lists ---

RuleValue length(Arguments a, const Facts&) {
    return static_cast<std::int64_t>(list(a[0]).size());
}
RuleValue range_of(Arguments a, const Facts&) {
    const auto from = a.size() == 1 ? 0 : integer(a[0]);
    const auto to = integer(a[a.size() - 1]);
    if (to - from > 100'000) {
        wrong("a range may have 100,000 items at most");
    }
    RuleValue::List all;
    for (auto i = from; i < to; ++i) {
        all.emplace_back(i);
    }
    return RuleValue::list(std::move(all));
}
template <class F>
RuleValue folded(Arguments a, F&& f) {
    const auto& items = a.size() == 1 && a[0].items() != nullptr
                            ? *a[0].items()
                            : RuleValue::List(a.begin(), a.end());
    if (items.empty()) {
        wrong("of an empty list there is no such number");
    }
    const bool whole = std::all_of(items.begin(), items.end(), [](const RuleValue& item) {
        return item.integer() != nullptr || item.truth() != nullptr;
    });
    if (whole) {
        auto all = integer(items[0]);
        for (std::size_t i = 1; i < items.size(); ++i) {
            all = f(all, integer(items[i]));
        }
        return all;
    }
    double all = number(items[0]);
    for (std::size_t i = 1; i < items.size(); ++i) {
        all = f(all, number(items[i]));
    }
    return all;
}
RuleValue least(Arguments a, const Facts&) {
    return folded(a, [](auto x, auto y) { return std::min(x, y); });
}
RuleValue most(Arguments a, const Facts&) {
    return folded(a, [](auto x, auto y) { return std::max(x, y); });
}
template <class T>
T checked_product(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
        T out = 0;
        if (__builtin_mul_overflow(x, y, &out)) {
            wrong("a product is too large");
        }
        return out;
    } else {
        return x * y;
    }
}
template <class T>
T checked_sum(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
        T out = 0;
        if (__builtin_add_overflow(x, y, &out)) {
            wrong("a sum is too large");
        }
        return out;
    } else {
        return x + y;
    }
}
RuleValue product(Arguments a, const Facts&) {
    if (a[0].items() != nullptr && a[0].items()->empty()) {
        return std::int64_t{1};
    }
    return folded(a, [](auto x, auto y) { return checked_product(x, y); });
}
RuleValue sum(Arguments a, const Facts&) {
    if (a[0].items() != nullptr && a[0].items()->empty()) {
        return std::int64_t{0};
    }
    return folded(a, [](auto x, auto y) { return checked_sum(x, y); });
}
RuleValue ceil_div(Arguments a, const Facts&) {
    const auto by = integer(a[1]);
    if (by <= 0) {
        wrong("ceil_div divides by a positive number");
    }
    const auto value = integer(a[0]);
    return value / by + (value % by > 0 ? 1 : 0);
}
RuleValue reversed(Arguments a, const Facts&) {
    auto items = list(a[0]);
    std::reverse(items.begin(), items.end());
    return RuleValue::list(std::move(items));
}
RuleValue index_of(Arguments a, const Facts&) {
    const auto& items = list(a[0]);
    const auto at = std::find(items.begin(), items.end(), a[1]);
    return at == items.end() ? RuleValue() : RuleValue(std::int64_t{at - items.begin()});
}
// The places at which a list is true.
RuleValue where(Arguments a, const Facts&) {
    RuleValue::List places;
    const auto& items = list(a[0]);
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (integer(items[i]) != 0) {
            places.emplace_back(static_cast<std::int64_t>(i));
        }
    }
    return RuleValue::list(std::move(places));
}
// A list with values in the places of a mark, in order.
RuleValue filled(Arguments a, const Facts&) {
    RuleValue::List made = list(a[0]);
    const auto& values = list(a[2]);
    std::size_t next = 0;
    for (auto& item : made) {
        if (item == a[1]) {
            if (next == values.size()) {
                wrong("there are more marks than values");
            }
            item = values[next++];
        }
    }
    return RuleValue::list(std::move(made));
}
RuleValue square_root(Arguments a, const Facts&) {
    if (const auto* held = a[0].constant()) {
        return each(*held, [](double x) { return std::sqrt(x); });
    }
    return std::sqrt(number(a[0]));
}
RuleValue real(Arguments a, const Facts&) {
    return number(a[0]);
}
RuleValue is_tensor(Arguments a, const Facts&) {
    return a[0].tensor() != nullptr || a[0].constant() != nullptr;
}
RuleValue is_list(Arguments a, const Facts&) {
    return a[0].items() != nullptr;
}
RuleValue is_whole(Arguments a, const Facts&) {
    return a[0].integer() != nullptr || a[0].truth() != nullptr;
}
RuleValue whole(Arguments a, const Facts&) {
    if (const auto* digits = a[0].text()) {
        std::int64_t number = 0;
        const auto* end = digits->data() + digits->size();
        const auto read = std::from_chars(digits->data(), end, number);
        if (read.ec != std::errc{} || read.ptr != end) {
            wrong(fmt::format("'{}' is no whole number", *digits));
        }
        return number;
    }
    return a[0].integer() != nullptr ? a[0] : RuleValue(static_cast<std::int64_t>(number(a[0])));
}
RuleValue float_type(Arguments a, const Facts&) {
    return is_float(dtype_named(a[0]));
}
RuleValue integer_type(Arguments a, const Facts&) {
    return is_integer(dtype_named(a[0]));
}
// The number that ONNX has for an element type.
RuleValue type_number(Arguments a, const Facts&) {
    return static_cast<std::int64_t>(dtype_named(a[0]));
}
RuleValue joined(Arguments a, const Facts& facts) {
    std::string all;
    for (const auto& one : a) {
        all += one.tensor() != nullptr ? facts.shown(one) : one.shown();
    }
    return all;
}
RuleValue decline(Arguments a, const Facts& facts) {
    throw Declined{joined(a, facts).shown()};
}
RuleValue typed(Arguments a, const Facts& facts) {
    const auto* tensor = a[0].tensor();
    if (tensor == nullptr || tensor->made == TensorId::none) {
        wrong("only what an op makes can be given a type");
    }
    facts.builder->target().set_type(tensor->made, Type::tensor(dtype_named(a[1]), integers(a[2])));
    return a[0];
}

// How the integers of a tensor stand for real numbers: scales, zero points, and their axis.
RuleValue scaled(Arguments a, const Facts& facts) {
    const auto* tensor = a[0].tensor();
    if (tensor == nullptr) {
        wrong("only a tensor can be given scales");
    }
    const auto made =
        tensor->made != TensorId::none ? tensor->made : facts.builder->tensor(tensor->source, true);
    Quantization how;
    for (const auto& scale : list(a[1])) {
        how.scales.push_back(static_cast<float>(number(scale)));
    }
    how.zero_points = integers(a[2]);
    how.zero_points.resize(how.scales.size(), 0);
    how.axis = static_cast<int>(integer(a[3]));
    auto& graph = facts.builder->target();
    const auto* const held = quantization_of(graph.tensor(made));
    if (held != nullptr && (held->scales != how.scales || held->zero_points != how.zero_points)) {
        throw Declined{"the same integers stand for other numbers elsewhere"};
    }
    graph.set_quantization(made, std::make_shared<const Quantization>(std::move(how)));
    return TensorRef{TensorId::none, made};
}

struct Function {
    const char* name;
    std::size_t least;
    std::size_t most;
    RuleValue (*call)(Arguments, const Facts&);
};
constexpr std::size_t any = 64;
constexpr Function functions[] = {
    {"rank", 1, 1, rank},
    {"shape", 1, 1, shape},
    {"dim", 2, 2, dim},
    {"known", 1, 2, known},
    {"has_rank", 1, 1, has_rank},
    {"dtype", 1, 1, dtype},
    {"has_dtype", 1, 1, has_dtype},
    {"is_sequence", 1, 1, is_sequence},
    {"is_constant", 1, 1, is_constant},
    {"elements", 1, 1, elements_of},
    {"element", 1, 1, element},
    {"is_quantized", 1, 1, is_quantized},
    {"scales", 1, 1, scales},
    {"zero_points", 1, 1, zero_points},
    {"quantized_axis", 1, 1, quantized_axis},
    {"constant", 2, 2, make_constant},
    {"f32", 1, 1, make_of<DType::f32>},
    {"f16", 1, 1, make_of<DType::f16>},
    {"i32", 1, 1, make_of<DType::i32>},
    {"i64", 1, 1, make_of<DType::i64>},
    {"boolean", 1, 1, make_of<DType::boolean>},
    {"value", 1, 1, value},
    {"full", 3, 3, full},
    {"permute", 2, 2, permute},
    {"reshape", 2, 2, reshape},
    {"cast", 2, 2, cast},
    {"len", 1, 1, length},
    {"range", 1, 2, range_of},
    {"min", 1, any, least},
    {"max", 1, any, most},
    {"sum", 1, any, sum},
    {"product", 1, any, product},
    {"ceil_div", 2, 2, ceil_div},
    {"reverse", 1, 1, reversed},
    {"index_of", 2, 2, index_of},
    {"where", 1, 1, where},
    {"filled", 3, 3, filled},
    {"is_tensor", 1, 1, is_tensor},
    {"is_list", 1, 1, is_list},
    {"sqrt", 1, 1, square_root},
    {"real", 1, 1, real},
    {"whole", 1, 1, whole},
    {"is_whole", 1, 1, is_whole},
    {"is_float", 1, 1, float_type},
    {"is_integer", 1, 1, integer_type},
    {"type_number", 1, 1, type_number},
    {"text", 1, any, joined},
    {"decline", 1, any, decline},
    {"typed", 3, 3, typed},
    {"scaled", 4, 4, scaled},
};

const Function* find(const std::string& name) {
    const auto* const at = std::find_if(std::begin(functions), std::end(functions),
                                        [&](const Function& one) { return name == one.name; });
    return at == std::end(functions) ? nullptr : at;
}

}  // namespace

Type Facts::type(const RuleValue& tensor) const {
    if (const auto* held = tensor.constant()) {
        return Type::tensor(held->dtype(), held->shape());
    }
    const auto* ref = tensor.tensor();
    if (ref == nullptr || builder == nullptr) {
        wrong(fmt::format("a tensor is wanted, not {}", tensor.kind()));
    }
    if (ref->source == TensorId::none) {
        return builder->target().tensor(ref->made).type;
    }
    auto type = builder->source().tensor(ref->source).type;
    if (!raw && quantization(tensor) != nullptr) {
        type.dtype = DType::f32;
    }
    return type;
}

const Quantization* Facts::quantization(const RuleValue& tensor) const {
    const auto* ref = tensor.tensor();
    return ref == nullptr || ref->source == TensorId::none || builder == nullptr
               ? nullptr
               : quantization_of(builder->source().tensor(ref->source));
}

const Constant* Facts::constant(const RuleValue& tensor) const {
    const auto* ref = tensor.tensor();
    if (ref == nullptr || builder == nullptr) {
        return nullptr;
    }
    // Of the source, or what a rule made of one that the source computes.
    const bool remade = ref->source != TensorId::none &&
                        !builder->source().tensor(ref->source).constant &&
                        builder->has(ref->source);
    const auto& facts = remade ? builder->target().tensor(builder->tensor(ref->source, true))
                        : ref->source != TensorId::none ? builder->source().tensor(ref->source)
                                                        : builder->target().tensor(ref->made);
    const bool hidden = ref->source != TensorId::none && !raw && quantization(tensor) != nullptr;
    return facts.constant && !facts.is_input && !hidden ? &*facts.constant : nullptr;
}

std::string Facts::shown(const RuleValue& tensor) const {
    const auto* ref = tensor.tensor();
    if (ref == nullptr || builder == nullptr) {
        return tensor.shown();
    }
    return fmt::format("'{}'", ref->source != TensorId::none
                                   ? builder->source().tensor(ref->source).name
                                   : builder->target().tensor(ref->made).name);
}

bool is_function(const std::string& name) {
    return find(name) != nullptr;
}

RuleValue call(const std::string& name, std::span<const RuleValue> arguments, const Facts& facts) {
    const auto* const function = find(name);
    if (function == nullptr) {
        wrong(fmt::format("there is no function '{}'", name));
    }
    if (arguments.size() < function->least || arguments.size() > function->most) {
        wrong(fmt::format("'{}' takes {} arguments, not {}", name, function->least,
                          arguments.size()));
    }
    return function->call(arguments, facts);
}

}  // namespace trocar::mapping
