#include "mapping/evaluate.h"

#include <fmt/format.h>

#include <algorithm>

#include "mapping/functions.h"
#include "mapping/match.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::mapping {

namespace {

using Kind = Expression::Kind;
using Scope = std::map<std::string, RuleValue>;

constexpr int deepest_calls = 200;
constexpr std::size_t most_outputs = 10'000;

class Evaluator {
public:
    Evaluator(const RuleFile& rules, Builder* builder, const Match* match, bool raw)
        : rules_(rules), builder_(builder), match_(match), facts_{builder, raw} {}

    [[noreturn]] void fail(int line, const std::string& sentence) const {
        throw Error(Fault::input, fmt::format("{}:{}: {}", rules_.file, line, sentence));
    }

    RuleValue evaluate(const Expression& e, Scope& scope) {
        if (++depth_ > deepest_calls) {
            fail(e.line, "definitions call one another too deeply");
        }
        auto value = of_kind(e, scope);
        --depth_;
        return value;
    }

    // Whether a condition holds: a boolean, an integer other than 0, or an optional input that is
    // given. The rule declines a string, a float or a list.
    bool truth(const Expression& e, Scope& scope) {
        const auto value = evaluate(e, scope);
        if (value.is_none()) {
            return false;
        }
        if (const auto* held = value.truth()) {
            return *held;
        }
        if (const auto* held = value.integer()) {
            return *held != 0;
        }
        if (value.tensor() != nullptr || value.constant() != nullptr) {
            return true;  // an optional input that is there
        }
        throw Declined{fmt::format("{}:{}: a condition is a boolean, not {}", rules_.file, e.line,
                                   value.kind())};
    }

private:
    RuleValue of_kind(const Expression& e, Scope& scope) {
        switch (e.kind) {
            case Kind::none:
                return {};
            case Kind::truth:
                return e.integer != 0;
            case Kind::integer:
                return e.integer;
            case Kind::number:
                return e.number;
            case Kind::text:
                return e.text;
            case Kind::variable:
                return variable(e, scope);
            case Kind::attribute:
                return attribute(e);
            case Kind::list:
                return RuleValue::list(items(e.children, scope));
            case Kind::comprehension:
                return comprehension(e, scope);
            case Kind::choice:
                return evaluate(*e.children[truth(*e.children[0], scope) ? 1 : 2], scope);
            case Kind::unary:
                return unary(e, scope);
            case Kind::binary:
                return binary(e, scope);
            case Kind::index:
                return indexed(e, scope);
            case Kind::slice:
                return sliced(e, scope);
            case Kind::spread:
                fail(e.line, "'...' stands behind a list in a list or among arguments");
            case Kind::call:
                return called(e, scope);
            case Kind::op:
                return op(e, scope);
        }
        return {};
    }

    RuleValue variable(const Expression& e, const Scope& scope) const {
        const auto at = scope.find(e.text);
        if (at == scope.end()) {
            std::vector<std::string> names;
            for (const auto& [name, value] : scope) {
                names.push_back(name);
            }
            const auto guess = did_you_mean(e.text, names);
            fail(e.line, fmt::format("nothing is called '{}'{}{}", e.text,
                                     guess.empty() ? "" : "; ", guess));
        }
        return at->second;
    }
    RuleValue attribute(const Expression& e) const {
        if (match_ == nullptr) {
            fail(e.line, "there is no op here that could have attributes");
        }
        auto id = match_->ops.back();
        if (!e.target.empty()) {
            const auto at = match_->makers.find(e.target);
            if (at == match_->makers.end()) {
                fail(e.line, fmt::format("'{}' is no output of an op of this rule", e.target));
            }
            id = at->second;
        }
        const auto* const found = builder_->source().op(id).attribute(e.text);
        return found == nullptr ? RuleValue() : value_of(*found);
    }

    RuleValue::List items(const std::vector<Child>& children, Scope& scope) {
        RuleValue::List all;
        for (const auto& child : children) {
            if (child->kind == Kind::spread) {
                const auto list = evaluate(*child->children[0], scope);
                if (list.items() == nullptr) {
                    fail(child->line, fmt::format("'...' wants a list, not {}", list.kind()));
                }
                all.insert(all.end(), list.items()->begin(), list.items()->end());
            } else {
                all.push_back(evaluate(*child, scope));
            }
        }
        return all;
    }
    RuleValue comprehension(const Expression& e, Scope& scope) {
        const auto over = evaluate(*e.children[1], scope);
        if (over.items() == nullptr) {
            fail(e.line, fmt::format("'for' wants a list, not {}", over.kind()));
        }
        RuleValue::List all;
        auto inner = scope;
        for (const auto& item : *over.items()) {
            inner[e.text] = item;
            all.push_back(evaluate(*e.children[0], inner));
        }
        return RuleValue::list(std::move(all));
    }

