#include "cli/verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/builtins.h"
#include "cli/common.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::cli {

namespace {

Verb verb_of(const Command& tool, const std::string& parent) {
    Verb verb;
    verb.name = parent.empty() ? tool.name : fmt::format("{} {}", parent, tool.name);
    verb.summary = tool.summary;
    verb.is_tool = true;
    verb.parent = parent;
    verb.has_work = tool.bind != nullptr;
    verb.several_engines = tool.several_engines;
    verb.bind = [bind = tool.bind](Declarations& declarations, const std::vector<Verb>&) -> Work {
        return bind ? Work(bind(declarations)) : Work();
    };
    return verb;
}

}  // namespace

std::vector<Verb> make_verbs(std::span<const Command* const> tools) {
    std::vector<Verb> all;
    for (const auto* tool : tools) {
        all.push_back(verb_of(*tool, ""));
        for (const auto* command : tool->commands) {
            all.push_back(verb_of(*command, tool->name));
        }
    }
    for (auto& verb : builtin_verbs()) {
        all.push_back(std::move(verb));
    }
    return all;
}

std::vector<const Verb*> commands_of(const Verb& verb, const std::vector<Verb>& all) {
    std::vector<const Verb*> commands;
    for (const auto& other : all) {
        if (!verb.name.empty() && other.parent == verb.name) {
            commands.push_back(&other);
        }
    }
    return commands;
}

const Verb* find_verb(const std::vector<Verb>& all, const std::string& name) {
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const Verb& verb) { return verb.name == name; });
    return at == all.end() ? nullptr : &*at;
}

const Verb& need_verb(const std::vector<Verb>& all, const std::string& name) {
    if (const auto* verb = find_verb(all, name)) {
        return *verb;
    }
    std::error_code ignored;
    if (std::filesystem::exists(name, ignored)) {
        throw Error(Fault::usage, fmt::format("'{}' is a file, not a tool", name),
                    fmt::format("the tool comes first: trocar TOOL {}; `trocar --help` lists all "
                                "tools",
                                name));
    }
    std::vector<std::string> names;
    std::transform(all.begin(), all.end(), std::back_inserter(names),
                   [](const Verb& verb) { return verb.name; });
    const auto guess = did_you_mean(name, names);
    throw Error(
        Fault::usage, fmt::format("no tool named '{}'", name),
        fmt::format("{}{}`trocar --help` lists all tools", guess, guess.empty() ? "" : " "));
}

Declarations declarations_of(const Verb& verb, const std::vector<Verb>& all) {
    Declarations declarations;
    verb.bind(declarations, all);
    Common common;
    if (!verb.plain) {
        declare(declarations, common, verb.several_engines);
    }
    return declarations;
}

}  // namespace trocar::cli
