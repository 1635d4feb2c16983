#include "tools/ops/setup.h"

#include <fmt/format.h>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar::ops_tool_parts {

namespace {

// Known without opening it: its threads must not be there when a process is forked off.
bool gives_its_graph(const EngineOptions& engine) {
    for (const auto* kind : engine_kinds()) {
        if (kind->name == engine.name) {
            const auto found = kind->find(engine);
            return !found.empty() && found.front().can.deployed;
        }
    }
    return false;
}

}  // namespace

void declare(Args& args, Options& options) {
    args.option("--db", options.db, "FILE", "Database of operators; made where it is not there");
    args.require("--db");
    args.choice("--unit", options.unit, "auto|fused|source",
                "Ops as the engine fuses them, or as the model has them; auto: fused where the "
                "engine can tell");
    args.option("--mode", options.modes, "MODE",
                "Cache mode, may be repeated: reuse, stream-inputs, stream-weights, cold, in-situ, "
                "chain, or all");
    args.option("--half-width", options.half_width, "PERCENT",
                "Enough when the 95 % interval of a median is this narrow on either side; 1");
    args.option("--seconds", options.seconds, "S", "At most so long for an operator and mode; 1.5");
    args.option("--energy", options.energy, "SOURCE",
                "Counter of energy: auto, none, perf, powercap, nvml, hwmon, log:FILE.csv, "
                "command:COMMAND");
    args.flag("--again", options.again, "Measure also what the database has");
    declare_input_options(args, options.inputs);
}

Target prepare(const Options& options, const std::string& path, Context& context) {
    return prepare(options, context.load(path), "", context);
}

void apply(const OpPlan& plan, const Options& options, MeasureOptions& how) {
    if (options.modes.empty() && !plan.modes.empty()) {
        how.modes = plan.modes;
    }
    if (plan.half_width && options.half_width == 0) {
        how.half_width = *plan.half_width;
    }
    if (plan.seconds_per_op && options.seconds == 0) {
        how.seconds_per_op = *plan.seconds_per_op;
    }
    how.types = plan.significant;
}

Target prepare(const Options& options, Model model, const std::string& name, Context& context) {
    Target target;
    target.model = std::move(model);
    auto spec = options.inputs;
    spec.seed = context.seed();
    if (spec.fill.empty()) {
        spec.fill = "random";
    }
    target.inputs = make_inputs(target.model, spec);
    auto& how = target.how;
    how.engine = context.engine_options();
    how.engine.threads = context.threads();
    if (options.unit == "auto") {
        how.unit = gives_its_graph(how.engine) ? View::deployed : View::source;
    } else {
        how.unit = options.unit == "fused" ? View::deployed : View::source;
    }
    if (!options.modes.empty()) {
        how.modes.clear();
        for (const auto& mode : options.modes) {
            if (mode == "all") {
                how.modes = {CacheMode::reuse, CacheMode::stream_inputs, CacheMode::stream_weights,
                             CacheMode::cold,  CacheMode::in_situ,       CacheMode::chain};
            } else {
                how.modes.push_back(parse_cache_mode(mode));
            }
        }
    }
    if (options.half_width < 0 || options.seconds < 0) {
        throw Error(Fault::usage, "--half-width and --seconds are positive numbers");
    }
    if (options.half_width > 0) {
        how.half_width = options.half_width / 100;
    }
    if (options.seconds > 0) {
        how.seconds_per_op = options.seconds;
    }
    how.seed = context.seed();
    how.again = options.again;
    how.energy.choice = parse_energy(options.energy);
    how.progress = [&context](std::string_view what, std::uint64_t done, std::uint64_t total) {
        context.progress(what, done, total);
        return !context.interrupted();
    };
    target.facts = identify(target.model, target.inputs.values, how.unit);
    if (!name.empty()) {
        target.facts.name = name;
    }
    return target;
}

Table summary_table(const std::vector<std::pair<std::string, MeasureSummary>>& summaries) {
    Table table;
    table.key = "models";
    table.title = "Measured";
    table.columns = {{.key = "model", .title = "Model"},
                     {.key = "configurations", .title = "Distinct operators", .show = Show::count},
                     {.key = "known", .title = "Known before", .show = Show::count},
                     {.key = "measured", .title = "Measured", .show = Show::count},
                     {.key = "failed", .title = "Failed", .show = Show::count},
                     {.key = "seconds", .title = "Time", .show = Show::seconds}};
    for (const auto& [name, summary] : summaries) {
        table.rows.push_back(
            {.cells = {Cell(name), Cell(std::uint64_t{summary.configurations}),
                       Cell(std::uint64_t{summary.known}), Cell(std::uint64_t{summary.measured}),
                       Cell(std::uint64_t{summary.failed}), Cell(summary.seconds)}});
    }
    table.note = "an operator counts once in every cache mode; the whole model counts as one more";
    return table;
}

}  // namespace trocar::ops_tool_parts
