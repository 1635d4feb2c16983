#include "util/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace trocar {

namespace {

template <class Items>
std::string joined(const Items& items, std::string_view separator) {
    fmt::memory_buffer text;
    bool first = true;
    for (const auto& item : items) {
        if (!first) {
            text.append(separator);
        }
        first = false;
        fmt::format_to(fmt::appender(text), "{}", item);
    }
    return fmt::to_string(text);
}

constexpr std::size_t longest_compared = 255;
constexpr int edit_cost = 2;
constexpr int case_cost = 1;

char folded(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

int replace_cost(char a, char b) {
    if (a == b) {
        return 0;
    }
    return folded(a) == folded(b) ? case_cost : edit_cost;
}

// Costs of a row of the edit-distance table; one more than the longest text has characters.
using CostRow = std::array<int, longest_compared + 1>;

// The cost of turning `a` into `b`, or `limit` + 1 when it is above `limit`.
int distance(std::string_view a, std::string_view b, int limit) {
    const auto longer = std::max(a.size(), b.size());
    const auto shorter = std::min(a.size(), b.size());
    if (longer > longest_compared || static_cast<int>(longer - shorter) * edit_cost > limit) {
        return limit + 1;
    }
    std::array<CostRow, 3> rows{};
    for (std::size_t j = 0; j <= b.size(); ++j) {
        rows[0][j] = static_cast<int>(j) * edit_cost;
    }
    int lowest_before = 0;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        auto& row = rows[i % 3];
        const auto& above = rows[(i + 2) % 3];
        const auto& two_above = rows[(i + 1) % 3];
        row[0] = static_cast<int>(i) * edit_cost;
        int lowest = row[0];
        for (std::size_t j = 1; j <= b.size(); ++j) {
            int cost = std::min({above[j] + edit_cost, row[j - 1] + edit_cost,
                                 above[j - 1] + replace_cost(a[i - 1], b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                cost = std::min(cost, two_above[j - 2] + edit_cost);
            }
            row[j] = cost;
            lowest = std::min(lowest, cost);
        }
        // A swap reaches back two rows, so one row above the limit is not yet the end.
        if (lowest > limit && lowest_before > limit) {
            return limit + 1;
        }
        lowest_before = lowest;
    }
    return std::min(rows[a.size() % 3][b.size()], limit + 1);
}

bool contains(std::string_view text, std::string_view part) {
    const auto same = [](char a, char b) { return folded(a) == folded(b); };
    return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

}  // namespace

std::optional<std::string> closest(std::string_view name, std::span<const std::string> candidates) {
    if (name.empty()) {
        return std::nullopt;
    }
    const auto edits = std::clamp<std::size_t>(name.size() / 3, 1, 6);
    int limit = static_cast<int>(edits) * edit_cost;
    const std::string* best = nullptr;
    for (const auto& candidate : candidates) {
        // All of a name replaced is no likeness: "a" does not mean "b".
        const auto most = static_cast<int>(std::max(name.size(), candidate.size())) * edit_cost - 1;
        const auto cost = distance(name, candidate, limit);
        if (cost <= limit && cost <= most) {
            best = &candidate;
            limit = cost - 1;
            if (limit < 0) {
                break;
            }
        }
    }
    if (best == nullptr && name.size() >= 3) {
        for (const auto& candidate : candidates) {
            if (contains(candidate, name) && (best == nullptr || candidate.size() < best->size())) {
                best = &candidate;
            }
        }
    }
    return best != nullptr ? std::optional(*best) : std::nullopt;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
    const auto likely = closest(name, candidates);
    return likely ? fmt::format("did you mean '{}'?", *likely) : std::string();
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (;;) {
        const auto end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string counted(std::size_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string csv_field(std::string text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos && !text.starts_with(' ') &&
        !text.ends_with(' ')) {
        return text;
    }
    std::string quoted = "\"";
    for (const char c : text) {
        quoted.append(c == '"' ? 2 : 1, c);
    }
    return quoted + '"';
}

std::optional<double> parse_share(std::string_view text) {
    text = trim(text);
    const bool percent = text.ends_with('%');
    text = trim(percent ? text.substr(0, text.size() - 1) : text);
    text.remove_prefix(text.starts_with('+') ? 1 : 0);
    double value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
        return std::nullopt;
    }
    return percent ? value / 100 : value;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
    text = trim(text);
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto unit = trim(text.substr(static_cast<std::size_t>(end - text.data())));
    constexpr std::array<std::pair<std::string_view, double>, 18> units{{{"", 1},
                                                                         {"B", 1},
                                                                         {"K", 0x1p10},
                                                                         {"M", 0x1p20},
                                                                         {"G", 0x1p30},
                                                                         {"T", 0x1p40},
                                                                         {"k", 0x1p10},
                                                                         {"m", 0x1p20},
                                                                         {"g", 0x1p30},
                                                                         {"t", 0x1p40},
                                                                         {"kB", 1e3},
                                                                         {"MB", 1e6},
                                                                         {"GB", 1e9},
                                                                         {"TB", 1e12},
                                                                         {"KiB", 0x1p10},
                                                                         {"MiB", 0x1p20},
                                                                         {"GiB", 0x1p30},
                                                                         {"TiB", 0x1p40}}};
    for (const auto& [name, scale] : units) {
        if (error == std::errc() && unit == name && number >= 0 && number * scale < 0x1p62) {
            return static_cast<std::uint64_t>(number * scale);
        }
    }
    return std::nullopt;
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return text;
}

std::string join(std::span<const std::string> items, std::string_view separator) {
    return joined(items, separator);
}
std::string join(std::span<const std::string_view> items, std::string_view separator) {
    return joined(items, separator);
}
std::string join(std::span<const std::int64_t> items, std::string_view separator) {
    return joined(items, separator);
}
std::string join(std::span<const std::size_t> items, std::string_view separator) {
    return joined(items, separator);
}
std::string join(std::span<const float> items, std::string_view separator) {
    return joined(items, separator);
}
std::string join(std::span<const std::int32_t> items, std::string_view separator) {
    return joined(items, separator);
}
std::string join(std::span<const double> items, std::string_view separator) {
    return joined(items, separator);
}
std::string join(const std::set<std::string>& items, std::string_view separator) {
    return joined(items, separator);
}

}  // namespace trocar
