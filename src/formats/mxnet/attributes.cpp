#include "formats/mxnet/attributes.h"

#include <charconv>
#include <optional>

#include "util/text.h"

namespace trocar::mxnet {

namespace {

std::optional<std::int64_t> whole(std::string_view text) {
    if (text.ends_with('L')) {  // Python 2
        text.remove_suffix(1);
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && !text.empty()
               ? std::optional(value)
               : std::nullopt;
}

std::optional<float> real(std::string_view text) {
    if (text.empty() || text.find_first_not_of("+-.0123456789eE") != std::string_view::npos) {
        return std::nullopt;
    }
    float value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                    : std::nullopt;
}

// The parts of "(1, 2)" or "[1, 2]"; nothing for another text, and for lists in lists.
std::optional<std::vector<std::string>> parts_of(std::string_view text) {
    const bool list = text.size() >= 2 && ((text.front() == '(' && text.back() == ')') ||
                                           (text.front() == '[' && text.back() == ']'));
    if (!list) {
        return std::nullopt;
    }
    text = trim(text.substr(1, text.size() - 2));
    if (text.ends_with(',')) {  // "(1,)"
        text.remove_suffix(1);
    }
    if (text.find_first_of("()[]'\"") != std::string_view::npos) {
        return std::nullopt;
    }
    std::vector<std::string> parts;
    if (!text.empty()) {
        for (const auto& part : split(text, ',')) {
            parts.emplace_back(trim(part));
        }
    }
    return parts;
}

}  // namespace

Attribute::Value read_attribute(std::string_view text) {
    const auto plain = trim(text);
    if (plain == "True" || plain == "False") {
        return std::int64_t{plain == "True" ? 1 : 0};
    }
    if (const auto value = whole(plain)) {
        return *value;
    }
    if (const auto value = real(plain)) {
        return *value;
    }
    if (const auto parts = parts_of(plain)) {
        std::vector<std::int64_t> numbers;
        std::vector<float> reals;
        for (const auto& part : *parts) {
            if (const auto value = whole(part)) {
                numbers.push_back(*value);
            }
            if (const auto value = real(part)) {
                reals.push_back(*value);
            }
        }
        if (numbers.size() == parts->size()) {
            return numbers;
        }
        if (reals.size() == parts->size()) {
            return reals;
        }
    }
    return std::string(text);
}

}  // namespace trocar::mxnet
