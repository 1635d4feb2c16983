#include "formats/pt2/symbolic.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace trocar::pt2 {

namespace {

constexpr int deepest_expression = 64;

// How tightly a text holds together, loosest first.
enum class Binding { sum, product, power, whole };

struct Text {
    std::string text;
    Binding binding = Binding::whole;
    bool negative = false;  // begins with a minus
};

std::string inside(const Text& part, Binding at_least) {
    const bool wrapped = part.binding < at_least || (part.negative && at_least > Binding::sum);
    return wrapped ? fmt::format("({})", part.text) : part.text;
}

class Parser {
public:
    explicit Parser(std::string_view text) : rest_(text) {}

    std::optional<Text> whole() {
        auto result = call(0);
        return result && rest_.empty() ? result : std::nullopt;
    }

private:
    bool take(char c) {
        while (!rest_.empty() && rest_.front() == ' ') {
            rest_.remove_prefix(1);
        }
        if (rest_.empty() || rest_.front() != c) {
            return false;
        }
        rest_.remove_prefix(1);
        return true;
    }

    std::string_view word() {
        take(' ');
        std::size_t length = 0;
        while (length < rest_.size() &&
               (rest_[length] == '_' || rest_[length] == '-' || rest_[length] == '.' ||
                (rest_[length] >= '0' && rest_[length] <= '9') ||
                ((rest_[length] | 0x20) >= 'a' && (rest_[length] | 0x20) <= 'z'))) {
            ++length;
        }
        const auto found = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return found;
    }

    std::optional<Text> call(int depth) {
        const auto name = word();
        if (name.empty() || depth > deepest_expression || !take('(')) {
            return std::nullopt;
        }
        if (name == "Symbol" || name == "Dummy") {
            return symbol();
        }
        if (name == "Integer" || name == "Float") {
            const bool quoted = take('\'');
            const auto digits = word();
            if (digits.empty() || (quoted && !take('\'')) || !close()) {
                return std::nullopt;
            }
            return Text{std::string(digits), Binding::whole, digits.front() == '-'};
        }
        if (name == "Rational") {
            const auto above = word();
            const bool comma = take(',');
            const auto below = word();
            if (above.empty() || below.empty() || !comma || !take(')')) {
                return std::nullopt;
            }
            return Text{fmt::format("{}/{}", above, below), Binding::product, above.front() == '-'};
        }
        std::vector<Text> parts;
        while (!take(')')) {
            if (!parts.empty() && !take(',')) {
                return std::nullopt;
            }
            auto part = call(depth + 1);
            if (!part) {
                return std::nullopt;
            }
            parts.push_back(std::move(*part));
        }
        return combine(name, parts);
    }

    // What follows up to the closing parenthesis are assumptions: "positive=True".
    bool close() {
        const auto end = rest_.find(')');
        if (end == std::string_view::npos ||
            rest_.substr(0, end).find('(') != std::string_view::npos) {
            return false;
        }
        rest_.remove_prefix(end + 1);
        return true;
    }

    std::optional<Text> symbol() {
        if (!take('\'')) {
            return std::nullopt;
        }
        const auto end = rest_.find('\'');
        if (end == std::string_view::npos) {
            return std::nullopt;
        }
        Text text{std::string(rest_.substr(0, end))};
        rest_.remove_prefix(end + 1);
        return close() ? std::optional(text) : std::nullopt;
    }

    static std::string join(const std::vector<Text>& parts, std::string_view sign,
                            Binding binding) {
        std::string text;
        for (const auto& part : parts) {
            text += text.empty() ? "" : sign;
            text += inside(part, binding);
        }
        return text;
    }

    static Text combine(std::string_view name, const std::vector<Text>& parts) {
        if (name == "Add" && parts.size() > 1) {
            return sum(parts);
        }
        if (name == "Mul" && parts.size() > 1) {
            if (parts.front().text == "-1") {
                const std::vector<Text> others(parts.begin() + 1, parts.end());
                return {"-" + join(others, "*", Binding::product), Binding::product, true};
            }
            auto first = parts;
            const bool negative = first.front().negative && first.front().binding == Binding::whole;
            first.front().negative = false;
            return {join(first, "*", Binding::product), Binding::product, negative};
        }
        if (name == "Pow" && parts.size() == 2) {
            return {fmt::format("{}**{}", inside(parts[0], Binding::whole),
                                inside(parts[1], Binding::whole)),
                    Binding::power, false};
        }
        // A quotient in a product, on whichever side, keeps its parentheses: they do not commute.
        if ((name == "FloorDiv" || name == "CleanDiv") && parts.size() == 2) {
            return {fmt::format("({}//{})", inside(parts[0], Binding::product),
                                inside(parts[1], Binding::power)),
                    Binding::whole, false};
        }
        if ((name == "Mod" || name == "PythonMod") && parts.size() == 2) {
            return {fmt::format("({} % {})", inside(parts[0], Binding::product),
                                inside(parts[1], Binding::power)),
                    Binding::whole, false};
        }
        const std::string lower = name == "Max" ? "max" : name == "Min" ? "min" : std::string(name);
        return {fmt::format("{}({})", lower, join(parts, ", ", Binding::sum)), Binding::whole,
                false};
    }

    // Numbers come first in sympy's order and last in people's.
    static Text sum(std::vector<Text> parts) {
        if (parts.front().text.find_first_not_of("-0123456789") == std::string::npos) {
            std::rotate(parts.begin(), parts.begin() + 1, parts.end());
        }
        std::string text;
        for (const auto& part : parts) {
            if (part.negative && !text.empty()) {
                text += " - " + part.text.substr(1);
            } else {
                text += (text.empty() ? "" : " + ") + part.text;
            }
        }
        return {text, Binding::sum, parts.front().negative};
    }

    std::string_view rest_;
};

}  // namespace

std::string readable(std::string_view expression) {
    const auto text = Parser(expression).whole();
    return text ? text->text : std::string(expression);
}

}  // namespace trocar::pt2
