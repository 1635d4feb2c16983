#include <fmt/format.h>

#include <algorithm>

#include "cli/documents.h"
#include "util/text.h"

namespace trocar::cli {

namespace {

std::string names_of(const std::vector<Verb>& all) {
    std::string names;
    for (const auto& verb : all) {
        if (verb.parent.empty()) {
            names += (names.empty() ? "" : " ") + verb.name;
        }
    }
    return names;
}

// The tools' commands, each as one word in quotes, between bars: for a `case` of the shell.
std::string command_patterns(const std::vector<Verb>& all) {
    std::string patterns;
    for (const auto& verb : all) {
        if (!verb.parent.empty()) {
            patterns += fmt::format("{}'{}'", patterns.empty() ? "" : "|", verb.name);
        }
    }
    return patterns.empty() ? "''" : patterns;
}

// For the inside of single quotes in a POSIX shell.
std::string shell_quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return out + '\'';
}

// What a positional can be where it is one of a few words; empty: a file.
std::string words_for(const Verb& verb, const std::vector<Verb>& all) {
    std::string commands;
    for (const auto* command : commands_of(verb, all)) {
        commands += (commands.empty() ? "" : " ") + command->last_name();
    }
    if (!commands.empty()) {
        return commands;
    }
    return verb.name == "help" ? names_of(all) : verb.name == "completion" ? "bash zsh fish" : "";
}

std::string fish_quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        out += c == '\'' || c == '\\' ? fmt::format("\\{}", c) : std::string(1, c);
    }
    return out + '\'';
}

// For a description inside the brackets of _arguments.
std::string zsh_text(std::string_view text) {
    std::string out;
    for (const char c : text) {
        out += std::string_view("[]:\\").find(c) != std::string_view::npos ? fmt::format("\\{}", c)
                                                                           : std::string(1, c);
    }
    return out;
}

}  // namespace

std::string bash_completion(const std::vector<Verb>& all) {
    std::string cases;
    for (const auto& verb : all) {
        const auto declarations = declarations_of(verb, all);
        auto names = declarations.names();
        names.insert(names.end(), {"-h", "--help"});
        std::string values;
        for (const auto& option : declarations.options()) {
            if (!option.choices.empty()) {
                values += fmt::format("                {}) words='{}' ;;\n",
                                      join(option.names, "|"), join(option.choices, " "));
            } else if (!option.is_flag()) {
                values += fmt::format("                {}) files=1 ;;\n", join(option.names, "|"));
            }
        }
        cases += fmt::format(
            "        '{}')\n            options='{}'\n            positional='{}'\n{}            "
            ";;\n",
            verb.name, join(names, " "), words_for(verb, all),
            values.empty()
                ? ""
                : fmt::format("            case \"$before\" in\n{}            esac\n", values));
    }
    return fmt::format(R"(# Completions of trocar for bash: source <(trocar completion bash)
_trocar() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local tool="${{COMP_WORDS[1]}}" options='' positional='' words='' files=''
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        COMPREPLY=($(compgen -W '{} --help --version' -- "$word"))
        return
    fi
    if [[ $COMP_CWORD -gt 2 ]]; then
        case "$tool ${{COMP_WORDS[2]}}" in
            {}) tool="$tool ${{COMP_WORDS[2]}}" ;;
        esac
    fi
    case "$tool" in
{}    esac
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    elif [[ -z $files && $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    elif [[ -z $files && -n $positional ]] && compgen -W "$positional" -- "$word" >/dev/null; then
        COMPREPLY=($(compgen -W "$positional" -- "$word"))
    else
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -F _trocar trocar
)",
                       names_of(all), command_patterns(all), cases);
}

std::string zsh_completion(const std::vector<Verb>& all) {
    std::string verbs;
    std::string cases;
    for (const auto& verb : all) {
        if (verb.parent.empty()) {
            verbs +=
                fmt::format("        {}\n",
                            shell_quoted(fmt::format("{}:{}", verb.name, zsh_text(verb.summary))));
        }
        cases += fmt::format("        '{}')\n            _arguments \\\n", verb.name);
        const auto declarations = declarations_of(verb, all);
        for (const auto& option : declarations.options()) {
            for (const auto& name : option.names) {
                auto spec = fmt::format("{}{}[{}]", option.repeats() ? "*" : "", name,
                                        zsh_text(option.help));
                if (!option.choices.empty()) {
                    spec += fmt::format(":{}:({})", zsh_text(option.placeholder),
                                        join(option.choices, " "));
                } else if (!option.is_flag()) {
                    spec += fmt::format(":{}:_files", zsh_text(option.placeholder));
                }
                cases += fmt::format("                {} \\\n", shell_quoted(spec));
            }
        }
        const auto words = words_for(verb, all);
        cases += fmt::format("                '*:argument:{}'\n            ;;\n",
                             words.empty() ? "_files" : fmt::format("({})", words));
    }
    return fmt::format(R"(#compdef trocar
# Completions of trocar for zsh: put this as _trocar into a folder of $fpath.
_trocar() {{
    local -a tools
    tools=(
{}    )
    if (( CURRENT == 2 )); then
        _describe 'tool' tools
        return
    fi
    local tool="$words[2]"
    shift words
    (( CURRENT-- ))
    if (( CURRENT > 2 )); then
        case "$tool $words[2]" in
            {})
                tool="$tool $words[2]"
                shift words
                (( CURRENT-- ))
                ;;
        esac
    fi
    case "$tool" in
{}    esac
}}
if [[ $funcstack[1] == _trocar ]]; then
    _trocar "$@"
else
    compdef _trocar trocar
fi
)",
                       verbs, command_patterns(all), cases);
}

std::string fish_completion(const std::vector<Verb>& all) {
    std::string out = "# Completions of trocar for fish.\n";
    for (const auto& verb : all) {
        if (!verb.parent.empty()) {
            continue;
        }
        out += fmt::format("complete -c trocar -n __fish_use_subcommand -f -a {} -d {}\n",
                           verb.name, fish_quoted(verb.summary));
    }
    for (const auto& verb : all) {
        const auto condition =
            verb.parent.empty()
                ? fmt::format("'__fish_seen_subcommand_from {}'", verb.name)
                : fmt::format(
                      "'__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}'",
                      verb.parent, verb.last_name());
        if (const auto words = words_for(verb, all); !words.empty()) {
            out += fmt::format("complete -c trocar -n {} -f -a '{}'\n", condition, words);
        }
        const auto declarations = declarations_of(verb, all);
        for (const auto& option : declarations.options()) {
            out += fmt::format("complete -c trocar -n {}", condition);
            for (const auto& name : option.names) {
                out += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2))
                                              : fmt::format(" -s {}", name.substr(1));
            }
            if (!option.choices.empty()) {
                out += fmt::format(" -x -a '{}'", join(option.choices, " "));
            } else if (!option.is_flag()) {
                out += " -r";
            }
            out += fmt::format(" -d {}\n", fish_quoted(option.help));
        }
    }
    return out;
}

}  // namespace trocar::cli
