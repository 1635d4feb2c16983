#include "cli/parse.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <deque>
#include <map>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar::cli {

namespace {

std::string help_hint(const std::string& command) {
    return fmt::format("`trocar {} --help` lists the options", command);
}

[[noreturn]] void refuse(const std::string& sentence, std::string hint) {
    throw Error(Fault::usage, sentence, std::move(hint));
}

[[noreturn]] void refuse_without_value(const Option& option) {
    refuse(fmt::format("{} needs a value", option.name()),
           fmt::format("{} {}: {}", option.name(), option.placeholder,
                       option.help.substr(0, option.help.find(';'))));
}

template <class Number>
Number number(const Option& option, const std::string& text, const char* kind) {
    Number value{};
    const auto* begin = text.data() + (text.starts_with('+') ? 1 : 0);
    const auto* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(begin, end, value);
    if (failure == std::errc::result_out_of_range) {
        refuse(fmt::format("{} {} is out of range", option.name(), text), {});
    }
    if (failure != std::errc() || stop != end) {
        refuse(fmt::format("{} takes {}, not '{}'", option.name(), kind, text), {});
    }
    return value;
}

const std::string& chosen(const Option& option, const std::string& text) {
    const auto& choices = option.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
        const auto guess = did_you_mean(text, choices);
        refuse(fmt::format("{} cannot be '{}'", option.name(), text),
               fmt::format("{}{}one of: {}", guess, guess.empty() ? "" : " ", join(choices, ", ")));
    }
    return text;
}

struct Assign {
    const Option& option;
    const std::vector<std::string>& given;  // not empty
    void operator()(bool* target) const { *target = true; }
    void operator()(std::string* target) const { *target = chosen(option, given.back()); }
    void operator()(std::vector<std::string>* target) const { *target = given; }
    void operator()(std::int64_t* target) const {
        *target = number<std::int64_t>(option, given.back(), "a whole number");
    }
    void operator()(double* target) const {
        *target = number<double>(option, given.back(), "a number");
    }
};

// Hands the positional arguments out in order. One that repeats takes all but what those after it
// need.
void assign_positionals(const std::string& command, const Declarations& declarations,
                        const std::vector<std::string>& given) {
    const auto& wanted = declarations.positional_list();
    std::size_t at = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const auto& positional = wanted[i];
        if (at == given.size()) {
            if (!positional.optional) {
                refuse(fmt::format("{} needs {}: {}", command, positional.name, positional.help),
                       help_hint(command));
            }
            continue;
        }
        if (const auto* many = std::get_if<std::vector<std::string>*>(&positional.target)) {
            const auto after = wanted.size() - i - 1;
            const auto count = given.size() - at > after ? given.size() - at - after : 1;
            (*many)->assign(given.begin() + static_cast<std::ptrdiff_t>(at),
                            given.begin() + static_cast<std::ptrdiff_t>(at + count));
            at += count;
        } else {
            *std::get<std::string*>(positional.target) = given[at++];
        }
    }
    if (at < given.size()) {
        refuse(fmt::format("{} takes no further argument '{}'", command, given[at]),
               help_hint(command));
    }
}

void check_unknown(const std::string& command, const Declarations& declarations,
                   const std::vector<std::string>& unknown) {
    for (const auto& argument : unknown) {
        if (argument.size() > 1 && argument.starts_with('-')) {
            const auto name = argument.substr(0, argument.find('='));
            // One letter is as near to any other.
            const auto guess = name.size() > 2 ? did_you_mean(name, declarations.names()) : "";
            refuse(fmt::format("{} has no option '{}'", command, name),
                   fmt::format("{}{}{}", guess, guess.empty() ? "" : " ", help_hint(command)));
        }
    }
}

}  // namespace

// CLI11 takes the arguments apart; what they mean, and what is wrong with them, is said here.
void parse(const std::string& command, const Declarations& declarations,
           std::span<const std::string> arguments) {
    CLI::App app;
    app.set_help_flag();
    app.allow_extras();
    std::map<const Option*, CLI::Option*> parsed;
    std::deque<std::vector<std::string>> values;
    std::deque<bool> flags;
    for (const auto& option : declarations.options()) {
        const auto names = fmt::format("{}", join(option.names, ","));
        if (option.is_flag()) {
            parsed[&option] = app.add_flag(names, flags.emplace_back());
            parsed[&option]->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        } else {
            parsed[&option] = app.add_option(names, values.emplace_back());
            parsed[&option]->type_size(1)->expected(1)->allow_extra_args(false)->take_all();
        }
    }
    // What follows "--" is positional, whatever it looks like.
    const auto options_end = std::find(arguments.begin(), arguments.end(), "--");
    std::vector<std::string> before(arguments.begin(), options_end);
    std::reverse(before.begin(), before.end());
    std::vector<std::string> positionals;
    app.add_option("arguments", positionals)->expected(0, 1 << 28);
    try {
        app.parse(std::move(before));
    } catch (const CLI::ArgumentMismatch& e) {
        const std::string text = e.what();
        const auto* option = declarations.find(text.substr(0, text.find(':')));
        if (option) {
            refuse_without_value(*option);
        }
        refuse(text, help_hint(command));
    } catch (const CLI::ParseError& e) {
        refuse(e.what(), help_hint(command));
    }
    check_unknown(command, declarations, app.remaining());
    for (const auto& [option, from] : parsed) {
        if (from->count() == 0 || (option->is_flag() && !from->as<bool>())) {
            continue;
        }
        for (const auto& value : from->results()) {
            if (declarations.find(value)) {
                refuse_without_value(*option);
            }
        }
        if (!option->once.empty() && from->results().size() > 1) {
            refuse(fmt::format("{} takes one {}, and is given '{}'", command, option->name(),
                               join(from->results(), "', '")),
                   option->once);
        }
        std::visit(Assign{*option, from->results()}, option->target);
    }
    for (const auto& option : declarations.options()) {
        if (option.required && parsed[&option]->count() == 0) {
            refuse(fmt::format("{} needs {} {}", command, option.name(), option.placeholder),
                   option.help);
        }
    }
    if (options_end != arguments.end()) {
        positionals.insert(positionals.end(), std::next(options_end), arguments.end());
    }
    assign_positionals(command, declarations, positionals);
}

}  // namespace trocar::cli
