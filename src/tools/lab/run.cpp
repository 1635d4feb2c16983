#include <fmt/format.h>

#include <array>
#include <memory>

#include "tools/lab/commands.h"
#include "trocar/error.h"
#include "trocar/lab.h"
#include "trocar/lab_options.h"

namespace trocar {

namespace {

struct Options {
    std::string folder;
    std::string command;
    std::string name;
    std::int64_t jobs = 0;
    bool cumulative = false;
    bool fresh = false;
    LimitArguments limits;
};

constexpr std::array ends = {RunEnd::done, RunEnd::failed,      RunEnd::crashed,
                             RunEnd::hung, RunEnd::over_memory, RunEnd::bad_output};

Report run(const Options& options, Context& context) {
    if (options.jobs < 0 || options.jobs > 1024) {
        throw Error(Fault::usage, "--jobs must be between 1 and 1024");
    }
    const auto lab = read_lab(options.folder);
    const auto texts = context.engines();
    if (texts.size() + (options.command.empty() ? 0 : 1) != 1) {
        throw Error(Fault::usage, "a lab is run on one engine or by one command at a time",
                    "give --engine NAME or --command '... {model} {inputs} {outputs}'");
    }
    LabRunOptions how;
    how.side = parse_side(options.command.empty() ? texts.front() : "command:" + options.command,
                          context.engine_options());
    set_limits(how.side, options.limits);
    how.name = options.name.empty() ? result_name(how.side) : options.name;
    how.jobs = options.jobs == 0 ? 1 : static_cast<int>(options.jobs);
    how.cumulative = options.cumulative;
    how.fresh = options.fresh;
    if (how.name.find('/') != std::string::npos || how.name.starts_with('.')) {
        throw Error(Fault::usage, fmt::format("'{}' is no name for results", how.name));
    }
    if (how.side.command.empty() && how.jobs > 1) {
        // Several at once share the cores.
        how.side.engine.threads = std::max(1, context.threads() / how.jobs);
    }
    how.progress = [&](std::size_t done, std::size_t total) {
        context.progress("layers", done, total);
        return !context.interrupted();
    };
    const auto results = run_lab(lab, how);
    Report report;
    report.tool = "lab run";
    Table table;
    table.key = "layers";
    table.title = "Layers that did not run";
    table.columns = {{.key = "layer", .title = "#"},
                     {.key = "name", .title = "Layer"},
                     {.key = "end", .title = "End"},
                     {.key = "seconds", .title = "Time", .show = Show::seconds, .hidden = true},
                     {.key = "reason", .title = "Why"}};
    std::array<std::size_t, ends.size()> counts{};
    std::size_t earlier = 0;
    double seconds = 0;
    for (const auto& result : results) {
        ++counts[static_cast<std::size_t>(result.end)];
        earlier += result.was_there ? 1 : 0;
        seconds += result.seconds;
        if (result.end != RunEnd::done) {
            std::string layer_name;
            for (const auto& layer : lab.layers) {
                layer_name = layer.number == result.layer ? layer.name : layer_name;
            }
            table.rows.push_back(
                {.cells = {Cell(std::uint64_t{result.layer}), Cell(layer_name),
                           Cell(name(result.end)), Cell(result.seconds), Cell(result.reason)}});
        }
    }
    const bool bad = !table.rows.empty();
    if (bad) {
        report.tables.push_back(std::move(table));
    }
    Section section{.key = "run", .title = "Run", .scalars = {}};
    auto& all = section.scalars;
    all.push_back({"results", "Results", how.name, Show::plain, "their name in the lab"});
    for (const auto end : ends) {
        const auto count = counts[static_cast<std::size_t>(end)];
        if (count > 0 || end == RunEnd::done) {
            all.push_back({fmt::format("{}", name(end)), fmt::format("Layers {}", name(end)),
                           std::uint64_t{count}, Show::count,
                           end == RunEnd::done && earlier > 0
                               ? fmt::format("{} of all from an earlier run", earlier)
                               : ""});
        }
    }
    all.push_back({"seconds", "Time in layers", seconds, Show::seconds, ""});
    report.sections.push_back(std::move(section));
    report.order = {"layers", "run"};
    report.verdict = !bad;
    report.partial = results.size() < lab.layers.size();
    report.notes.push_back(
        fmt::format("`trocar compare {}` compares them with the golden outputs", options.folder));
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->folder, "LAB", "Folder that `trocar split` made");
    args.option("--command", options->command, "COMMAND",
                "Run {model} on {inputs} with this command, which writes {outputs}");
    args.option("--name", options->name, "NAME", "Name of the results; else that of the engine");
    args.option("--jobs", options->jobs, "N", "Layers at once; 1 by default");
    args.flag("--cumulative", options->cumulative,
              "Feed layers what earlier ones gave here, one after the other");
    args.flag("--fresh", options->fresh, "Run again what has been run already");
    declare_limit_options(args, options->limits);
    args.example("trocar lab run lab --engine openvino --jobs 2",
                 "All layers on another engine, each in a process of its own");
    args.example("trocar lab run lab --command './runner {model} {inputs} {outputs}'",
                 "On any runtime or device, from outside");
    return [options](Context& context) { return run(*options, context); };
}

}  // namespace

extern const Command lab_run{
    .name = "run",
    .summary = "Run the layers of a lab on an engine, or by a command",
    .bind = bind,
};

}  // namespace trocar
