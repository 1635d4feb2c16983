#include "cli/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/documents.h"
#include "trocar/engine.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/version.h"
#include "util/text.h"

namespace trocar::cli {

namespace {

// What opening it tells: where it can run, or why it cannot.
EngineInfo tried(const EngineKind& kind, EngineInfo found, EngineOptions options) {
    if (!found.available) {
        return found;
    }
    try {
        options.path = found.path;
        options.options.clear();
        options.threads = 1;
        return kind.open(options)->info();
    } catch (const Error& e) {
        found.available = false;
        found.missing = e.what();
        found.hint = e.hint();
        return found;
    }
}

// As --engine takes them: "cpu" for CPUExecutionProvider.
std::vector<std::string> short_names(std::vector<std::string> providers) {
    static constexpr std::string_view ending = "ExecutionProvider";
    for (auto& provider : providers) {
        if (provider.ends_with(ending)) {
            provider.resize(provider.size() - ending.size());
        }
        std::transform(provider.begin(), provider.end(), provider.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    }
    return providers;
}

void add_engines(Report& report, Table& table, const EngineKind& kind,
                 const EngineOptions& options) {
    bool used = false;  // one that can be used was listed: a run takes that
    for (const auto& found : kind.find(options)) {
        const auto engine = tried(kind, found, options);
        const auto* status = !engine.available ? (engine.path.empty() ? "missing" : "unusable")
                             : used            ? "found"
                                               : "used";
        used = used || engine.available;
        auto version = engine.version.empty() ? Cell() : Cell(engine.version);
        table.rows.push_back({{engine.name, engine.available, status, std::move(version),
                               short_names(engine.can.providers), engine.path, engine.can.providers,
                               engine.missing, engine.hint},
                              0,
                              false});
        if (!engine.available) {
            report.notes.push_back(fmt::format("{}: {}{}", engine.name, engine.missing,
                                               engine.hint.empty() ? "" : "; " + engine.hint));
        }
    }
}

Report engines_report(Context& context) {
    Report report;
    report.tool = "engines";
    Table table;
    table.key = "engines";
    table.columns = {
        {.key = "name", .title = "Engine"},
        {.key = "available", .title = "Available", .hidden = true},
        {.key = "status", .title = "Status"},
        {.key = "version", .title = "Version", .left = true},
        {.key = "runs_on", .title = "Runs on", .left = true, .optional = 1},
        {.key = "path", .title = "Path", .left = true},
        {.key = "providers", .title = "Providers", .hidden = true},
        {.key = "missing", .title = "Missing", .hidden = true},
        {.key = "hint", .title = "Hint", .hidden = true},
    };
    // The one that runs where nobody names another stands first.
    std::vector<const EngineKind*> kinds(engine_kinds().begin(), engine_kinds().end());
    std::stable_partition(kinds.begin(), kinds.end(), [](const EngineKind* kind) {
        return kind->name == EngineOptions().name;
    });
    for (const auto* kind : kinds) {
        auto options = context.engine_options();
        if (options.name != kind->name) {
            options.path.clear();
            options.options.clear();
            options.name = kind->name;
        }
        add_engines(report, table, *kind, options);
    }
    report.tables.push_back(std::move(table));
    return report;
}

std::string abilities(bool reads, bool writes) {
    return reads ? (writes ? "read, write" : "read") : writes ? "write" : "no";
}

Report formats_report(Context&) {
    Report report;
    report.tool = "formats";
    Table table;
    table.key = "formats";
    table.columns = {
        {.key = "name", .title = "Format"},
        {.key = "suffixes", .title = "Suffixes"},
        {.key = "models", .title = "Models"},
        {.key = "values", .title = "Tensors"},
        {.key = "summary", .title = "What it is"},
        {.key = "reads_models", .title = "Reads models", .hidden = true},
        {.key = "writes_models", .title = "Writes models", .hidden = true},
        {.key = "reads_values", .title = "Reads tensors", .hidden = true},
        {.key = "writes_values", .title = "Writes tensors", .hidden = true},
        {.key = "dialect", .title = "Dialect", .hidden = true},
    };
    for (const auto* format : formats()) {
        const bool reads = format->read != nullptr;
        const bool writes = format->write != nullptr;
        const bool reads_values = format->read_values != nullptr;
        const bool writes_values = format->write_value != nullptr;
        table.rows.push_back({{format->name, format->suffixes, abilities(reads, writes),
                               abilities(reads_values, writes_values), format->summary, reads,
                               writes, reads_values, writes_values, format->dialect},
                              0,
                              false});
    }
    report.tables.push_back(std::move(table));
    return report;
}

Report tools_report(const std::vector<Verb>& all) {
    Report report;
    report.tool = "tools";
    Table table;
    table.key = "tools";
    table.columns = {{.key = "name", .title = "Tool"}, {.key = "summary", .title = "What it does"}};
    for (const auto& verb : all) {
        if (verb.is_tool && verb.parent.empty()) {
            table.rows.push_back({{verb.name, verb.summary}, 0, false});
        }
    }
    report.tables.push_back(std::move(table));
    return report;
}

#if defined(__clang__)
constexpr const char* compiler = __VERSION__;
#else
constexpr const char* compiler = "GCC " __VERSION__;
#endif

Report version_report() {
    Report report;
    report.tool = "version";
    Section section{"version", "", {}};
    section.scalars = {{"version", "trocar", version(), Show::plain, ""},
                       {"build", "Build", build_type(), Show::plain, ""},
                       {"compiler", "Compiler", compiler, Show::plain, ""}};
    report.sections.push_back(std::move(section));
    return report;
}

// A command that takes nothing and answers with a report.
Verb simple(const char* name, const char* summary,
            const std::function<Report(Context&, const std::vector<Verb>&)>& work,
            const char* what) {
    return {name, summary, false, false,
            [=](Declarations& declarations, const std::vector<Verb>& all) -> Work {
                declarations.example(fmt::format("trocar {}", name).c_str(), what);
                declarations.example(fmt::format("trocar {} --json", name).c_str(),
                                     "the same for a program");
                return [work, &all](Context& context) -> Answer { return work(context, all); };
            }};
}

Work bind_help(Declarations& declarations, const std::vector<Verb>& all) {
    auto words = std::make_shared<std::vector<std::string>>();
    declarations.positionals(*words, "[COMMAND]", "A tool, a tool and its command, or a command");
    return [words, &all](Context&) -> Answer {
        if (words->empty()) {
            return main_help(all);
        }
        return full_help(need_verb(all, fmt::format("{}", join(*words, " "))), all);
    };
}

Work bind_completion(Declarations& declarations, const std::vector<Verb>& all) {
    auto shell = std::make_shared<std::string>();
    declarations.positional(*shell, "SHELL", "bash, zsh or fish");
    declarations.example("source <(trocar completion bash)", "in this shell, from now on");
    declarations.example("trocar completion fish > ~/.config/fish/completions/trocar.fish",
                         "in every fish");
    return [shell, &all](Context&) -> Answer {
        if (*shell == "bash") {
            return bash_completion(all);
        }
        if (*shell == "zsh") {
            return zsh_completion(all);
        }
        if (*shell == "fish") {
            return fish_completion(all);
        }
        throw Error(Fault::usage, fmt::format("no completion for the shell '{}'", *shell),
                    "bash, zsh and fish are known");
    };
}

Work bind_man(Declarations& declarations, const std::vector<Verb>& all) {
    declarations.example("trocar man | man -l -", "read it");
    return [&all](Context&) -> Answer { return man_page(all); };
}

}  // namespace

std::vector<Verb> builtin_verbs() {
    return {
        simple(
            "engines", "List the engines found here, and how to get missing ones",
            [](Context& context, const auto&) { return engines_report(context); },
            "which engine a run would use"),
        simple(
            "formats", "List the file formats, and what can be read and written",
            [](Context& context, const auto&) { return formats_report(context); },
            "what can be read and written"),
        simple(
            "tools", "List the tools",
            [](Context&, const std::vector<Verb>& all) { return tools_report(all); },
            "what there is"),
        simple(
            "version", "Say which trocar this is",
            [](Context&, const auto&) { return version_report(); }, "which trocar this is"),
        {"help", "Explain a tool or command", false, true, bind_help},
        {"completion", "Print completions for a shell", false, true, bind_completion},
        {"man", "Print the manual page", false, true, bind_man},
    };
}

}  // namespace trocar::cli
