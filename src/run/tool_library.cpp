#include "trocar/tool_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

template <class T>
T number_of(std::string_view key, const std::string& text, const char* what) {
    T value{};
    const auto* end = text.data() + text.size();
    const auto [at, failure] = std::from_chars(text.data(), end, value);
    if (failure != std::errc{} || at != end) {
        throw Error(Fault::usage, fmt::format("{}={} is no {}", key, text, what));
    }
    return value;
}

// What the loader says, without the path in front that the message names already.
std::string loader_message(const std::string& path) {
    const auto* said = ::dlerror();
    std::string message = said != nullptr ? said : "it cannot be loaded";
    if (message.starts_with(path + ": ")) {
        message.erase(0, path.size() + 2);
    }
    return message;
}

struct Closed {
    void operator()(void* library) const { ::dlclose(library); }
};

}  // namespace

const std::string* ToolSettings::find(std::string_view key) const {
    used_.emplace_back(key);
    const auto found = std::find_if(pairs_.begin(), pairs_.end(),
                                    [&](const auto& pair) { return pair.first == key; });
    return found == pairs_.end() ? nullptr : &found->second;
}

std::string ToolSettings::text(std::string_view key, std::string_view otherwise) const {
    const auto* value = find(key);
    return value != nullptr ? *value : std::string(otherwise);
}

double ToolSettings::number(std::string_view key, double otherwise) const {
    const auto* value = find(key);
    return value != nullptr ? number_of<double>(key, *value, "number") : otherwise;
}

std::int64_t ToolSettings::integer(std::string_view key, std::int64_t otherwise) const {
    const auto* value = find(key);
    return value != nullptr ? number_of<std::int64_t>(key, *value, "whole number") : otherwise;
}

Selector ToolSettings::selector(std::string_view key, Selector otherwise) const {
    const auto* value = find(key);
    return value != nullptr ? parse_selector(*value) : std::move(otherwise);
}

std::vector<std::string> ToolSettings::unused() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : pairs_) {
        if (std::find(used_.begin(), used_.end(), key) == used_.end()) {
            keys.push_back(key);
        }
    }
    return keys;
}

std::shared_ptr<Tool> load_tool(const std::filesystem::path& path, const ToolSettings& settings) {
    std::error_code failure;
    if (!std::filesystem::is_regular_file(path, failure)) {
        throw Error(Fault::input, fmt::format("there is no tool library '{}'", path.string()));
    }
    // A name without a slash would be looked for elsewhere.
    const auto absolute = std::filesystem::absolute(path).string();
    auto* opened = ::dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
        throw Error(
            Fault::input,
            fmt::format("'{}' cannot be loaded: {}", path.string(), loader_message(absolute)),
            "a tool is a shared library for this machine, compiled against the headers of "
            "this Trocar");
    }
    const std::shared_ptr<void> library(opened, Closed{});
    const auto* entry = static_cast<const ToolEntry*>(::dlsym(opened, "trocar_tool"));
    if (entry == nullptr) {
        throw Error(Fault::input,
                    fmt::format("'{}' is no tool: it has no symbol trocar_tool", path.string()),
                    "write TROCAR_TOOL(Type, \"what it does\") at its end");
    }
    if (entry->abi != tool_abi) {
        throw Error(Fault::input,
                    fmt::format("'{}' was compiled for version {} of the tool interface, this "
                                "Trocar has version {}",
                                path.string(), entry->abi, tool_abi),
                    "compile it again against the headers of this Trocar");
    }
    auto made = entry->make(settings);
    if (const auto unknown = settings.unused(); !unknown.empty()) {
        made.reset();
        throw Error(Fault::usage,
                    fmt::format("the tool {} has no setting {}", entry->name, join(unknown, ", ")));
    }
    if (made->name().empty()) {
        made->set_name(entry->name);
    }
    // The tool's code is in the library, that of its destructor included.
    auto* tool = made.release();
    return {tool, [library](Tool* ended) { delete ended; }};
}

ToolChoice parse_tool(std::string_view text) {
    ToolChoice choice;
    const auto comma = text.find(',');
    choice.path = text.substr(0, comma);
    if (choice.path.empty()) {
        throw Error(Fault::usage, fmt::format("'{}' names no tool library", text),
                    "write PATH[,key=value…], as in ./mytool.so,limit=3");
    }
    auto rest = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    while (!rest.empty()) {
        const auto end = rest.find(',');
        const auto word = rest.substr(0, end);
        const auto equals = word.find('=');
        if (equals == std::string_view::npos || equals == 0) {
            throw Error(Fault::usage, fmt::format("'{}' is no setting of a tool", word),
                        "write key=value");
        }
        choice.settings.emplace_back(word.substr(0, equals), word.substr(equals + 1));
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    }
    return choice;
}

}  // namespace trocar
