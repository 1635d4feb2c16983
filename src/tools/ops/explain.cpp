#include <fmt/format.h>

#include <map>
#include <memory>

#include "tools/ops/commands.h"
#include "tools/ops/setup.h"
#include "trocar/error.h"
#include "trocar/op_report.h"
#include "util/files.h"

namespace trocar {

namespace {

using ops_tool_parts::Options;
using ops_tool_parts::Target;

struct ExplainOptions : Options {
    std::string mix;
    double target = 90;
    double until = 0;
    std::string plot;
};

// The setting of this machine and engine in the database.
std::int64_t find_setting(const OpDatabase& database, const Target& target, Context& context) {
    const auto setting = setting_of(target.how.engine, context.engine()->info().version);
    if (const auto id = database.find(setting)) {
        return *id;
    }
    throw Error(
        Fault::input,
        fmt::format("'{}' has nothing that {} {} measured on this machine with {} threads",
                    database.path().string(), setting.engine, setting.version, setting.threads),
        "`trocar ops measure MODEL --db FILE` measures it");
}

Table operator_table(const Explanation& explanation) {
    Table table;
    table.key = "operators";
    table.title = "Operators";
    table.columns = {{.key = "type", .title = "Operator"},
                     {.key = "inputs", .title = "Inputs", .optional = 2},
                     {.key = "count", .title = "Calls", .show = Show::count},
                     {.key = "each_ns", .title = "Each", .show = Show::nanoseconds},
                     {.key = "all_ns", .title = "All", .show = Show::nanoseconds},
                     {.key = "share", .title = "Of model", .show = Show::percent},
                     {.key = "grade", .title = "Grade"},
                     {.key = "key", .title = "Key", .optional = 1},
                     {.key = "why", .title = "Why not", .hidden = true}};
    for (const auto& one : explanation.ops) {
        const auto& config = one.op->config;
        Row row;
        const auto missing = Cell::unavailable(one.why);
        row.cells = {Cell(config.features.type),
                     Cell(config.inputs),
                     Cell(one.op->count),
                     one.ns ? Cell(*one.ns / static_cast<double>(one.op->count)) : missing,
                     one.ns ? Cell(*one.ns) : missing,
                     one.ns ? Cell(*one.ns / explanation.whole_ns()) : missing,
                     one.ns ? Cell(std::string(1, one.grade)) : missing,
                     Cell(config.key.substr(0, 10)),
                     Cell(one.why)};
        table.rows.push_back(std::move(row));
    }
    return table;
}

Section gap_section(const Explanation& explanation) {
    Section section{.key = "explained", .title = "Explained", .scalars = {}};
    const auto add = [&](const char* key, const char* title, Cell value, Show show,
                         std::string note) {
        section.scalars.push_back({key, title, std::move(value), show, std::move(note)});
    };
    const auto whole = explanation.whole_ns();
    const auto& interval = explanation.whole.time.interval;
    add("whole_ns", "Whole model", whole, Show::nanoseconds,
        fmt::format("{} to {}, grade {}", show(Cell(interval.low), Show::nanoseconds),
                    show(Cell(interval.high), Show::nanoseconds), explanation.whole.time.grade));
    add("measured_ns", "Sum of operators", explanation.measured_ns, Show::nanoseconds,
        fmt::format("{} × their calls",
                    fmt::format("{} of {} distinct ones",
                                std::count_if(explanation.ops.begin(), explanation.ops.end(),
                                              [](const auto& op) { return op.ns.has_value(); }),
                                explanation.ops.size())));
    add("dispatch_ns", "Running it at all", explanation.dispatch_ns, Show::nanoseconds,
        "a program without work");
    add("ratio", "Explained", explanation.ratio(), Show::percent, "");
    add("gap_ns", "Gap", whole - explanation.measured_ns - explanation.dispatch_ns,
        Show::nanoseconds,
        explanation.unmeasured > 0
            ? fmt::format("{} calls are of operators without a time", explanation.unmeasured)
            : "cache, memory and order of the whole; no operator is missing");
    const auto no_energy = Cell::unavailable(explanation.energy_why);
    add("whole_j", "Energy of the whole",
        explanation.whole_j ? Cell(*explanation.whole_j) : no_energy, Show::plain,
        explanation.whole_j ? fmt::format("J net, {} by {}", explanation.whole.energy.label,
                                          explanation.whole.energy.source)
                            : "");
    add("measured_j", "Energy of operators",
        explanation.measured_j ? Cell(*explanation.measured_j) : no_energy, Show::plain,
        explanation.measured_j && *explanation.whole_j > 0
            ? fmt::format("J net, {:.1f} % of the whole",
                          100 * *explanation.measured_j / *explanation.whole_j)
            : "");
    add("mode", "Cache mode", text(explanation.mix), Show::plain,
        explanation.chosen_on > 0
            ? fmt::format("chosen on {} other models in the database", explanation.chosen_on)
            : "as asked, or the default: no other model in the database says which is best");
    return section;
}

Table mode_table(const Explanation& explanation) {
    Table table;
    table.key = "otherwise";
    table.title = "The sum in other modes and units";
    table.columns = {{.key = "mode", .title = "Mode"},
                     {.key = "sum_ns", .title = "Sum", .show = Show::nanoseconds},
                     {.key = "ratio", .title = "Of model", .show = Show::percent}};
    for (const auto& [mode, sum] : explanation.otherwise) {
        table.rows.push_back(
            {.cells = {Cell(mode), Cell(sum), Cell(sum / explanation.whole_ns())}});
    }
    return table;
}

// Measures until so much is explained, round by round.
Table measure_rounds(const ExplainOptions& options, const Target& target, Context& context) {
    Table table;
    table.key = "rounds";
    table.title = "Rounds";
    table.columns = {{.key = "round", .title = "Round"},
                     {.key = "measured", .title = "Operators measured", .show = Show::count},
                     {.key = "types", .title = "Of types"},
                     {.key = "ratio", .title = "Explained", .show = Show::percent},
                     {.key = "left", .title = "Without a time", .show = Show::count}};
    OpDatabase database(options.db, OpDatabase::Mode::create);
    std::optional<ModeMix> mix;
    if (!options.mix.empty()) {
        mix = parse_mode_mix(options.mix);
    }
    measure_until(
        database, target.model, target.inputs.values, target.how, options.until, mix,
        [&](const UntilRound& round) {
            std::map<std::string, std::size_t> types;
            for (const auto& type : round.measured) {
                ++types[type];
            }
            std::string text;
            for (const auto& [type, count] : types) {
                text += fmt::format("{}{} × {}", text.empty() ? "" : ", ", count, type);
            }
            table.rows.push_back({.cells = {Cell(std::uint64_t{table.rows.size()}),
                                            Cell(std::uint64_t{round.measured.size()}),
                                            Cell(text.empty() ? "the whole model" : text),
                                            Cell(round.ratio), Cell(std::uint64_t{round.left})}});
            context.log(LogLevel::info, fmt::format("explained: {:.1f} %", 100 * round.ratio));
        });
    return table;
}

Report run_explain(const ExplainOptions& options, Context& context) {
    if (options.models.size() != 1) {
        throw Error(Fault::usage, "one model is explained at a time");
    }
    if (!(options.target > 0) || options.target > 100 || options.until < 0 || options.until > 100) {
        throw Error(Fault::usage, "--target and --until are percentages up to 100");
    }
    const auto target = ops_tool_parts::prepare(options, options.models[0], context);
    Table rounds;
    if (options.until > 0) {
        rounds = measure_rounds(options, target, context);
    }
    const OpDatabase database(options.db, OpDatabase::Mode::read);
    const auto setting = find_setting(database, target, context);
    std::optional<ModeMix> mix;
    if (!options.mix.empty()) {
        mix = parse_mode_mix(options.mix);
    }
    const auto explanation = explain(database, setting, model_id(target.facts), mix);
    Report report;
    report.tool = "ops explain";
    report.context = context.describe(target.model, true);
    if (!rounds.rows.empty()) {
        report.tables.push_back(std::move(rounds));
    }
    report.tables.push_back(operator_table(explanation));
    report.sections.push_back(gap_section(explanation));
    report.tables.push_back(mode_table(explanation));
    report.order = {"rounds", "operators", "explained", "otherwise"};
    if (!options.plot.empty()) {
        write_file(options.plot, explanation_plot(explanation));
    }
    const auto ratio = 100 * explanation.ratio();
    report.verdict = ratio >= options.target && ratio <= 200 - options.target;
    report.notes.push_back(
        fmt::format("{}: {:.1f} % of the model explained; {:g} to {:g} % were "
                    "asked for",
                    report.verdict ? "yes" : "no", ratio, options.target, 200 - options.target));
    return report;
}

std::function<Report(Context&)> bind_explain(Args& args) {
    const auto options = std::make_shared<ExplainOptions>();
    args.positionals(options->models, "MODEL", "Model file");
    ops_tool_parts::declare(args, *options);
    args.option("--mix", options->mix, "MIX",
                "Cache mode of the sum, or '0.5 reuse + 0.5 in-situ'; else the one that represents "
                "the other models of the database best");
    args.option("--target", options->target, "PERCENT",
                "What has to be explained; 90 means 90 to 110 %");
    args.option("--until", options->until, "PERCENT",
                "Measure what is missing, the largest first, until so much is explained");
    args.option("--plot", options->plot, "FILE.svg", "Draw the operators beside the whole");
    args.example("trocar ops explain model.onnx --db ops.db",
                 "The sum of its operators against the whole model");
    return [options](Context& context) { return run_explain(*options, context); };
}

}  // namespace

extern const Command ops_explain{
    .name = "explain",
    .summary = "The sum of a model's operators against the whole model, and what makes the gap",
    .bind = bind_explain,
};

}  // namespace trocar
