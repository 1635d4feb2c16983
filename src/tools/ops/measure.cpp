#include <algorithm>
#include <chrono>
#include <memory>

#include "tools/ops/commands.h"
#include "tools/ops/setup.h"
#include "trocar/error.h"

namespace trocar {

namespace {

using ops_tool_parts::Options;

using ops_tool_parts::Target;

bool is_plan(const std::string& path) {
    return path.ends_with(".yaml") || path.ends_with(".yml");
}

// What to measure, one after the other: models, and the models and sweeps of files.
std::vector<std::function<Target()>> jobs(const Options& options, Context& context) {
    std::vector<std::function<Target()>> all;
    for (const auto& path : options.models) {
        if (!is_plan(path)) {
            all.emplace_back([&options, &context, path] {
                return ops_tool_parts::prepare(options, path, context);
            });
            continue;
        }
        const auto plan = std::make_shared<OpPlan>(read_op_plan(path));
        for (const auto& entry : plan->models) {
            all.emplace_back([&options, &context, plan, entry] {
                auto here = options;
                here.inputs.shapes.insert(here.inputs.shapes.end(), entry.shapes.begin(),
                                          entry.shapes.end());
                here.inputs.sources.insert(here.inputs.sources.end(), entry.inputs.begin(),
                                           entry.inputs.end());
                auto target = ops_tool_parts::prepare(here, entry.path.string(), context);
                ops_tool_parts::apply(*plan, options, target.how);
                target.until = plan->target.value_or(0);
                return target;
            });
        }
        if (plan->sweep) {
            all.emplace_back([&options, &context, plan] {
                auto target =
                    ops_tool_parts::prepare(options, std::move(*plan->sweep), "sweep", context);
                ops_tool_parts::apply(*plan, options, target.how);
                target.how.whole = false;
                return target;
            });
        }
    }
    return all;
}

// Only as many operators as it takes, the largest first.
MeasureSummary until_explained(OpDatabase& database, const Target& target) {
    const auto start = std::chrono::steady_clock::now();
    const auto rounds = measure_until(database, target.model, target.inputs.values, target.how,
                                      target.until, std::nullopt);
    MeasureSummary summary;
    for (const auto& round : rounds) {
        summary.measured += round.measured.size();
    }
    summary.configurations = summary.measured + rounds.back().left;
    summary.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return summary;
}

Report run_measure(const Options& options, Context& context) {
    if (options.models.empty()) {
        throw Error(Fault::usage, "no model to measure");
    }
    OpDatabase database(options.db, OpDatabase::Mode::create);
    Report report;
    report.tool = "ops measure";
    std::vector<std::pair<std::string, MeasureSummary>> summaries;
    for (const auto& job : jobs(options, context)) {
        const auto target = job();
        auto summary = target.until > 0
                           ? until_explained(database, target)
                           : measure(database, target.model, target.inputs.values, target.how);
        for (const auto& warning : summary.warnings) {
            if (std::find(report.warnings.begin(), report.warnings.end(), warning) ==
                report.warnings.end()) {
                report.warnings.push_back(warning);
            }
        }
        const bool complete = summary.complete;
        summaries.emplace_back(target.facts.name, std::move(summary));
        if (!complete) {
            report.partial = true;
            report.notes.emplace_back(
                "interrupted: all that was measured is kept, and the same "
                "command goes on from there");
            break;
        }
    }
    report.tables.push_back(ops_tool_parts::summary_table(summaries));
    return report;
}

std::function<Report(Context&)> bind_measure(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positionals(options->models, "MODEL",
                     "Model files, and files (.yaml) that list models and sweeps of operators");
    ops_tool_parts::declare(args, *options);
    args.example("trocar ops measure model.onnx --db ops.db",
                 "Every distinct operator that the database does not have yet");
    return [options](Context& context) { return run_measure(*options, context); };
}

}  // namespace

extern const Command ops_measure{
    .name = "measure",
    .summary = "Measure the operators of models that a database does not have yet",
    .bind = bind_measure,
};

}  // namespace trocar