    RuleValue unary(const Expression& e, Scope& scope) {
        if (e.text == "!") {
            return !truth(*e.children[0], scope);
        }
        const auto value = evaluate(*e.children[0], scope);
        if (const auto* integer = value.integer()) {
            return *integer == INT64_MIN ? *integer : -*integer;
        }
        if (const auto* number = value.number()) {
            return -*number;
        }
        fail(e.line, fmt::format("'-' wants a number, not {}", value.kind()));
    }

    RuleValue binary(const Expression& e, Scope& scope) {
        const auto& sign = e.text;
        if (sign == "&&") {
            return truth(*e.children[0], scope) && truth(*e.children[1], scope);
        }
        if (sign == "||") {
            return truth(*e.children[0], scope) || truth(*e.children[1], scope);
        }
        auto left = evaluate(*e.children[0], scope);
        if (sign == "??") {
            return left.is_none() ? evaluate(*e.children[1], scope) : left;
        }
        const auto right = evaluate(*e.children[1], scope);
        if (sign == "==" || sign == "!=") {
            return (left == right) == (sign == "==");
        }
        if (sign == "in") {
            if (right.items() == nullptr) {
                fail(e.line, fmt::format("'in' wants a list, not {}", right.kind()));
            }
            return std::find(right.items()->begin(), right.items()->end(), left) !=
                   right.items()->end();
        }
        if (sign == "+" && left.items() != nullptr && right.items() != nullptr) {
            auto all = *left.items();
            all.insert(all.end(), right.items()->begin(), right.items()->end());
            return RuleValue::list(std::move(all));
        }
        if (sign == "+" && left.text() != nullptr && right.text() != nullptr) {
            return *left.text() + *right.text();
        }
        return arithmetic(e, left, right);
    }
    // Element by element, in the element type of the constant that is given.
    RuleValue with_constants(const Expression& e, const RuleValue& left,
                             const RuleValue& right) const {
        const auto& held = left.constant() != nullptr ? *left.constant() : *right.constant();
        const auto as_constant = [&](const RuleValue& value) {
            return value.constant() != nullptr ? *value.constant()
                                               : constant_of(value, held.dtype());
        };
        try {
            return each(
                as_constant(left), as_constant(right), [sign = e.text[0]](double a, double b) {
                    return sign == '+' ? a + b : sign == '-' ? a - b : sign == '*' ? a * b : a / b;
                });
        } catch (const Error& error) {
            fail(e.line, error.what());
        }
    }
    RuleValue arithmetic(const Expression& e, const RuleValue& left, const RuleValue& right) const {
        const auto& sign = e.text;
        if ((left.constant() != nullptr || right.constant() != nullptr) &&
            (sign == "+" || sign == "-" || sign == "*" || sign == "/")) {
            return with_constants(e, left, right);
        }
        if (left.integer() != nullptr && right.integer() != nullptr) {
            return whole(e, *left.integer(), *right.integer());
        }
        const auto number = [&](const RuleValue& value) {
            if (value.number() != nullptr) {
                return *value.number();
            }
            if (value.integer() != nullptr) {
                return static_cast<double>(*value.integer());
            }
            fail(e.line, fmt::format("'{}' wants numbers, not {}", sign, value.kind()));
        };
        const double a = number(left);
        const double b = number(right);
        if (sign == "+") {
            return a + b;
        }
        if (sign == "-") {
            return a - b;
        }
        if (sign == "*") {
            return a * b;
        }
        if (sign == "/") {
            return a / b;
        }
        if (sign == "<") {
            return a < b;
        }
        if (sign == "<=") {
            return a <= b;
        }
        if (sign == ">") {
            return a > b;
        }
        if (sign == ">=") {
            return a >= b;
        }
        fail(e.line, fmt::format("'{}' wants integers", sign));
    }
    RuleValue whole(const Expression& e, std::int64_t a, std::int64_t b) const {
        const auto& sign = e.text;
        std::int64_t made = 0;
        bool too_large = false;
        if (sign == "<") {
            return a < b;
        }
        if (sign == "<=") {
            return a <= b;
        }
        if (sign == ">") {
            return a > b;
        }
        if (sign == ">=") {
            return a >= b;
        }
        if (sign == "+") {
            too_large = __builtin_add_overflow(a, b, &made);
        } else if (sign == "-") {
            too_large = __builtin_sub_overflow(a, b, &made);
        } else if (sign == "*") {
            too_large = __builtin_mul_overflow(a, b, &made);
        } else if (b == 0 || (a == INT64_MIN && b == -1)) {
            throw Declined{
                fmt::format("{}:{}: {} {} {} has no value", rules_.file, e.line, a, sign, b)};
        } else {
            made = sign == "/" ? a / b : a % b;
        }
        if (too_large) {
            throw Declined{
                fmt::format("{}:{}: {} {} {} is too large", rules_.file, e.line, a, sign, b)};
        }
        return made;
    }

