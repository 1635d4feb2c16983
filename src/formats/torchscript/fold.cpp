#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "formats/torchscript/interpreter.h"

// Arithmetic on what the file settles. It follows Python, as torch's own ops on numbers do.
namespace trocar::torchscript {

namespace {

constexpr std::size_t longest = 100'000;  // lists and texts

using Values = std::vector<Value>;
using Result = std::optional<Value>;

std::optional<double> real(const Value& value) {
    if (const auto* held = value.as<std::int64_t>()) {
        return static_cast<double>(*held);
    }
    if (const auto* held = value.as<double>()) {
        return *held;
    }
    if (const auto* held = value.as<bool>()) {
        return *held ? 1 : 0;
    }
    return std::nullopt;
}
std::optional<std::int64_t> whole(const Value& value) {
    if (const auto* held = value.as<std::int64_t>()) {
        return *held;
    }
    if (const auto* held = value.as<bool>()) {
        return *held ? 1 : 0;
    }
    return std::nullopt;
}

// Of two integers, else of two real numbers. A whole result that does not fit is left to the run.
template <class Whole, class Real>
Result arithmetic(const Values& v, Whole&& whole_of, Real&& real_of) {
    if (v.size() != 2) {
        return std::nullopt;
    }
    const auto a = whole(v[0]);
    const auto b = whole(v[1]);
    if (a && b) {
        return whole_of(*a, *b);
    }
    const auto x = real(v[0]);
    const auto y = real(v[1]);
    return x && y ? real_of(*x, *y) : std::nullopt;
}

Result add(const Values& v) {
    if (v.size() == 2 && v[0].list() != nullptr && v[1].list() != nullptr &&
        v[0].list()->items.size() + v[1].list()->items.size() < longest) {
        auto made = std::make_shared<ListValue>(*v[0].list());
        made->items.insert(made->items.end(), v[1].list()->items.begin(), v[1].list()->items.end());
        if (made->element.empty()) {
            made->element = v[1].list()->element;
        }
        return Value(made);
    }
    if (v.size() == 2 && v[0].as<std::string>() != nullptr && v[1].as<std::string>() != nullptr &&
        v[0].as<std::string>()->size() + v[1].as<std::string>()->size() < longest) {
        return Value(*v[0].as<std::string>() + *v[1].as<std::string>());
    }
    return arithmetic(
        v,
        [](std::int64_t a, std::int64_t b) -> Result {
            std::int64_t made = 0;
            return __builtin_add_overflow(a, b, &made) ? Result() : Result(made);
        },
        [](double a, double b) -> Result { return Value(a + b); });
}
Result subtract(const Values& v) {
    return arithmetic(
        v,
        [](std::int64_t a, std::int64_t b) -> Result {
            std::int64_t made = 0;
            return __builtin_sub_overflow(a, b, &made) ? Result() : Result(made);
        },
        [](double a, double b) -> Result { return Value(a - b); });
}
Result multiply(const Values& v) {
    return arithmetic(
        v,
        [](std::int64_t a, std::int64_t b) -> Result {
            std::int64_t made = 0;
            return __builtin_mul_overflow(a, b, &made) ? Result() : Result(made);
        },
        [](double a, double b) -> Result { return Value(a * b); });
}
Result divide(const Values& v) {
    const auto quotient = [](double a, double b) -> Result {
        return b == 0 ? Result() : Result(Value(a / b));
    };
    return arithmetic(
        v,
        [&](std::int64_t a, std::int64_t b) {
            return quotient(static_cast<double>(a), static_cast<double>(b));
        },
        quotient);
}
Result floor_divide(const Values& v) {
    return arithmetic(
        v,
        [](std::int64_t a, std::int64_t b) -> Result {
            if (b == 0 || (a == INT64_MIN && b == -1)) {
                return std::nullopt;
            }
            return Value(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
        },
        [](double a, double b) -> Result {
            return b == 0 ? Result() : Result(Value(std::floor(a / b)));
        });
}
Result remainder(const Values& v) {
    return arithmetic(
        v,
        [](std::int64_t a, std::int64_t b) -> Result {
            if (b == 0 || b == -1) {
                return b == 0 ? Result() : Result(std::int64_t{0});
            }
            const auto rest = a % b;
            return Value(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
        },
        [](double a, double b) -> Result {
            return b == 0 ? Result() : Result(Value(a - b * std::floor(a / b)));
        });
}
Result power(const Values& v) {
    if (v.size() != 2 || !real(v[0]) || !real(v[1])) {
        return std::nullopt;
    }
    const auto made = std::pow(*real(v[0]), *real(v[1]));
    const bool integers = v[0].as<std::int64_t>() != nullptr &&
                          v[1].as<std::int64_t>() != nullptr && *v[1].as<std::int64_t>() >= 0;
    if (integers && std::abs(made) > 1e15) {
        return std::nullopt;
    }
    return integers ? Value(static_cast<std::int64_t>(made)) : Value(made);
}
Result negative(const Values& v) {
    if (v.size() != 1) {
        return std::nullopt;
    }
    if (const auto* held = v[0].as<std::int64_t>()) {
        return Value(*held == INT64_MIN ? *held : -*held);
    }
    if (const auto* held = v[0].as<double>()) {
        return Value(-*held);
    }
    return std::nullopt;
}

template <class Compare>
Result compared(const Values& v, Compare&& compare) {
    if (v.size() != 2) {
        return std::nullopt;
    }
    const auto a = real(v[0]);
    const auto b = real(v[1]);
    return a && b ? Result(Value(compare(*a, *b))) : std::nullopt;
}
Result equal(const Values& v) {
    if (v.size() != 2) {
        return std::nullopt;
    }
    if (v[0].is_plain() && v[1].is_plain()) {
        return Value(same_plain(v[0], v[1]));
    }
    const auto* a = v[0].list();
    const auto* b = v[1].list();
    if (a == nullptr || b == nullptr) {
        return std::nullopt;
    }
    bool same = a->items.size() == b->items.size();
    for (std::size_t i = 0; i < std::min(a->items.size(), b->items.size()); ++i) {
        if (!a->items[i].is_plain() || !b->items[i].is_plain()) {
            return std::nullopt;
        }
        same = same && same_plain(a->items[i], b->items[i]);
    }
    return Value(same);
}
Result unequal(const Values& v) {
    const auto same = equal(v);
    return same ? Result(Value(!*same->as<bool>())) : std::nullopt;
}

Result to_truth(const Values& v) {
    if (v.size() != 1) {
        return std::nullopt;
    }
    const auto held = real(v[0]);
    return held ? Result(Value(*held != 0)) : std::nullopt;
}
Result to_whole(const Values& v) {
    if (v.size() != 1) {
        return std::nullopt;
    }
    if (const auto held = whole(v[0])) {
        return Value(*held);
    }
    const auto held = real(v[0]);
    return held && std::abs(*held) < 9e18 ? Result(Value(static_cast<std::int64_t>(*held)))
                                          : std::nullopt;
}
Result to_real(const Values& v) {
    const auto held = v.size() == 1 ? real(v[0]) : std::nullopt;
    return held ? Result(Value(*held)) : std::nullopt;
}
Result denied(const Values& v) {
    return v.size() == 1 && v[0].as<bool>() != nullptr ? Result(Value(!*v[0].as<bool>()))
                                                       : std::nullopt;
}
Result both(const Values& v) {
    return v.size() == 2 && v[0].as<bool>() != nullptr && v[1].as<bool>() != nullptr
               ? Result(Value(*v[0].as<bool>() && *v[1].as<bool>()))
               : std::nullopt;
}
Result either(const Values& v) {
    return v.size() == 2 && v[0].as<bool>() != nullptr && v[1].as<bool>() != nullptr
               ? Result(Value(*v[0].as<bool>() || *v[1].as<bool>()))
               : std::nullopt;
}

Result length(const Values& v) {
    if (v.size() != 1) {
        return std::nullopt;
    }
    if (const auto* list = v[0].list()) {
        return Value(static_cast<std::int64_t>(list->items.size()));
    }
    if (const auto* dict = v[0].dict()) {
        return Value(static_cast<std::int64_t>(dict->items.size()));
    }
    if (const auto* tuple = v[0].tuple()) {
        return Value(static_cast<std::int64_t>(tuple->items.size()));
    }
    if (const auto* text = v[0].as<std::string>()) {
        return Value(static_cast<std::int64_t>(text->size()));
    }
    return std::nullopt;
}
Result contains(const Values& v) {
    if (v.size() != 2 || !v[1].is_plain()) {
        return std::nullopt;
    }
    if (const auto* dict = v[0].dict()) {
        return Value(std::any_of(dict->items.begin(), dict->items.end(),
                                 [&](const auto& item) { return same_plain(item.first, v[1]); }));
    }
    const auto* list = v[0].list();
    if (list == nullptr) {
        return std::nullopt;
    }
    bool all_plain = true;
    for (const auto& item : list->items) {
        if (item.is_plain() && same_plain(item, v[1])) {
            return Value(true);
        }
        all_plain = all_plain && item.is_plain();
    }
    return all_plain ? Result(Value(false)) : std::nullopt;
}
// Of a list: Python's l[from:to:step].
Result slice(const Values& v) {
    if (v.empty() || v[0].list() == nullptr) {
        return std::nullopt;
    }
    const auto size = static_cast<std::int64_t>(v[0].list()->items.size());
    const auto bound = [&](std::size_t place, std::int64_t otherwise) {
        if (place >= v.size() || v[place].is_none()) {
            return std::optional(otherwise);
        }
        auto at = whole(v[place]);
        if (at) {
            *at = std::clamp<std::int64_t>(*at < 0 && *at >= -size ? *at + size : *at, 0, size);
        }
        return at;
    };
    const auto from = bound(1, 0);
    const auto to = bound(2, size);
    const auto step =
        v.size() > 3 && !v[3].is_none() ? whole(v[3]) : std::optional<std::int64_t>(1);
    if (!from || !to || !step || *step <= 0) {
        return std::nullopt;
    }
    auto made = std::make_shared<ListValue>(*v[0].list());
    made->items.clear();
    for (auto i = *from; i < *to; i += std::min(*step, size + 1)) {
        made->items.push_back(v[0].list()->items[static_cast<std::size_t>(i)]);
    }
    return Value(made);
}
Result range_length(const Values& v) {
    if (v.size() != 3 || !whole(v[0]) || !whole(v[1]) || !whole(v[2]) || *whole(v[2]) == 0) {
        return std::nullopt;
    }
    const auto from = static_cast<double>(*whole(v[0]));
    const auto to = static_cast<double>(*whole(v[1]));
    const auto count = std::ceil((to - from) / static_cast<double>(*whole(v[2])));
    return count < 1e15 ? Result(Value(static_cast<std::int64_t>(std::max(count, 0.0))))
                        : std::nullopt;
}
Result derive_index(const Values& v) {
    if (v.size() != 3) {
        return std::nullopt;
    }
    const auto product = multiply({v[0], v[2]});
    return product ? add({v[1], *product}) : std::nullopt;
}
template <class Choose>
Result extreme(const Values& v, Choose&& choose) {
    return arithmetic(
        v, [&](std::int64_t a, std::int64_t b) -> Result { return Value(choose(a, b)); },
        [&](double a, double b) -> Result { return Value(choose(a, b)); });
}
Result rounded(const Values& v, double (*how)(double)) {
    const auto held = v.size() == 1 ? real(v[0]) : std::nullopt;
    return held && std::abs(*held) < 9e18 ? Result(Value(static_cast<std::int64_t>(how(*held))))
                                          : std::nullopt;
}
Result root(const Values& v) {
    const auto held = v.size() == 1 ? real(v[0]) : std::nullopt;
    return held && *held >= 0 ? Result(Value(std::sqrt(*held))) : std::nullopt;
}
Result copied(const Values& v) {
    return v.size() == 1 && v[0].list() != nullptr
               ? Result(Value(std::make_shared<ListValue>(*v[0].list())))
               : std::nullopt;
}
template <bool values>
Result of_dict(const Values& v) {
    if (v.size() != 1 || v[0].dict() == nullptr) {
        return std::nullopt;
    }
    auto made = std::make_shared<ListValue>();
    made->depth = v[0].dict()->depth;
    made->element = values ? "" : "s";
    for (const auto& [key, value] : v[0].dict()->items) {
        made->items.push_back(values ? value : key);
    }
    return Value(made);
}

using Folder = Result (*)(const Values&);

const std::unordered_map<std::string, Folder>& folders() {
    static const std::unordered_map<std::string, Folder> all{
        {"aten::add", add},
        {"aten::sub", subtract},
        {"aten::mul", multiply},
        {"aten::div", divide},
        {"aten::floordiv", floor_divide},
        {"aten::remainder", remainder},
        {"aten::pow", power},
        {"aten::neg", negative},
        {"aten::eq", equal},
        {"aten::ne", unequal},
        {"aten::lt", [](const Values& v) { return compared(v, std::less<>()); }},
        {"aten::le", [](const Values& v) { return compared(v, std::less_equal<>()); }},
        {"aten::gt", [](const Values& v) { return compared(v, std::greater<>()); }},
        {"aten::ge", [](const Values& v) { return compared(v, std::greater_equal<>()); }},
        {"aten::Bool", to_truth},
        {"aten::Int", to_whole},
        {"aten::Float", to_real},
        {"aten::__not__", denied},
        {"aten::__and__", both},
        {"aten::__or__", either},
        {"aten::len", length},
        {"aten::__contains__", contains},
        {"aten::slice", slice},
        {"aten::__range_length", range_length},
        {"aten::__derive_index", derive_index},
        {"prim::min",
         [](const Values& v) { return extreme(v, [](auto a, auto b) { return std::min(a, b); }); }},
        {"prim::max",
         [](const Values& v) { return extreme(v, [](auto a, auto b) { return std::max(a, b); }); }},
        {"aten::floor", [](const Values& v) { return rounded(v, std::floor); }},
        {"aten::ceil", [](const Values& v) { return rounded(v, std::ceil); }},
        {"aten::sqrt", root},
        {"aten::list", copied},
        {"aten::keys", of_dict<false>},
        {"aten::values", of_dict<true>},
    };
    return all;
}

}  // namespace

bool same_plain(const Value& a, const Value& b) {
    if (const auto x = real(a), y = real(b); x && y) {
        const auto i = whole(a);
        const auto j = whole(b);
        return i && j ? *i == *j : *x == *y;
    }
    if (a.what.index() != b.what.index()) {
        return false;
    }
    return a.is_none() ||
           (a.as<std::string>() != nullptr && *a.as<std::string>() == *b.as<std::string>()) ||
           (a.as<std::complex<double>>() != nullptr &&
            *a.as<std::complex<double>>() == *b.as<std::complex<double>>());
}

std::optional<Value> fold(const std::string& op, const std::vector<Value>& values) {
    const auto found = folders().find(op);
    return found == folders().end() ? std::nullopt : found->second(values);
}

}  // namespace trocar::torchscript
