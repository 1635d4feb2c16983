#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "energy/reader.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

enum class Argument { none, may, must };

struct Kind {
    const char* name;
    Argument argument;
    const char* what;  // it names
};
constexpr std::array<Kind, 8> kinds{{{"auto", Argument::none, ""},
                                     {"none", Argument::none, ""},
                                     {"perf", Argument::none, ""},
                                     {"powercap", Argument::may, "FOLDER"},
                                     {"nvml", Argument::may, "LIBRARY"},
                                     {"hwmon", Argument::may, "SENSOR"},
                                     {"log", Argument::must, "FILE.csv"},
                                     {"command", Argument::must, "COMMAND"}}};

}  // namespace

EnergyChoice parse_energy(std::string_view text) {
    const auto colon = std::min(text.find(':'), text.size());
    EnergyChoice choice;
    choice.source = std::string(text.substr(0, colon));
    const bool argued = colon < text.size();
    choice.argument = argued ? std::string(text.substr(colon + 1)) : "";
    const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const Kind& one) { return choice.source == one.name; });
    if (kind == kinds.end()) {
        std::vector<std::string> names;
        std::string list;
        for (const auto& one : kinds) {
            names.emplace_back(one.name);
            list += fmt::format("{}{}", list.empty() ? "" : ", ", one.name);
        }
        const auto meant = did_you_mean(choice.source, names);
        throw Error(Fault::usage, fmt::format("'{}' is no source of energy", choice.source),
                    fmt::format("{}{}there are {}", meant, meant.empty() ? "" : " ", list));
    }
    if (argued && kind->argument == Argument::none) {
        throw Error(Fault::usage,
                    fmt::format("the energy source {} takes nothing after it, not '{}'",
                                choice.source, choice.argument));
    }
    if (choice.argument.empty() && (argued || kind->argument == Argument::must)) {
        throw Error(Fault::usage, fmt::format("the energy source '{}' does not say which", text),
                    fmt::format("write {}:{}", kind->name, kind->what));
    }
    return choice;
}

std::string energy_text(const EnergyChoice& choice) {
    return choice.argument.empty() ? choice.source : choice.source + ":" + choice.argument;
}

namespace energy {

namespace {

Found find_log(const EnergyOptions& options) {
    const auto log = EnergyLog::load(options.choice.argument, options);
    Found found;
    found.source.name = "log";
    found.source.label = log.label();
    if (log.spacing_seconds() > 0) {
        found.source.tick_seconds = log.spacing_seconds();
    }
    found.source.domains.emplace_back();
    found.source.domains.back().name = "log";
    for (const auto& problem : log.problems()) {
        found.source.notes.push_back(
            fmt::format("{}:{}: {}", options.choice.argument, problem.line, problem.what));
    }
    if (log.problem_count() > log.problems().size()) {
        found.source.notes.push_back(
            fmt::format("{} rows of the log were left out", log.problem_count()));
    }
    return found;
}

Found find_named(const std::string& name, const EnergyOptions& options,
                 const Surroundings& machine) {
    auto found = name == "perf"       ? find_perf(options, machine)
                 : name == "powercap" ? find_powercap(options, machine)
                 : name == "nvml"     ? find_nvml(options)
                 : name == "hwmon"    ? find_hwmon(options, machine)
                 : name == "log"      ? find_log(options)
                                      : find_command(options);
    probe(found, options, machine);
    return found;
}

}  // namespace

Found find(const EnergyOptions& options, const Surroundings& machine) {
    const auto& name = options.choice.source;
    if (name == "none") {
        return unavailable("none", "no energy was asked for", "");
    }
    if (name != "auto") {
        return find_named(parse_energy(energy_text(options.choice)).source, options, machine);
    }
    std::string why;
    std::string remedy;
    bool refused = false;
    for (const auto* each : {"perf", "powercap", "hwmon"}) {
        auto found = find_named(each, options, machine);
        if (found.source.unavailable.empty()) {
            return found;
        }
        why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", each, found.source.unavailable);
        if (remedy.empty() || (found.refused && !refused)) {
            remedy = found.source.remedy;
        }
        refused = refused || found.refused;
    }
    return unavailable("none", std::move(why), std::move(remedy));
}

}  // namespace energy

std::vector<EnergySource> energy_sources(const EnergyOptions& options) {
    const auto machine = energy::this_machine();
    std::vector<EnergySource> sources;
    for (const auto* each : {"perf", "powercap", "nvml", "hwmon"}) {
        sources.push_back(energy::find_named(each, options, machine).source);
    }
    if (options.choice.source == "log" || options.choice.source == "command") {
        try {
            sources.push_back(energy::find(options, machine).source);
        } catch (const Error& error) {
            sources.push_back(
                energy::unavailable(options.choice.source, error.what(), error.hint()).source);
        }
    }
    return sources;
}

}  // namespace trocar
