#pragma once

#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/declarations.h"
#include "trocar/command.h"

namespace trocar::cli {

using Answer = std::variant<Report, std::string>;  // a text is printed as it is
using Work = std::function<Answer(Context&)>;

// A word that may follow `trocar`: a tool of the library, or a command of our own.
struct Verb {
    std::string name;
    std::string summary;
    bool is_tool = false;
    bool plain = false;  // prints a text: has no options for output and engine
    // `all` outlives the work.
    std::function<Work(Declarations&, const std::vector<Verb>& all)> bind;
    // Of a tool's command, whose name is "TOOL COMMAND": the tool.
    std::string parent = {};
    bool several_engines = false;
    bool has_work = true;  // false: a tool that does nothing without one of its commands

    std::string last_name() const { return name.substr(name.rfind(' ') + 1); }
};

// The tools, each followed by its commands, then our own commands.
std::vector<Verb> make_verbs(std::span<const Command* const> tools);

// The commands of a tool.
std::vector<const Verb*> commands_of(const Verb& verb, const std::vector<Verb>& all);

const Verb* find_verb(const std::vector<Verb>& all, const std::string& name);
// Throws Error(usage), with the name that was probably meant.
const Verb& need_verb(const std::vector<Verb>& all, const std::string& name);

// All that the verb takes, the options that every command has included.
Declarations declarations_of(const Verb& verb, const std::vector<Verb>& all);

}  // namespace trocar::cli
