#include "data/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "trocar/error.h"
#include "util/files.h"
#include "util/text.h"

namespace trocar::data {

namespace fs = std::filesystem;

namespace {

// The fields of one line. A field in quotes may hold commas, and quotes that are doubled.
std::vector<std::string> fields(std::string_view line, std::string_view where) {
    std::vector<std::string> result(1);
    bool inside = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '"' && inside && i + 1 < line.size() && line[i + 1] == '"') {
            result.back().push_back('"');
            ++i;
        } else if (line[i] == '"') {
            inside = !inside;
        } else if (line[i] == ',' && !inside) {
            result.emplace_back();
        } else {
            result.back().push_back(line[i]);
        }
    }
    if (inside) {
        throw Error(Fault::input, fmt::format("{}: a quoted field does not end", where));
    }
    for (auto& field : result) {
        field = trim(field);
    }
    return result;
}

}  // namespace

Listing listing(const fs::path& folder) {
    std::error_code fault;
    Listing result;
    for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault)) {
        const auto name = at->path().filename().string();
        if (name.starts_with('.')) {
            continue;
        }
        std::error_code ignored;
        (at->is_directory(ignored) ? result.folders : result.files).push_back(name);
    }
    if (fault) {
        throw Error(Fault::input,
                    fmt::format("{} cannot be listed: {}", quoted(folder), fault.message()));
    }
    std::ranges::sort(result.files);
    std::ranges::sort(result.folders);
    return result;
}

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
}

bool has_suffix(std::string_view name, std::string_view suffix) {
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    return name.size() >= suffix.size() &&
           std::ranges::equal(name.substr(name.size() - suffix.size()), suffix, {}, lower);
}

std::string quoted(const fs::path& path) {
    return fmt::format("'{}'", path.string());
}

std::vector<std::vector<std::string>> read_csv(const fs::path& path) {
    const auto text = read_file(path);
    std::vector<std::vector<std::string>> rows;
    std::size_t number = 0;
    std::string_view rest = text;
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (rest.starts_with(byte_order_mark)) {
        rest.remove_prefix(byte_order_mark.size());
    }
    while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size());
        auto line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        ++number;
        if (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        if (!trim(line).empty()) {
            rows.push_back(fields(line, fmt::format("{}, line {}", quoted(path), number)));
        }
    }
    return rows;
}

std::int64_t parse_label(std::string_view text, std::string_view where) {
    std::int64_t label = 0;
    const auto* end = text.data() + text.size();
    const auto [last, status] = std::from_chars(text.data(), end, label);
    if (text.empty() || status != std::errc() || last != end) {
        throw Error(Fault::input, fmt::format("{}: '{}' is no number of a class", where, text));
    }
    if (label < 0) {
        throw Error(Fault::input, fmt::format("{}: the label {} is negative", where, label),
                    "number the classes from 0");
    }
    return label;
}

bool wants_train(const DataOptions& options) {
    if (options.split != "" && options.split != "test" && options.split != "train") {
        throw Error(Fault::usage, fmt::format("'{}' is no split of data", options.split),
                    "it is test or train");
    }
    return options.split == "train";
}

}  // namespace trocar::data
