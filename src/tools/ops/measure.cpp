#include <memory>

#include "tools/ops/commands.h"
#include "tools/ops/setup.h"
#include "trocar/error.h"

namespace trocar {

namespace {

using ops_tool_parts::Options;

Report run(const Options& options, Context& context) {
    if (options.models.empty()) {
        throw Error(Fault::usage, "no model to measure");
    }
    OpDatabase database(options.db, OpDatabase::Mode::create);
    Report report;
    report.tool = "ops measure";
    std::vector<std::pair<std::string, MeasureSummary>> summaries;
    for (const auto& path : options.models) {
        const auto target = ops_tool_parts::prepare(options, path, context);
        auto summary = measure(database, target.model, target.inputs.values, target.how);
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
            report.notes.push_back(
                "interrupted: all that was measured is kept, and the same "
                "command goes on from there");
            break;
        }
    }
    report.tables.push_back(ops_tool_parts::summary_table(summaries));
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positionals(options->models, "MODEL", "Model files");
    ops_tool_parts::declare(args, *options);
    args.example("trocar ops measure model.onnx --db ops.db",
                 "Every distinct operator that the database does not have yet");
    return [options](Context& context) { return run(*options, context); };
}

}  // namespace

extern const Command ops_measure{
    .name = "measure",
    .summary = "Measure the operators of models that a database does not have yet",
    .bind = bind,
};

}  // namespace trocar