    std::int64_t place(const Expression& e, Scope& scope, std::size_t size, bool clamp) {
        const auto value = evaluate(e, scope);
        if (value.integer() == nullptr) {
            fail(e.line, fmt::format("a place in a list is an integer, not {}", value.kind()));
        }
        const auto count = static_cast<std::int64_t>(size);
        auto at = *value.integer();
        at += at < 0 ? count : 0;
        return clamp ? std::clamp<std::int64_t>(at, 0, count) : at;
    }
    const RuleValue::List& list(const Expression& e, const RuleValue& value) const {
        if (value.items() == nullptr) {
            fail(e.line, fmt::format("only a list has places, not {}", value.kind()));
        }
        return *value.items();
    }
    RuleValue indexed(const Expression& e, Scope& scope) {
        const auto value = evaluate(*e.children[0], scope);
        const auto& all = list(e, value);
        const auto at = place(*e.children[1], scope, all.size(), false);
        if (at < 0 || at >= static_cast<std::int64_t>(all.size())) {
            throw Declined{fmt::format("{}:{}: a list of {} has no item {}", rules_.file, e.line,
                                       all.size(), at)};
        }
        return all[static_cast<std::size_t>(at)];
    }
    RuleValue sliced(const Expression& e, Scope& scope) {
        const auto value = evaluate(*e.children[0], scope);
        const auto& all = list(e, value);
        const auto from = e.children[1] ? place(*e.children[1], scope, all.size(), true) : 0;
        const auto to = e.children[2] ? place(*e.children[2], scope, all.size(), true)
                                      : static_cast<std::int64_t>(all.size());
        return RuleValue::list(from >= to ? RuleValue::List()
                                          : RuleValue::List(all.begin() + from, all.begin() + to));
    }

    const Definition* defined(const std::string& name) const {
        for (const auto* file : {&rules_, builder_ == nullptr ? &rules_ : &builder_->own()}) {
            if (const auto at = file->definitions.find(name); at != file->definitions.end()) {
                return &at->second;
            }
        }
        return nullptr;
    }
    RuleValue called(const Expression& e, Scope& scope) {
        const auto* const definition = defined(e.text);
        if (definition == nullptr && !is_function(e.text)) {
            fail(e.line, fmt::format("there is no function '{}'", e.text));
        }
        const auto arguments = items(e.children, scope);
        if (definition != nullptr) {
            const auto& names = definition->parameters;
            if (arguments.size() != names.size()) {
                fail(e.line, fmt::format("'{}' takes {} arguments, not {}", e.text, names.size(),
                                         arguments.size()));
            }
            Scope inner;
            for (std::size_t i = 0; i < arguments.size(); ++i) {
                inner[names[i]] = arguments[i];
            }
            return evaluate(*definition->value, inner);
        }
        try {
            return call(e.text, arguments, facts_);
        } catch (const Error& error) {
            // The rule did not think of an op like this one.
            throw Declined{fmt::format("{}:{}: {}", rules_.file, e.line, error.what())};
        }
    }

