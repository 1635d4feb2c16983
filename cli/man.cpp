#include <fmt/format.h>

#include "cli/documents.h"
#include "trocar/version.h"
#include "util/display.h"

namespace trocar::cli {

namespace {

// Text for roff: nothing in it is a request or an escape, and every character beyond ASCII is named
// by its number, so that any locale can show it.
std::string roff(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte == '\\') {
            out += "\\e";
        } else if (byte == '-') {
            out += "\\-";
        } else if (byte == '\'') {
            out += "\\(aq";
        } else if (byte == '`') {
            out += "\\(ga";
        } else if (byte == '"') {
            out += "\\(dq";
        } else if (byte == '^') {
            out += "\\(ha";
        } else if (byte == '~') {
            out += "\\(ti";
        } else if (byte < 0x80) {
            out += static_cast<char>(byte);
        } else {
            const std::size_t more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
            char32_t code = byte & (0x3fu >> more);
            for (std::size_t k = 1; k <= more && i + k < text.size(); ++k) {
                code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fu);
            }
            i += more;
            out += code == U'…' ? "..." : fmt::format("\\[u{:04X}]", static_cast<unsigned>(code));
        }
    }
    // A period at the beginning of a line would be a request.
    return out.starts_with('.') ? "\\&" + out : out;
}

std::string term(std::string_view name, std::string_view what) {
    return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(name), roff(what));
}

std::string option_term(const Option& option) {
    std::string names;
    for (const auto& name : option.names) {
        names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
    }
    if (!option.placeholder.empty()) {
        names += fmt::format(" \\fI{}\\fR", roff(option.placeholder));
    }
    return fmt::format(".TP\n{}\n{}\n", names, roff(long_help(option)));
}

std::string options_of(const Declarations& declarations, Group group) {
    std::string out;
    for (const auto& option : declarations.options()) {
        if (option.group == group) {
            out += option_term(option);
        }
    }
    return out;
}

std::string command_part(const Verb& verb, const std::vector<Verb>& all) {
    const auto declarations = declarations_of(verb, all);
    auto out = fmt::format(".SS {}\n{}.\n", roff(usage(verb, declarations)), roff(verb.summary));
    for (const auto& positional : declarations.positional_list()) {
        out += term(positional.name, positional.help);
    }
    out += options_of(declarations, Group::options);
    for (const auto& example : declarations.examples()) {
        out += fmt::format(".PP\n.nf\n    {}\n.fi\n.RS 8\n{}\n.RE\n", roff(example.command),
                           roff(example.what));
    }
    return out;
}

}  // namespace

std::string man_page(const std::vector<Verb>& all) {
    auto out = fmt::format(
        ".TH TROCAR 1 \"\" \"trocar {}\" \"User Commands\"\n"
        ".SH NAME\ntrocar \\- read a neural network, cut it at any op, run it on a real engine\n"
        ".SH SYNOPSIS\n\\fBtrocar\\fR \\fITOOL\\fR \\fIMODEL\\fR [\\fIoptions\\fR]\n"
        ".SH DESCRIPTION\n"
        "Results go to standard output, everything else to standard error. "
        "An option that takes a value takes it as the next argument or after an equals sign.\n",
        roff(version()));
    for (const bool tools : {true, false}) {
        std::string part;
        for (const auto& verb : all) {
            part += verb.is_tool == tools ? command_part(verb, all) : "";
        }
        if (!part.empty()) {
            out += (tools ? ".SH TOOLS\n" : ".SH COMMANDS ABOUT TROCAR ITSELF\n") + part;
        }
    }
    for (const auto& verb : all) {
        if (!verb.plain) {
            const auto declarations = declarations_of(verb, all);
            out += ".SH OUTPUT OPTIONS\nOf every tool.\n" +
                   options_of(declarations, Group::output) +
                   ".SH ENGINE OPTIONS\nOf every tool.\n" + options_of(declarations, Group::engine);
            break;
        }
    }
    out += ".SH EXIT STATUS\n";
    for (const auto& code : exit_codes()) {
        out += term(code.name, code.what);
    }
    out += ".SH ENVIRONMENT\n";
    for (const auto& variable : environment_variables()) {
        out += term(variable.name, variable.what);
    }
    return out;
}

}  // namespace trocar::cli
