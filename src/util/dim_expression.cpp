#include "util/dim_expression.h"

#include <algorithm>
#include <utility>

namespace trocar {

namespace {

constexpr int deepest = 64;

__extension__ using Wide = __int128;

// A fraction in lowest terms, `below` > 0.
struct Fraction {
    std::int64_t above = 0;
    std::int64_t below = 1;
};
using Result = std::optional<Fraction>;

Result reduced(Wide above, Wide below) {
    if (below == 0) {
        return std::nullopt;
    }
    if (below < 0) {
        above = -above;
        below = -below;
    }
    auto a = above < 0 ? -above : above;
    auto b = below;
    while (b != 0) {
        a = std::exchange(b, a % b);
    }
    above /= a == 0 ? 1 : a;
    below /= a == 0 ? 1 : a;
    constexpr auto most = static_cast<Wide>(INT64_MAX);
    if (above > most || above < -most || below > most) {
        return std::nullopt;
    }
    return Fraction{static_cast<std::int64_t>(above), static_cast<std::int64_t>(below)};
}

Result plus(const Fraction& a, const Fraction& b, int sign) {
    return reduced(
        static_cast<Wide>(a.above) * b.below + sign * static_cast<Wide>(b.above) * a.below,
        static_cast<Wide>(a.below) * b.below);
}

Result times(const Fraction& a, const Fraction& b) {
    return reduced(static_cast<Wide>(a.above) * b.above, static_cast<Wide>(a.below) * b.below);
}

Result over(const Fraction& a, const Fraction& b) {
    return reduced(static_cast<Wide>(a.above) * b.below, static_cast<Wide>(a.below) * b.above);
}

Fraction floor_of(const Fraction& a) {
    auto whole = a.above / a.below;
    whole -= a.above % a.below < 0 ? 1 : 0;
    return {whole, 1};
}

Result power(const Fraction& base, const Fraction& exponent) {
    if (exponent.below != 1 || exponent.above < 0 || exponent.above > 62) {
        return std::nullopt;
    }
    Result result = Fraction{1, 1};
    for (std::int64_t i = 0; i < exponent.above && result; ++i) {
        result = times(*result, base);
    }
    return result;
}

bool less(const Fraction& a, const Fraction& b) {
    return static_cast<Wide>(a.above) * b.below < static_cast<Wide>(b.above) * a.below;
}

// Python's precedence: sums, products, signs, powers.
class Parser {
public:
    Parser(std::string_view text, const SymbolValue& value_of) : rest_(text), value_of_(value_of) {}

    Result whole() {
        auto result = sum(0);
        skip();
        return rest_.empty() ? result : std::nullopt;
    }

private:
    void skip() {
        while (!rest_.empty() && rest_.front() == ' ') {
            rest_.remove_prefix(1);
        }
    }

    bool take(std::string_view token) {
        skip();
        if (!rest_.starts_with(token)) {
            return false;
        }
        rest_.remove_prefix(token.size());
        return true;
    }

    Result sum(int depth) {
        if (depth > deepest) {
            return std::nullopt;
        }
        auto result = product(depth);
        while (result) {
            const int sign = take("+") ? 1 : take("-") ? -1 : 0;
            if (sign == 0) {
                break;
            }
            const auto right = product(depth);
            result = right ? plus(*result, *right, sign) : std::nullopt;
        }
        return result;
    }

    Result product(int depth) {
        auto result = factor(depth);
        while (result) {
            skip();
            if (rest_.starts_with("**")) {
                return std::nullopt;
            }
            const char sign = take("//")  ? 'f'
                              : take("/") ? '/'
                              : take("*") ? '*'
                              : take("%") ? '%'
                                          : ' ';
            if (sign == ' ') {
                break;
            }
            const auto right = factor(depth);
            if (!right || (sign != '*' && right->above == 0)) {
                return std::nullopt;
            }
            result = apply(sign, *result, *right);
        }
        return result;
    }

    static Result apply(char sign, const Fraction& a, const Fraction& b) {
        if (sign == '*') {
            return times(a, b);
        }
        const auto quotient = over(a, b);
        if (!quotient || sign == '/') {
            return quotient;
        }
        const auto whole = floor_of(*quotient);
        if (sign == 'f') {
            return whole;
        }
        const auto taken = times(whole, b);
        return taken ? plus(a, *taken, -1) : std::nullopt;
    }

    Result factor(int depth) {
        if (depth > deepest) {
            return std::nullopt;
        }
        if (take("-")) {
            const auto inner = factor(depth + 1);
            return inner ? std::optional(Fraction{-inner->above, inner->below}) : std::nullopt;
        }
        auto base = atom(depth);
        if (base && take("**")) {
            const auto exponent = factor(depth + 1);
            return exponent ? power(*base, *exponent) : std::nullopt;
        }
        return base;
    }

    Result atom(int depth) {
        skip();
        if (take("(")) {
            auto inner = sum(depth + 1);
            return take(")") ? inner : std::nullopt;
        }
        std::size_t length = 0;
        while (length < rest_.size() && is_word(rest_[length])) {
            ++length;
        }
        const auto word = rest_.substr(0, length);
        rest_.remove_prefix(length);
        if (word.empty()) {
            return std::nullopt;
        }
        if (word.front() >= '0' && word.front() <= '9') {
            return number(word);
        }
        if ((word == "floor" || word == "max" || word == "min") && take("(")) {
            return call(word, depth);
        }
        const auto value = value_of_(word);
        return value ? std::optional(Fraction{*value, 1}) : std::nullopt;
    }

    Result call(std::string_view function, int depth) {
        auto result = sum(depth + 1);
        while (result && function != "floor" && take(",")) {
            const auto next = sum(depth + 1);
            if (!next) {
                return std::nullopt;
            }
            if (function == "max" ? less(*result, *next) : less(*next, *result)) {
                result = next;
            }
        }
        if (!result || !take(")")) {
            return std::nullopt;
        }
        return function == "floor" ? floor_of(*result) : *result;
    }

    static bool is_word(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '.' || c == '\'' || c == '[' || c == ']' || c == '$';
    }

    static Result number(std::string_view word) {
        std::int64_t value = 0;
        for (const char c : word) {
            if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, c - '0', &value)) {
                return std::nullopt;
            }
        }
        return Fraction{value, 1};
    }

    std::string_view rest_;
    const SymbolValue& value_of_;
};

}  // namespace

std::optional<std::int64_t> evaluate(std::string_view expression, const SymbolValue& value_of) {
    const auto result = Parser(expression, value_of).whole();
    return result && result->below == 1 ? std::optional(result->above) : std::nullopt;
}

}  // namespace trocar
