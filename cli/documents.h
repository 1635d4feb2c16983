#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/verbs.h"

namespace trocar::cli {

// Everything that is written about the commands, made from their declarations.

std::string main_help(const std::vector<Verb>& all);
std::string short_help(const Verb& verb, const std::vector<Verb>& all);  // one screen
std::string full_help(const Verb& verb, const std::vector<Verb>& all);

std::string man_page(const std::vector<Verb>& all);  // roff
std::string bash_completion(const std::vector<Verb>& all);
std::string zsh_completion(const std::vector<Verb>& all);
std::string fish_completion(const std::vector<Verb>& all);

struct Fact {
    const char* name;
    const char* what;
};
std::span<const Fact> exit_codes();
std::span<const Fact> environment_variables();

// "trocar run MODEL [options]"
std::string usage(const Verb& verb, const Declarations& declarations);
// The help text with what else is to be said: "(default 0)", "(may be repeated)".
std::string long_help(const Option& option);
// "-o, --output DIR"
std::string spelled(const Option& option);

}  // namespace trocar::cli
