#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/documents.h"
#include "cli/terminal.h"
#include "trocar/version.h"
#include "util/display.h"
#include "util/text.h"

namespace trocar::cli {

namespace {

constexpr std::size_t page = 80;    // columns of help
constexpr std::size_t margin = 26;  // where explanations begin

// "  name      what it is, over as many lines as it takes"
std::string entry(const std::string& name, const std::string& what, std::size_t column = margin) {
    std::string out = "  " + name;
    if (display_width(out) + 2 > column) {
        out += '\n' + std::string(column, ' ');
    } else {
        out = pad_right(out, column);
    }
    bool first = true;
    for (const auto& line : wrap(what, page - column)) {
        out += (first ? "" : std::string(column, ' ')) + line + '\n';
        first = false;
    }
    return out;
}

// The beginning of an explanation that says what it is about, on one line.
std::string gist(const std::string& text, std::size_t width) {
    auto end = text.size();
    for (const auto* stop : {": ", "; ", " ("}) {
        end = std::min(end, text.find(stop));
    }
    const auto lines = wrap(text.substr(0, end), width - 1);
    return lines.size() == 1 ? lines[0] : lines[0] + "…";
}

std::string opening(const Verb& verb, const Declarations& declarations,
                    const std::vector<Verb>& verbs, bool options) {
    std::string out;
    for (const auto& line : wrap(fmt::format("trocar {}: {}", verb.name, verb.summary), page)) {
        out += line + '\n';
    }
    out += fmt::format("\nUsage: {}\n", usage(verb, declarations));
    if (!declarations.positional_list().empty()) {
        out += '\n';
        for (const auto& positional : declarations.positional_list()) {
            out += entry(positional.name, positional.help);
        }
    }
    if (const auto commands = commands_of(verb, verbs); !commands.empty()) {
        out += "\nCommands\n";
        for (const auto* command : commands) {
            out += entry(command->last_name(), command->summary, 14);
        }
        out += fmt::format("\n`trocar {} COMMAND --help` explains one of them\n", verb.name);
    }
    const auto& all = declarations.options();
    if (verb.has_work && options && std::any_of(all.begin(), all.end(), [](const Option& o) {
            return o.group == Group::options;
        })) {
        out += "\nOptions\n";
    }
    return out;
}

std::string group_of(const Declarations& declarations, Group group,
                     const std::string& section = {}) {
    std::string out;
    for (const auto& option : declarations.options()) {
        if (option.group == group && option.section == section) {
            out += entry(spelled(option), long_help(option));
        }
    }
    return out;
}

std::string shorts(const Declarations& declarations, Group group, const std::string& section = {}) {
    std::string out;
    for (const auto& option : declarations.options()) {
        if (option.group == group && option.section == section) {
            out += (out.empty() ? "" : " ") + option.names.front();
        }
    }
    return out;
}

}  // namespace

std::span<const Fact> exit_codes() {
    static constexpr std::array facts{
        Fact{"0", "done"},
        Fact{"1", "the tool's answer is \"no\": outputs differ, a threshold is missed"},
        Fact{"2", "the command line is wrong"},
        Fact{"3", "a file cannot be read or written, or is not supported"},
        Fact{"4", "the engine is missing or failed"},
        Fact{"70", "a fault of trocar itself"},
        Fact{"130", "interrupted; the partial report is written"},
    };
    return facts;
}

std::span<const Fact> environment_variables() {
    static constexpr std::array facts{
        Fact{"TROCAR_ENGINE_PATH", "folders to look for engines in first, separated by colons"},
        Fact{"TROCAR_DEPS", "folder with engines in folders NAME-VERSION, looked in next"},
        Fact{"VIRTUAL_ENV, CONDA_PREFIX, PATH",
             "the Python environment whose packages are looked in for engines"},
        Fact{"NO_COLOR, TERM", "no colours when NO_COLOR is set or TERM is dumb"},
        Fact{"COLUMNS", "width of the text when the output is not a terminal"},
        Fact{"LC_ALL, LC_CTYPE, LANG", "whether characters beyond ASCII can be shown"},
    };
    return facts;
}

std::string spelled(const Option& option) {
    auto text = fmt::format("{}", join(option.names, ", "));
    return option.placeholder.empty() ? text : text + ' ' + option.placeholder;
}

std::string long_help(const Option& option) {
    auto text = option.help;
    if (option.required) {
        text += " (required)";
    }
    if (option.repeats()) {
        text += " (may be repeated)";
    }
    if (!option.initial.empty() && option.initial != "-1") {
        text += fmt::format(" (default {})", option.initial);
    }
    return text;
}

std::string usage(const Verb& verb, const Declarations& declarations) {
    auto text = "trocar " + verb.name;
    if (!verb.has_work) {
        return text + " COMMAND ...";
    }
    for (const auto& positional : declarations.positional_list()) {
        auto name = positional.name + (positional.repeats() ? "..." : "");
        text += positional.optional ? fmt::format(" [{}]", name) : " " + name;
    }
    bool optional = false;
    for (const auto& option : declarations.options()) {
        if (option.required) {
            text += fmt::format(" {} {}", option.name(), option.placeholder);
        }
        optional = optional || !option.required;
    }
    return text + (optional ? " [options]" : "");
}

std::string short_help(const Verb& verb, const std::vector<Verb>& all) {
    const auto declarations = declarations_of(verb, all);
    auto out = opening(verb, declarations, all, true);
    if (!verb.has_work) {
        return out;
    }
    for (const auto& option : declarations.options()) {
        if (option.group == Group::options && option.section.empty()) {
            const auto name = "  " + pad_right(spelled(option), margin - 4) + "  ";
            out += name + gist(option.help, page - display_width(name)) + '\n';
        }
    }
    for (const auto& title : declarations.sections()) {
        out += fmt::format("\n{}\n", title);
        for (const auto& line : wrap(shorts(declarations, Group::options, title), page - 2)) {
            out += "  " + line + '\n';
        }
    }
    if (!verb.plain) {
        out += fmt::format("\nOutput  {}\nEngine  {}\n", shorts(declarations, Group::output),
                           shorts(declarations, Group::engine));
    }
    return out + fmt::format("\n`trocar {} --help` has all of it, with examples\n", verb.name);
}

std::string full_help(const Verb& verb, const std::vector<Verb>& all) {
    const auto declarations = declarations_of(verb, all);
    auto out = opening(verb, declarations, all, true);
    if (!verb.has_work) {
        return out;
    }
    out += group_of(declarations, Group::options);
    for (const auto& title : declarations.sections()) {
        out += fmt::format("\n{}\n", title) + group_of(declarations, Group::options, title);
    }
    if (!verb.plain) {
        out += "\nOutput\n" + group_of(declarations, Group::output);
        out += "\nEngine\n" + group_of(declarations, Group::engine);
    }
    if (!declarations.examples().empty()) {
        out += "\nExamples\n";
        for (const auto& example : declarations.examples()) {
            out += fmt::format("  $ {}\n      {}\n", example.command, example.what);
        }
    }
    if (!verb.plain) {
        out += "\nExit codes\n";
        for (const auto& code : exit_codes()) {
            out += entry(code.name, code.what, 8);
        }
    }
    return out;
}

std::string main_help(const std::vector<Verb>& all) {
    std::string out = fmt::format(
        "trocar {}: read a neural network, cut it at any op, run it on a real engine\n\n"
        "Usage: trocar TOOL MODEL [options]\n",
        version());
    const auto list = [&](const char* title, bool tools) {
        if (std::any_of(all.begin(), all.end(),
                        [&](const Verb& verb) { return verb.is_tool == tools; })) {
            out += fmt::format("\n{}\n", title);
            for (const auto& verb : all) {
                if (verb.is_tool == tools && verb.parent.empty()) {
                    out += entry(verb.name, verb.summary, 14);
                }
            }
        }
    };
    list("Tools", true);
    list("About trocar itself", false);
    return out + "\n`trocar TOOL -h` shows a tool's options, `trocar TOOL --help` explains them\n";
}

}  // namespace trocar::cli
