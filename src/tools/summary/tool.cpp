#include <fmt/format.h>

#include <filesystem>

#include "tools/summary/present.h"
#include "trocar/command.h"
#include "trocar/error.h"
#include "trocar/selector.h"

namespace trocar {
namespace {

using namespace summary;

void check(const Options& options) {
    if (options.models.empty()) {
        throw Error(Fault::usage, "no model is given", "trocar summary MODEL");
    }
    if (options.models.size() > 1 && !options.configs) {
        throw Error(Fault::usage, "summary takes one model",
                    "with --configs it takes several and compares their layers");
    }
    if (options.depth < 0 || options.top < 0) {
        throw Error(Fault::usage, "--depth and --top take numbers from 0 on");
    }
    if (!options.select.empty()) {
        parse_selector(options.select);
    }
}

void add_remarks(Report& report, const Summary& s, const std::string& prefix) {
    auto add = [&](std::vector<std::string>& to, const std::string& text) {
        to.push_back(prefix + text);
    };
    for (const std::string& note : s.notes) {
        add(report.notes, note);
    }
    for (const std::string& warning : s.warnings) {
        add(report.warnings, warning);
    }
    if (s.rows.some_per_iteration) {
        add(report.notes,
            "some loops run an unknown number of times: what is in them is counted for one "
            "iteration");
    }
    if (s.rows.some_branch_open) {
        add(report.notes, "without a run both branches of an If are counted");
    }
    report.partial = report.partial || s.interrupted;
}

Report summarize(Context& context, const Options& options) {
    check(options);
    if (!options.no_run) {
        context.isolate();
    }
    Report report;
    report.tool = "summary";
    if (options.configs) {
        std::vector<Summary> summaries;
        for (const std::string& path : options.models) {
            summaries.push_back(gather(context, path, options));
            add_remarks(report, summaries.back(),
                        options.models.size() > 1 ? fmt::format("{}: ", path) : "");
            if (summaries.back().interrupted) {
                break;
            }
        }
        report.context = context.describe(*summaries.front().model, summaries.front().ran);
        report.tables.push_back(config_table(summaries, options));
        report.notes.push_back(counting_convention());
        return report;
    }
    Summary s = gather(context, options.models.front(), options);
    report.context = context.describe(*s.model, s.ran);
    add_remarks(report, s, "");
    report.sections = {model_section(s), parameter_section(s), compute_section(s),
                       memory_section(s)};
    report.tables.push_back(op_table(s));
    report.tables.push_back(layer_table(s, options));
    report.tables.push_back(type_table(s));
    if (!s.rows.uncounted.empty()) {
        report.tables.push_back(uncounted_table(s));
    }
    report.order = {"model", "layers", "types", "uncounted", "parameters", "compute", "memory"};
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    auto options = std::make_shared<Options>();
    args.positionals(options->models, "MODEL", "Model file; several with --configs");
    args.option("--depth", options->depth, "N", "Open modules N levels deep (default: as fits)");
    args.flag("--expand", options->expand,
              "Show equal neighbouring blocks one by one, and long lists whole");
    args.flag("--flat", options->flat, "A list of ops instead of the tree of modules");
    args.option("--select", options->select, "SELECTOR",
                "List these ops only: Conv, 'module:layer1*'…");
    args.choice("--sort", options->sort, "order|macs|params|bytes", "List ops, the largest first");
    args.option("--top", options->top, "N", "List the first N ops only");
    args.flag(
        "--configs", options->configs,
        "Distinct layer configurations, and how often each occurs, over one or several models");
    args.flag("--no-run", options->no_run, "Run nothing: shapes are those the file declares");
    args.flag("--run-all", options->run_all,
              "Run every op, also those whose shapes an equal op has shown already");
    args.flag("--no-weights", options->no_weights, "Do not look at weights: no zeros, no patterns");
    declare_input_options(args, options->inputs);
    args.example("trocar summary model.onnx", "what is in a model");
    args.example("trocar summary model.onnx --shape batch=8 --depth 2",
                 "at another size, two levels deep");
    args.example("trocar summary model.onnx --sort macs --top 10",
                 "the ten ops with the most MACs");
    args.example("trocar summary a.onnx b.onnx --configs --sort macs", "the layers of two models");
    args.example("trocar summary model.onnx --json", "every op, for programs");
    return [options](Context& context) { return summarize(context, *options); };
}

}  // namespace

extern const Command summary_tool{
    .name = "summary",
    .summary = "Show what is in a model: layers, shapes, parameters, MACs, memory",
    .bind = bind,
};

}  // namespace trocar
