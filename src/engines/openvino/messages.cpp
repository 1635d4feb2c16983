#include "engines/openvino/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "util/text.h"

namespace trocar::ov {

namespace {

constexpr std::string_view unknown_ops = "-- No conversion rule found for operations: ";

// "Check 'a == b' failed at src/x.cpp:12: rest" → " rest", wherever it stands. What comes after the
// location says why.
std::string without_condition(std::string line) {
    constexpr std::string_view before = "Check '";
    constexpr std::string_view after = "' failed at ";
    for (std::size_t start = 0; (start = line.find(before, start)) != std::string::npos;) {
        const auto place = line.find(after, start);
        if (place == std::string::npos) {
            break;
        }
        auto end = line.find(':', place);  // of the path; the line number follows
        end = end == std::string::npos ? end : line.find(':', end + 1);
        line.erase(start, end == std::string::npos ? end : end + 1 - start);
    }
    return line;
}

// "Cast 'c': Exception from src/x.cpp:12:" → "Cast 'c': ".
std::string without_place(std::string line) {
    constexpr std::string_view before = "Exception from ";
    const auto start = line.find(before);
    if (start == std::string::npos || start == 0) {
        return line;
    }
    auto end = line.find(':', start);
    end = end == std::string::npos ? end : line.find(':', end + 1);
    return line.erase(start, end == std::string::npos ? end : end + 1 - start);
}

// Replaces BEFORE type BETWEEN name AFTER by "type 'name':".
std::string with_op_first(std::string line, std::string_view before, std::string_view between,
                          std::string_view after) {
    const auto start = line.find(before);
    if (start == std::string::npos) {
        return line;
    }
    const auto type = start + before.size();
    const auto middle = line.find(between, type);
    const auto name = middle + between.size();
    const auto end = middle == std::string::npos ? middle : line.find(after, name);
    if (end == std::string::npos) {
        return line;
    }
    auto op = line.substr(type, middle - type);
    if (end > name) {
        op += fmt::format(" '{}'", line.substr(name, end - name));
    }
    return line.substr(0, start) + op + ":" + line.substr(end + after.size());
}

// Does the line say nothing by itself?
bool is_noise(std::string_view line) {
    constexpr std::string_view starts[]{"Exception from ",
                                        "FrontEnd API failed with ",
                                        "Model wasn't fully converted",
                                        "Summary:",
                                        "-- Conversion is failed for",
                                        "To facilitate the conversion",
                                        "While validating node '"};
    return line.empty() || line.ends_with(" with a message:") ||
           std::any_of(std::begin(starts), std::end(starts),
                       [&](std::string_view start) { return line.starts_with(start); });
}

std::string one_line(std::string_view text) {
    std::string line;
    for (const char c : text) {
        const bool space = static_cast<unsigned char>(c) <= ' ';
        if (!space) {
            line += c;
        } else if (!line.empty() && line.back() != ' ') {
            line += ' ';
        }
    }
    while (!line.empty() && (line.back() == ' ' || line.back() == '.' || line.back() == ':')) {
        line.pop_back();
    }
    return line;
}

}  // namespace

bool says_unknown_op(std::string_view message) {
    return message.find(unknown_ops) != std::string_view::npos;
}

std::string trim_message(std::string_view message) {
    std::string text;
    for (const auto& raw : split(message, '\n')) {
        auto line = without_condition(raw);
        line = with_op_first(std::move(line), "While validating ONNX node '<Node(", "): ", ">':");
        line = with_op_first(std::move(line), "[CPU] ", " node with name '", "'");
        if (line.starts_with(unknown_ops)) {
            line = "it does not know " + line.substr(unknown_ops.size());
        }
        line = without_place(std::move(line));
        line.resize(line.find_last_not_of(" \t\r") + 1);
        line = one_line(line) + (line.ends_with(":") ? ":" : "");
        if (!is_noise(line) && text.find(line) == std::string::npos) {
            text += text.empty() || text.ends_with(":") ? "" : ";";
            text += text.empty() ? "" : " ";
            text += line;
        }
    }
    text = one_line(text);
    if (text.empty()) {
        text = one_line(message);
    }
    return text.empty() ? "it gave no reason" : text;
}

}  // namespace trocar::ov
