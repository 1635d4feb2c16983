#include <fmt/format.h>

#include <map>
#include <memory>

#include "tools/ops/commands.h"
#include "tools/ops/setup.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/op_report.h"
#include "util/files.h"

namespace trocar {

namespace {

using ops_tool_parts::Options;

struct ForecastOptions : Options {
    std::string mix;
    std::string plot;
    std::string roofline;
    std::int64_t setting = 0;
};

const char* name(OpPrediction::How how) {
    switch (how) {
        case OpPrediction::How::exact:
            return "measured";
        case OpPrediction::How::interpolated:
            return "between neighbours";
        default:
            return "model";
    }
}

ModeMix mix_of(const OpDatabase& database, std::int64_t setting, const ForecastOptions& options) {
    return options.mix.empty() ? usual_mix(database, setting) : parse_mode_mix(options.mix);
}

// The setting that was asked for, the one of this machine, or the only one.
std::int64_t setting_for(const OpDatabase& database, const ForecastOptions& options,
                         const std::optional<OpSetting>& here) {
    const auto all = database.settings();
    if (options.setting != 0) {
        if (std::find(all.begin(), all.end(), options.setting) == all.end()) {
            throw Error(Fault::usage,
                        fmt::format("the database has no setting {}", options.setting),
                        fmt::format("it has {}", all.size()));
        }
        return options.setting;
    }
    if (here) {
        if (const auto found = database.find(*here)) {
            return *found;
        }
    }
    if (all.size() == 1) {
        return all[0];
    }
    std::string list;
    for (const auto id : all) {
        const auto setting = database.setting(id);
        list += fmt::format("{}{}: {} {} on {}, {} threads", list.empty() ? "" : "; ", id,
                            setting.engine, setting.version, setting.host.cpu, setting.threads);
    }
    throw Error(Fault::usage, "the database knows several machines, engines or thread counts",
                "--setting takes one of " + list);
}

// --- next
// -------------------------------------------------------------------------------------

Report next(const ForecastOptions& options, Context& context) {
    if (options.models.size() != 1) {
        throw Error(Fault::usage, "one model at a time");
    }
    const auto target = ops_tool_parts::prepare(options, options.models[0], context);
    OpDatabase database(options.db, OpDatabase::Mode::create);
    std::string version;
    const auto facts = survey(target.model, target.inputs.values, target.how, &version);
    const auto setting = database.add(setting_of(target.how.engine, version));
    const auto list = next_ops(database, setting, facts, mix_of(database, setting, options));
    double total = 0;
    bool guessed = false;
    for (const auto& one : list) {
        total += one.expected_ns;
        guessed = guessed || one.guessed;
    }
    Report report;
    report.tool = "ops next";
    Table table;
    table.key = "operators";
    table.title = "To be measured, the largest first";
    table.columns = {{.key = "type", .title = "Operator"},
                     {.key = "inputs", .title = "Inputs", .optional = 1},
                     {.key = "count", .title = "Calls", .show = Show::count},
                     {.key = "expected_ns", .title = "Expected", .show = Show::nanoseconds},
                     {.key = "low_ns", .title = "from", .show = Show::nanoseconds, .optional = 2},
                     {.key = "high_ns", .title = "to", .show = Show::nanoseconds, .optional = 2},
                     {.key = "share", .title = "Of these", .show = Show::percent},
                     {.key = "key", .title = "Key", .optional = 1}};
    for (const auto& one : list) {
        table.rows.push_back(
            {.cells = {
                 Cell(one.op->config.features.type), Cell(one.op->config.inputs),
                 Cell(one.op->count), Cell(one.expected_ns),
                 one.guessed ? Cell::unavailable("nothing was measured yet") : Cell(one.low_ns),
                 one.guessed ? Cell::unavailable("nothing was measured yet") : Cell(one.high_ns),
                 Cell(total > 0 ? one.expected_ns / total : 0.0),
                 Cell(one.op->config.key.substr(0, 10))}});
    }
    table.note = guessed ? "nothing was measured with this setting yet: the order follows from the "
                           "work alone, and times are no figures of this machine"
                         : "expected by what was measured; 90 % intervals";
    report.tables.push_back(std::move(table));
    report.notes.push_back(fmt::format("{} of {} distinct operators are not in the database",
                                       list.size(), facts.ops.size()));
    return report;
}

std::function<Report(Context&)> bind_next(Args& args) {
    const auto options = std::make_shared<ForecastOptions>();
    args.positionals(options->models, "MODEL", "Model file");
    ops_tool_parts::declare(args, *options);
    args.option("--mix", options->mix, "MIX", "Cache mode that is asked for");
    args.example("trocar ops next model.onnx --db ops.db", "What to measure next, and why");
    return [options](Context& context) { return next(*options, context); };
}

// --- predict
// ----------------------------------------------------------------------------------

Report predict(const ForecastOptions& options, Context& context) {
    if (options.models.size() != 1) {
        throw Error(Fault::usage, "one model at a time");
    }
    const auto target = ops_tool_parts::prepare(options, options.models[0], context);
    const OpDatabase database(options.db, OpDatabase::Mode::read);
    std::string version;
    const auto facts = survey(target.model, target.inputs.values, target.how, &version);
    const auto setting = setting_for(database, options, setting_of(target.how.engine, version));
    const auto known = samples(database, setting, mix_of(database, setting, options));
    if (known.empty()) {
        throw Error(Fault::input, "nothing was measured that could be learned from",
                    "`trocar ops measure MODEL --db FILE` measures operators");
    }
    const OpPredictor predictor(known);
    OpModel model;
    model.name = facts.name;
    std::map<std::string, OpFeatures> features;
    for (const auto& run : database.runs()) {
        if (run.setting == setting) {
            model.fixed_ns = run.cost.run_ns;
        }
    }
    Table table;
    table.key = "operators";
    table.title = "Operators";
    table.columns = {{.key = "type", .title = "Operator"},
                     {.key = "inputs", .title = "Inputs", .optional = 2},
                     {.key = "count", .title = "Calls", .show = Show::count},
                     {.key = "all_ns", .title = "All", .show = Show::nanoseconds},
                     {.key = "low_ns", .title = "from", .show = Show::nanoseconds},
                     {.key = "high_ns", .title = "to", .show = Show::nanoseconds},
                     {.key = "how", .title = "How"},
                     {.key = "far", .title = "Far", .optional = 1},
                     {.key = "distance", .title = "Distance", .hidden = true}};
    std::vector<std::pair<double, Row>> rows;
    for (const auto& op : facts.ops) {
        const auto& key = op.config.key;
        const auto calls = static_cast<double>(op.count);
        model.operators.emplace_back(key, calls);
        features[key] = op.config.features;
        const auto one = predictor.predict(op.config.features, key);
        Row row;
        row.cells = {Cell(op.config.features.type), Cell(op.config.inputs), Cell(op.count),
                     Cell(one.ns * calls),          Cell(one.low * calls),  Cell(one.high * calls),
                     Cell(name(one.how)),           Cell(one.far),          Cell(one.distance)};
        rows.emplace_back(one.ns * calls, std::move(row));
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [ns, row] : rows) {
        table.rows.push_back(std::move(row));
    }
    table.note = "far: unlike all that was learned from; better measure it";
    const auto all = predictor.predict_model(model, features);
    Report report;
    report.tool = "ops predict";
    report.context = context.describe(target.model, true);
    Section section{.key = "model", .title = "Model", .scalars = {}};
    auto& scalars = section.scalars;
    scalars.push_back({"ns", "Predicted", all.ns, Show::nanoseconds,
                       fmt::format("{} to {}, 90 %", show(Cell(all.low), Show::nanoseconds),
                                   show(Cell(all.high), Show::nanoseconds))});
    scalars.push_back({"joules", "Energy",
                       all.joules > 0 ? Cell(all.joules)
                                      : Cell::unavailable("the power of these operators was not "
                                                          "measured"),
                       Show::plain, "joules"});
    scalars.push_back({"exact", "From measured operators", all.exact, Show::percent, ""});
    scalars.push_back({"interpolated", "Between neighbours", all.interpolated, Show::percent, ""});
    scalars.push_back({"learned", "From the model", all.model, Show::percent, ""});
    scalars.push_back({"far", "Better measured", all.far, Show::percent, ""});
    const auto at = database.setting(setting);
    scalars.push_back(
        {"setting", "For",
         fmt::format("{} {}, {} threads, {}", at.engine, at.version, at.threads, at.host.cpu),
         Show::plain, fmt::format("{} operators learned from", predictor.size())});
    report.sections.push_back(std::move(section));
    report.tables.push_back(std::move(table));
    report.order = {"operators", "model"};
    return report;
}

std::function<Report(Context&)> bind_predict(Args& args) {
    const auto options = std::make_shared<ForecastOptions>();
    args.positionals(options->models, "MODEL", "Model file");
    ops_tool_parts::declare(args, *options);
    args.option("--mix", options->mix, "MIX", "Cache mode that is learned from");
    args.option("--setting", options->setting, "N",
                "Machine, engine and threads to predict for, where the database has several");
    args.example("trocar ops predict model.onnx --db ops.db",
                 "How long a model takes that was never timed");
    return [options](Context& context) { return predict(*options, context); };
}

// --- evaluate
// ---------------------------------------------------------------------------------

void add_accuracy(Table& table, const char* what, const OpAccuracy& accuracy) {
    const auto cell = [&](double value) {
        return accuracy.count > 0 ? Cell(value) : Cell::unavailable("nothing to predict");
    };
    table.rows.push_back(
        {.cells = {Cell(what), Cell(std::uint64_t{accuracy.count}), cell(accuracy.mean_error),
                   cell(accuracy.median_error), cell(accuracy.within_5), cell(accuracy.within_10),
                   cell(accuracy.coverage)}});
}

Report evaluate_all(const ForecastOptions& options) {
    const OpDatabase database(options.db, OpDatabase::Mode::read);
    const auto setting = setting_for(database, options, std::nullopt);
    const auto known = samples(database, setting, mix_of(database, setting, options));
    if (known.empty()) {
        throw Error(Fault::input, "nothing was measured that could be learned from");
    }
    auto models = measured_models(database, setting, View::deployed);
    if (models.empty()) {
        models = measured_models(database, setting, View::source);
    }
    const auto evaluation = evaluate(known, models);
    Report report;
    report.tool = "ops evaluate";
    Table table;
    table.key = "accuracy";
    table.title = "Predictions of what was withheld";
    table.columns = {{.key = "what", .title = "Withheld"},
                     {.key = "count", .title = "Predictions", .show = Show::count},
                     {.key = "mape", .title = "MAPE", .show = Show::percent},
                     {.key = "median_error", .title = "Median error", .show = Show::percent},
                     {.key = "within_5", .title = "within 5 %", .show = Show::percent},
                     {.key = "within_10", .title = "within 10 %", .show = Show::percent},
                     {.key = "coverage", .title = "90 % intervals hold", .show = Show::percent}};
    add_accuracy(table, "one operator", evaluation.leave_one_operator_out);
    add_accuracy(table, "one model's own operators", evaluation.leave_one_model_out);
    add_accuracy(table, "all of one model's operators", evaluation.leave_all_of_model_out);
    report.tables.push_back(std::move(table));
    Table rows;
    rows.key = "models";
    rows.title = "Models";
    rows.columns = {{.key = "model", .title = "Model"},
                    {.key = "measured_ns", .title = "Measured", .show = Show::nanoseconds},
                    {.key = "predicted_ns", .title = "Predicted", .show = Show::nanoseconds},
                    {.key = "ratio", .title = "Ratio", .show = Show::ratio},
                    {.key = "strict_ns", .title = "All withheld", .show = Show::nanoseconds},
                    {.key = "strict_ratio", .title = "Ratio", .show = Show::ratio},
                    {.key = "withheld", .title = "Withheld", .show = Show::count}};
    for (std::size_t i = 0; i < evaluation.models.size(); ++i) {
        const auto& one = evaluation.models[i];
        const auto* strict = i < evaluation.models_without_hits.size()
                                 ? &evaluation.models_without_hits[i]
                                 : nullptr;
        rows.rows.push_back(
            {.cells = {Cell(one.name), Cell(one.measured_ns), Cell(one.predicted.ns),
                       Cell(one.predicted.ns / one.measured_ns),
                       strict != nullptr ? Cell(strict->predicted.ns) : Cell(),
                       strict != nullptr ? Cell(strict->predicted.ns / one.measured_ns) : Cell(),
                       Cell(std::uint64_t{one.withheld})}});
    }
    report.tables.push_back(std::move(rows));
    for (const auto& name : evaluation.left_aside) {
        report.notes.push_back(fmt::format("{} was left aside: not all of it was measured", name));
    }
    const OpPredictor predictor(known);
    if (!options.plot.empty()) {
        write_file(options.plot, prediction_plot(evaluation));
    }
    if (!options.roofline.empty()) {
        write_file(options.roofline, roofline_plot(known, predictor.peaks()));
    }
    return report;
}

std::function<Report(Context&)> bind_evaluate(Args& args) {
    const auto options = std::make_shared<ForecastOptions>();
    args.option("--db", options->db, "FILE", "Database of operators");
    args.require("--db");
    args.option("--mix", options->mix, "MIX", "Cache mode that is learned from");
    args.option("--setting", options->setting, "N",
                "Machine, engine and threads, where the database has several");
    args.option("--plot", options->plot, "FILE.svg", "Draw predicted against measured");
    args.option("--roofline", options->roofline, "FILE.svg",
                "Draw the operators below the roofline of the machine");
    args.example("trocar ops evaluate --db ops.db --plot predicted.svg",
                 "How good predictions are, on what was withheld from them");
    return [options](Context&) { return evaluate_all(*options); };
}

}  // namespace

extern const Command ops_next{
    .name = "next",
    .summary = "Operators of a model to measure next, by what they are expected to take",
    .bind = bind_next,
};
extern const Command ops_predict{
    .name = "predict",
    .summary = "How long a model takes that was never timed, with an interval",
    .bind = bind_predict,
};
extern const Command ops_evaluate{
    .name = "evaluate",
    .summary = "How good predictions are, on operators and models withheld from them",
    .bind = bind_evaluate,
};

}  // namespace trocar
