#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "trocar/command.h"

namespace trocar::cli {

enum class Group { options, output, engine };

struct Option {
    using Target =
        std::variant<bool*, std::string*, std::vector<std::string>*, std::int64_t*, double*>;
    std::vector<std::string> names;  // as typed: "-o", "--output"
    std::string placeholder;         // "SELECTOR"; for a choice "none|all"; empty for a flag
    std::string help;
    std::vector<std::string> choices;  // not empty: one of these
    std::string initial;  // the value when not given, as a text; empty: none worth saying
    bool required = false;
    std::string once;  // not empty: given twice is a mistake, and this is what to do instead
    Group group = Group::options;
    std::string section;  // title; empty: none
    Target target;

    bool is_flag() const { return std::holds_alternative<bool*>(target); }
    bool repeats() const { return std::holds_alternative<std::vector<std::string>*>(target); }
    const std::string& name() const { return names.back(); }  // the long one
};

struct Positional {
    std::string name;  // "MODEL"
    std::string help;
    bool optional = false;
    std::variant<std::string*, std::vector<std::string>*> target;

    bool repeats() const { return std::holds_alternative<std::vector<std::string>*>(target); }
};

struct Example {
    std::string command;
    std::string what;
};

// What a command takes, written down: the parser, the help, the man page and the completions are
// all made from it. A positional named in brackets, "[TOOL]", may be left out, all others may not.
class Declarations : public Args {
public:
    void positional(std::string& value, const char* name, const char* help) override;
    void positionals(std::vector<std::string>& values, const char* name, const char* help) override;
    void flag(const char* names, bool& value, const char* help) override;
    void option(const char* names, std::string& value, const char* placeholder,
                const char* help) override;
    void option(const char* names, std::vector<std::string>& values, const char* placeholder,
                const char* help) override;
    void option(const char* names, std::int64_t& value, const char* placeholder,
                const char* help) override;
    void option(const char* names, double& value, const char* placeholder,
                const char* help) override;
    void choice(const char* names, std::string& value, const char* choices,
                const char* help) override;
    void section(const char* title) override { section_ = title; }
    void require(const char* name) override;
    void example(const char* command, const char* what) override;

    // The option may be given once; otherwise the last of several counts.
    void once(const char* name, const char* hint);

    // What is declared from now on belongs to `group`.
    void begin(Group group) {
        group_ = group;
        section_.clear();
    }
    // Titles of sections among the tool's own options, in their order.
    std::vector<std::string> sections() const;

    const std::vector<Positional>& positional_list() const { return positionals_; }
    const std::vector<Option>& options() const { return options_; }
    const std::vector<Example>& examples() const { return examples_; }
    // nullptr: none of that name ("--cut" or "-o").
    const Option* find(std::string_view name) const;
    std::vector<std::string> names() const;  // of all options

private:
    Option& declared(const char* name);
    Option& add(const char* names, Option::Target target, const char* placeholder,
                const char* help);
    std::vector<Positional> positionals_;
    std::vector<Option> options_;
    std::vector<Example> examples_;
    Group group_ = Group::options;
    std::string section_;
};

}  // namespace trocar::cli
