#include "cli/app.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <new>

#include "cli/common.h"
#include "cli/context.h"
#include "cli/documents.h"
#include "cli/guard.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/verbs.h"
#include "trocar/error.h"
#include "trocar/version.h"
#include "util/text.h"

namespace trocar::cli {

namespace {

constexpr const char* bug_hint =
    "this is a bug in trocar; please report it with the command and, if you can, the model";

int exit_code(Fault fault) {
    switch (fault) {
        case Fault::usage:
            return 2;
        case Fault::input:
        case Fault::unsupported:
            return 3;
        case Fault::engine:
            return 4;
        case Fault::interrupted:
            return 130;
        case Fault::internal:
            break;
    }
    return 70;
}

// The command's name, and the arguments without it. Options that every command has may stand before
// the name too; behind others there is none when `strict`.
struct Words {
    std::string name;  // empty: none
    std::vector<std::string> rest;
};

Words take_name(std::span<const std::string> arguments, bool strict = false) {
    Declarations declarations;
    Common common;
    declare(declarations, common, false);
    Words words;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto& argument = arguments[i];
        if (!argument.starts_with('-')) {
            words.name = argument;
            words.rest.insert(words.rest.end(),
                              arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                              arguments.end());
            break;
        }
        const auto* option = declarations.find(argument.substr(0, argument.find('=')));
        if (strict && !option) {
            words.rest.assign(arguments.begin(), arguments.end());
            break;
        }
        words.rest.push_back(argument);
        if (option && !option->is_flag() && argument.find('=') == std::string::npos &&
            i + 1 < arguments.size()) {
            words.rest.push_back(arguments[++i]);
        }
    }
    return words;
}

// Asks for help before anything else is looked at: a line that is not finished gets help too.
bool asks(const std::vector<std::string>& arguments, const char* name) {
    const auto end = std::find(arguments.begin(), arguments.end(), "--");
    return std::find(arguments.begin(), end, name) != end;
}

// The command of a tool that the arguments name, without its name in them; else the tool itself.
const Verb& take_command(const Verb& verb, const std::vector<Verb>& all,
                         std::vector<std::string>& arguments) {
    const auto commands = commands_of(verb, all);
    auto words = commands.empty() ? Words{} : take_name(arguments, true);
    if (words.name.empty()) {
        return verb;
    }
    std::vector<std::string> names;
    for (const auto* command : commands) {
        if (command->last_name() == words.name) {
            arguments = std::move(words.rest);
            return *command;
        }
        names.push_back(command->last_name());
    }
    std::error_code ignored;
    const auto guess = did_you_mean(words.name, names);
    if (!verb.has_work || (!guess.empty() && !std::filesystem::exists(words.name, ignored))) {
        throw Error(Fault::usage,
                    fmt::format("{} has no command '{}'{}", verb.name, words.name,
                                verb.has_work ? ", and there is no such file" : ""),
                    fmt::format("{}{}`trocar {} --help` lists the commands", guess,
                                guess.empty() ? "" : " ", verb.name));
    }
    return verb;
}

int work(const Verb& verb, const std::vector<Verb>& all, const std::vector<std::string>& arguments,
         Console console) {
    Declarations declarations;
    const auto answer_with = verb.bind(declarations, all);
    Common common;
    if (!verb.plain) {
        declare(declarations, common, verb.several_engines);
    }
    parse(verb.name, declarations, arguments);
    check(common);
    const Destinations destinations(common);
    CommandContext context(common, console);
    auto answer = answer_with(context);
    context.end_progress();
    if (const auto* text = std::get_if<std::string>(&answer)) {
        console.out.write(*text);
        return 0;
    }
    auto& report = std::get<Report>(answer);
    if (!report.document.empty()) {
        console.out.write(report.document);
        return 0;
    }
    const bool verdict = report.verdict;
    const bool partial = report.partial;
    destinations.write(std::move(report), console);
    return partial || interrupted() ? 130 : verdict ? 0 : 1;
}

int dispatch(std::span<const std::string> arguments, std::span<const Command* const> tools,
             Console console) {
    const auto all = make_verbs(tools);
    auto words = take_name(arguments);
    if (words.name.empty()) {
        if (asks(words.rest, "-h") || asks(words.rest, "--help")) {
            console.out.write(main_help(all));
            return 0;
        }
        if (asks(words.rest, "--version")) {
            console.out.write(fmt::format("trocar {}\n", version()));
            return 0;
        }
        if (!words.rest.empty()) {
            throw Error(Fault::usage, "no tool is named", "`trocar --help` lists all tools");
        }
        console.err.write(main_help(all));
        return exit_code(Fault::usage);
    }
    const auto& verb = take_command(need_verb(all, words.name), all, words.rest);
    if (asks(words.rest, "--help")) {
        console.out.write(full_help(verb, all));
        return 0;
    }
    if (asks(words.rest, "-h")) {
        console.out.write(short_help(verb, all));
        return 0;
    }
    if (!verb.has_work) {
        throw Error(Fault::usage, fmt::format("{} needs a command", verb.name),
                    fmt::format("`trocar {} --help` lists them", verb.name));
    }
    return work(verb, all, words.rest, console);
}

}  // namespace

int run(std::span<const std::string> arguments, std::span<const Command* const> tools,
        Console console) {
    try {
        const auto complain = [&](std::string_view sentence, std::string_view hint) {
            console.err.write(complaint("", sentence, hint, console.err.colour("auto")));
        };
        try {
            return dispatch(arguments, tools, console);
        } catch (const BrokenPipe&) {
            return 0;
        } catch (const ChildEnded& child) {
            return child.code;
        } catch (const Error& e) {
            const bool bug = e.fault() == Fault::internal && e.hint().empty();
            complain(e.what(), bug ? bug_hint : e.hint());
            return exit_code(e.fault());
        } catch (const std::bad_alloc&) {
            complain("there is not enough memory for this", "");
        } catch (const std::exception& e) {
            complain(fmt::format("unexpected failure: {}", e.what()), bug_hint);
        }
    } catch (const std::exception&) {
        // Standard error cannot be written: only the code is left to say it.
        return 70;
    }
    return 70;
}

}  // namespace trocar::cli
