#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace trocar {

// The value of an expression of symbols and whole numbers, as symbolic dimensions have them:
// "4*batch", "(n - 1)//2 + 1", "max(n, 2)". Known are + - * / // % **, parentheses, and floor,
// max and min; / must come out even, except inside floor. Nothing when a symbol is unknown, the
// text is no such expression, or a result does not fit 63 bits.
using SymbolValue = std::function<std::optional<std::int64_t>(std::string_view)>;
std::optional<std::int64_t> evaluate(std::string_view expression, const SymbolValue& value_of);

}  // namespace trocar
