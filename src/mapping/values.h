#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "trocar/graph.h"

namespace trocar::mapping {

// A tensor as rules speak of it: one of the source graph, of the target graph, or both.
struct TensorRef {
    TensorId source = TensorId::none;
    TensorId made = TensorId::none;
};

// What an expression of a rule can be.
struct RuleValue {
    using List = std::vector<RuleValue>;
    using What = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                              std::shared_ptr<const List>, TensorRef, Constant>;
    What what;

    RuleValue() = default;
    template <class T>
    requires std::constructible_from<What, T> RuleValue(T value)
        : what(std::move(value)) {}                           // NOLINT(google-explicit-constructor)
    RuleValue(const char* text) : what(std::string(text)) {}  // NOLINT(google-explicit-constructor)
    static RuleValue list(List items) { return {std::make_shared<const List>(std::move(items))}; }
    static RuleValue integers(const std::vector<std::int64_t>& items);

    bool is_none() const { return what.index() == 0; }
    const bool* truth() const { return std::get_if<bool>(&what); }
    const std::int64_t* integer() const { return std::get_if<std::int64_t>(&what); }
    const double* number() const { return std::get_if<double>(&what); }
    const std::string* text() const { return std::get_if<std::string>(&what); }
    const List* items() const;
    const TensorRef* tensor() const { return std::get_if<TensorRef>(&what); }
    const Constant* constant() const { return std::get_if<Constant>(&what); }

    const char* kind() const;   // "an integer"
    std::string shown() const;  // for messages
};
bool operator==(const RuleValue& a, const RuleValue& b);  // tensors and constants are never equal

// A value from an attribute, and back. Nothing for kinds that rules do not speak of.
RuleValue value_of(const Attribute& attribute);
Attribute::Value attribute_of(const RuleValue& value);  // monostate: it cannot be one

// The elements of a small constant.
RuleValue elements(const Constant& constant);
// A constant of these elements: a number, or a list (of lists) of numbers of equal length.
Constant constant_of(const RuleValue& value, DType dtype);
// A function of every element, and of the elements of two that are broadcast. Throws Error(input).
Constant each(const Constant& constant, const std::function<double(double)>& f);
Constant each(const Constant& a, const Constant& b, const std::function<double(double, double)>& f);
// Another order of axes: axis i of the result is axis perm[i] of `constant`.
Constant permuted(const Constant& constant, const std::vector<std::int64_t>& perm);

}  // namespace trocar::mapping
