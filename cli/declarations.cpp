#include "cli/declarations.h"

#include <fmt/format.h>

#include <algorithm>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar::cli {

namespace {

Positional positional_of(std::string_view name, const char* help) {
    Positional positional;
    positional.optional = name.starts_with('[') && name.ends_with(']');
    positional.name = positional.optional ? name.substr(1, name.size() - 2) : name;
    positional.help = help;
    return positional;
}

}  // namespace

void Declarations::positional(std::string& value, const char* name, const char* help) {
    positionals_.push_back(positional_of(name, help));
    positionals_.back().target = &value;
}

void Declarations::positionals(std::vector<std::string>& values, const char* name,
                               const char* help) {
    positionals_.push_back(positional_of(name, help));
    positionals_.back().target = &values;
}

Option& Declarations::add(const char* names, Option::Target target, const char* placeholder,
                          const char* help) {
    Option option;
    option.names = split(names, ',');
    option.placeholder = placeholder;
    option.help = help;
    option.group = group_;
    option.section = section_;
    option.target = target;
    for (const auto& name : option.names) {
        if (find(name)) {
            throw Error(Fault::internal, fmt::format("option '{}' is declared twice", name));
        }
    }
    return options_.emplace_back(std::move(option));
}

std::vector<std::string> Declarations::sections() const {
    std::vector<std::string> titles;
    for (const auto& option : options_) {
        if (!option.section.empty() &&
            std::find(titles.begin(), titles.end(), option.section) == titles.end()) {
            titles.push_back(option.section);
        }
    }
    return titles;
}

void Declarations::flag(const char* names, bool& value, const char* help) {
    add(names, &value, "", help);
}

void Declarations::option(const char* names, std::string& value, const char* placeholder,
                          const char* help) {
    add(names, &value, placeholder, help).initial = value;
}

void Declarations::option(const char* names, std::vector<std::string>& values,
                          const char* placeholder, const char* help) {
    add(names, &values, placeholder, help);
}

void Declarations::option(const char* names, std::int64_t& value, const char* placeholder,
                          const char* help) {
    add(names, &value, placeholder, help).initial = fmt::format("{}", value);
}

void Declarations::option(const char* names, double& value, const char* placeholder,
                          const char* help) {
    add(names, &value, placeholder, help).initial = fmt::format("{:g}", value);
}

void Declarations::choice(const char* names, std::string& value, const char* choices,
                          const char* help) {
    auto& option = add(names, &value, choices, help);
    option.choices = split(choices, '|');
    option.initial = value;
}

Option& Declarations::declared(const char* name) {
    for (auto& option : options_) {
        if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) {
            return option;
        }
    }
    throw Error(Fault::internal, fmt::format("option '{}' is required but not declared", name));
}

void Declarations::require(const char* name) {
    declared(name).required = true;
}

void Declarations::once(const char* name, const char* hint) {
    declared(name).once = hint;
}

void Declarations::example(const char* command, const char* what) {
    examples_.push_back({command, what});
}

const Option* Declarations::find(std::string_view name) const {
    for (const auto& option : options_) {
        if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) {
            return &option;
        }
    }
    return nullptr;
}

std::vector<std::string> Declarations::names() const {
    std::vector<std::string> all;
    for (const auto& option : options_) {
        all.insert(all.end(), option.names.begin(), option.names.end());
    }
    return all;
}

}  // namespace trocar::cli
