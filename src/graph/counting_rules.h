#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "trocar/counting.h"

// The rules behind trocar/counting.h. A rule throws Error(input) when the facts do not fit; `count`
// turns that into the reason why an op is not counted.
namespace trocar::counting {

// A non-negative number whose sums and products are checked: what does not fit 63 bits throws.
class Number {
public:
    Number() = default;
    Number(std::int64_t value);  // throws on a negative one
    static Number of(std::size_t value) { return Number(static_cast<std::int64_t>(value)); }
    std::int64_t value() const { return value_; }
    friend Number operator*(Number a, Number b);
    friend Number operator+(Number a, Number b);
    friend Number operator-(Number a, Number b) {  // stops at 0
        return a.value_ < b.value_ ? Number(0) : Number(a.value_ - b.value_);
    }
    Number& operator*=(Number other) { return *this = *this * other; }
    Number& operator+=(Number other) { return *this = *this + other; }

private:
    std::int64_t value_ = 0;
};

struct Work {
    Number macs;
    Number other;
};

using Rule = Work (*)(const OpFacts&);

struct NamedRule {
    std::string_view type;
    Rule rule;
};

// Domains: "" (also ai.onnx), "com.microsoft", "ai.onnx.ml".
std::span<const NamedRule> contraction_rules(std::string_view domain);
std::span<const NamedRule> attention_rules(std::string_view domain);
std::span<const NamedRule> element_rules(std::string_view domain);

// Work in proportion to elements: `cost` for each element of output 0 or of input 0.
struct ElementCost {
    std::string_view type;
    int cost;
    enum class Of { output, input } of = Of::output;
};
std::span<const ElementCost> element_costs(std::string_view domain);

// Ops without arithmetic, and ops whose work no rule can tell, with the reason.
std::span<const std::string_view> movement_ops(std::string_view domain);
struct Uncountable {
    std::string_view type;
    const char* why;
};
std::span<const Uncountable> uncountable_ops(std::string_view domain);

// How much of input 0 an op reads.
enum class Reach { all, picked, nothing };

// --- Other dialects, one file each --------------------------------------------------------------

// All that is known of the ops of one domain of a dialect.
struct RuleSet {
    std::span<const NamedRule> rules;
    std::span<const ElementCost> costs;
    std::span<const std::string_view> movement;
    std::span<const Uncountable> uncountable;
};

RuleSet tflite_rules();
Role tflite_role(const Op& op, std::size_t slot, DType dtype, std::span<const std::int64_t> shape);
Passing tflite_passing(const Op& op);
std::optional<WeightAxes> tflite_weight_axes(const Op& op, std::size_t slot, std::size_t rank);
Reach tflite_reach(const Op& op);

RuleSet tf_rules();
Role tf_role(const Op& op, std::size_t slot, DType dtype, std::span<const std::int64_t> shape);
Passing tf_passing(const Op& op);
std::optional<WeightAxes> tf_weight_axes(const Op& op, std::size_t slot, std::size_t rank);
Reach tf_reach(const Op& op);

// What constants are the symbol's arrays say.
RuleSet mxnet_rules();
Passing mxnet_passing(const Op& op);
std::optional<WeightAxes> mxnet_weight_axes(const Op& op, std::size_t slot, std::size_t rank);

RuleSet aten_rules(std::string_view domain);
Role aten_role(const Op& op, std::size_t slot, DType dtype, std::span<const std::int64_t> shape);
Passing aten_passing(const Op& op);
std::optional<WeightAxes> aten_weight_axes(const Op& op, std::size_t slot, std::size_t rank);
Reach aten_reach(const Op& op);
// The input that stands for an argument of an op of the dialect "aten"; nothing when it is absent.
std::optional<std::size_t> argument_slot(const Op& op, std::string_view name);

// --- For the rules ------------------------------------------------------------------------------

const Shape& input(const OpFacts& facts, std::size_t slot);  // throws when absent or unknown
const Shape& output(const OpFacts& facts, std::size_t slot);
bool has_input(const OpFacts& facts, std::size_t slot);
Number elements(const Shape& shape);
Number dim(const Shape& shape, std::size_t axis);  // throws when the rank is too low
Number last(const Shape& shape);
Number product(std::span<const std::int64_t> dims);
[[noreturn]] void misfit(const char* sentence);

}  // namespace trocar::counting