    // Puts an op into the target. One output: that tensor; several: a list of them.
    RuleValue op(const Expression& e, Scope& scope) {
        if (builder_ == nullptr) {
            fail(e.line, "no op can be made here");
        }
        OpSpec spec;
        set_type(spec, e.text, rules_.to);
        for (const auto& input : items(e.children, scope)) {
            spec.inputs.push_back(input_tensor(e, input));
        }
        while (!spec.inputs.empty() && spec.inputs.back() == TensorId::none) {
            spec.inputs.pop_back();
        }
        for (const auto& [name, child] : e.named) {
            const auto value = evaluate(*child, scope);
            if (value.is_none()) {
                continue;
            }
            auto attribute = attribute_of(value);
            if (std::holds_alternative<std::monostate>(attribute)) {
                fail(e.line,
                     fmt::format("attribute '{}' of {} cannot be {}", name, e.text, value.kind()));
            }
            spec.attributes.push_back({name, std::move(attribute), {}, {}});
        }
        std::size_t count = 1;
        if (e.count) {
            const auto value = evaluate(*e.count, scope);
            if (value.integer() == nullptr || *value.integer() < 1 ||
                *value.integer() > static_cast<std::int64_t>(most_outputs)) {
                fail(e.line, fmt::format("an op cannot have {} outputs", value.shown()));
            }
            count = static_cast<std::size_t>(*value.integer());
        }
        const auto outputs = builder_->append(std::move(spec), count);
        if (!e.count) {
            return TensorRef{.made = outputs[0]};
        }
        RuleValue::List all;
        for (const auto output : outputs) {
            all.emplace_back(TensorRef{.made = output});
        }
        return RuleValue::list(std::move(all));
    }
    TensorId input_tensor(const Expression& e, const RuleValue& value) {
        if (value.is_none()) {
            return TensorId::none;
        }
        if (const auto* constant = value.constant()) {
            return builder_->constant(*constant, "constant");
        }
        if (const auto* tensor = value.tensor()) {
            return tensor->made != TensorId::none ? tensor->made
                                                  : builder_->tensor(tensor->source, facts_.raw);
        }
        fail(e.line, fmt::format("an input of {} is a tensor, not {}; f32(…) or i64(…) makes a "
                                 "constant",
                                 e.text, value.kind()));
    }

    const RuleFile& rules_;
    Builder* builder_;
    const Match* match_;
    Facts facts_;
    int depth_ = 0;
};

}  // namespace

std::vector<RuleValue> apply(const Rule& rule, const Match& match, Builder& builder) {
    Evaluator evaluator(builder.rules(), &builder, &match, rule.raw);
    Scope scope = match.names;
    std::map<std::string, RuleValue> results;
    for (const auto& statement : rule.body) {
        if (statement.kind == Statement::Kind::require) {
            if (!evaluator.truth(*statement.value, scope)) {
                throw Declined{statement.reason
                                   ? evaluator.evaluate(*statement.reason, scope).shown()
                                   : fmt::format("rule '{}' wants something else (line {})",
                                                 rule.name, statement.line)};
            }
            continue;
        }
        const auto value = evaluator.evaluate(*statement.value, scope);
        const auto set = [&](const std::string& name, const RuleValue& to) {
            scope[name] = to;
            results[name] = to;
        };
        if (statement.names.size() == 1) {
            set(statement.names[0], value);
            continue;
        }
        const auto* const items = value.items();
        if (items == nullptr || items->size() != statement.names.size()) {
            evaluator.fail(statement.line, fmt::format("{} names stand for {}",
                                                       statement.names.size(), value.shown()));
        }
        for (std::size_t i = 0; i < items->size(); ++i) {
            set(statement.names[i], (*items)[i]);
        }
    }
    std::vector<RuleValue> outputs;
    for (const auto& place : rule.match.back().outputs) {
        const auto at = results.find(place.name);
        if (at == results.end()) {
            if (place.name == "_" || place.optional) {
                outputs.emplace_back();
                continue;
            }
            evaluator.fail(rule.line, fmt::format("rule '{}' does not say what '{}' becomes",
                                                  rule.name, place.name));
        }
        if (place.rest) {
            if (at->second.items() == nullptr) {
                evaluator.fail(rule.line, fmt::format("'{}' is a list of outputs", place.name));
            }
            outputs.insert(outputs.end(), at->second.items()->begin(), at->second.items()->end());
        } else {
            outputs.push_back(at->second);
        }
    }
    return outputs;
}

RuleValue evaluate_plain(const Expression& expression, const RuleFile& rules) {
    Scope none;
    return Evaluator(rules, nullptr, nullptr, true).evaluate(expression, none);
}

}  // namespace trocar::mapping
