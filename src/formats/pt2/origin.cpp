#include "formats/pt2/origin.h"

#include <fmt/format.h>

namespace trocar::pt2 {

namespace {

// The path in the innermost entry: what stands between its first and its last comma.
std::string_view innermost(std::string_view modules) {
    const auto last = modules.rfind(';');
    auto entry = last == std::string_view::npos ? modules : modules.substr(last + 1);
    const auto first = entry.find(',');
    if (first == std::string_view::npos) {
        return {};
    }
    entry.remove_prefix(first + 1);
    const auto second = entry.rfind(',');
    return entry.substr(0, second);
}

// "L['self'].layers[0].conv@1" → "layers.0.conv": older files have Python's expressions, and a
// module that is called again has a number after an @.
std::string plain_path(std::string_view path) {
    if (path.starts_with("_empty_nn_module_stack")) {  // of ops that export itself put in
        return {};
    }
    for (const std::string_view self : {"L['self']", "L__self__", "self"}) {
        if (path == self ||
            (path.starts_with(self) && (path[self.size()] == '.' || path[self.size()] == '['))) {
            path.remove_prefix(self.size());
            break;
        }
    }
    std::string plain;
    for (std::size_t i = 0; i < path.size(); ++i) {
        const char c = path[i];
        if (c == '@') {
            while (i + 1 < path.size() && path[i + 1] >= '0' && path[i + 1] <= '9') {
                ++i;
            }
        } else if (c == '[' || c == '.') {
            if (!plain.empty() && plain.back() != '.') {
                plain += '.';
            }
        } else if (c != ']' && c != '\'' && c != '"') {
            plain += c;
        }
    }
    return plain;
}

// The last line of a trace that names a place outside torch, as "model.py:42"; the last of all
// where there is none.
std::string last_place(std::string_view trace) {
    constexpr std::string_view file = "File \"";
    constexpr std::string_view line = "\", line ";
    std::string last;
    for (auto begin = trace.rfind(file); begin != std::string_view::npos;
         begin = begin == 0 ? std::string_view::npos : trace.rfind(file, begin - 1)) {
        auto rest = trace.substr(begin + file.size());
        const auto end = rest.find(line);
        if (end == std::string_view::npos) {
            continue;
        }
        const auto path = rest.substr(0, end);
        rest.remove_prefix(end + line.size());
        const auto place =
            fmt::format("{}:{}", path.substr(path.find_last_of("/\\") + 1),  // npos + 1 is 0
                        rest.substr(0, rest.find_first_not_of("0123456789")));
        if (path.find("/torch/") == std::string_view::npos) {
            return place;
        }
        last = last.empty() ? place : last;
    }
    return last.empty() ? std::string(trace) : last;
}

}  // namespace

Origin read_origin(std::string_view modules, std::string_view trace) {
    return {.module = plain_path(innermost(modules)), .source = last_place(trace)};
}

}  // namespace trocar::pt2
