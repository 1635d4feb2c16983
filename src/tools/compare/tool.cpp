#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "trocar/command.h"
#include "trocar/compare_report.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/lab.h"
#include "trocar/lab_options.h"
#include "util/files.h"
#include "util/text.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

struct Options {
    std::string subject;
    std::string against;
    std::vector<std::string> commands;
    PartArguments parts;
    SetArguments sets;
    JudgeArguments judge;
    LimitArguments limits;
    std::string mode = "both";
    std::string sort = "order";
    std::int64_t worst = 0;
    bool all = false;
    std::string plot;
    std::string save;
};

// A model with what is needed to run its parts on several sides.
std::vector<Side> open_sides(const Options& options, const Chain& chain, const Model* other,
                             Context& context, bool keep) {
    auto texts = context.engines();
    if (other != nullptr && texts.size() < 2) {
        const std::string first = texts.empty() ? context.engine_options().name : texts.front();
        texts = {first, first};
    }
    if (texts.empty() && !options.commands.empty()) {
        texts = {context.engine_options().name};
    }
    for (const auto& command : options.commands) {
        texts.push_back("command:" + command);
    }
    if (texts.size() < 2) {
        throw Error(Fault::usage, "a comparison needs two sides",
                    "give --engine twice, the reference first, or one and --command or --against");
    }
    std::vector<Side> sides;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        auto side = parse_side(texts[i], context.engine_options());
        set_limits(side, options.limits);
        Side::Build build;
        if (i > 0 && other != nullptr) {
            build = [&chain, other](const Part& part, std::span<const Value> inputs) {
                return matching_part(chain, part, *other, inputs);
            };
        }
        sides.emplace_back(chain, std::move(side), std::move(build), keep);
    }
    return sides;
}

Comparison run_model(const Options& options, Context& context, std::vector<Scalar>& about) {
    const auto model = context.load(options.subject);
    std::optional<Model> other;
    if (!options.against.empty()) {
        other = context.load(options.against);
    }
    const auto chain = make_chain(model, options.parts);
    auto how = parts_options(model, options.parts);
    if (other) {
        how.may_end = shared_places(chain, *other);
    }
    const auto parts = make_parts(chain, how);
    std::vector<std::string> notes;
    const auto sets = make_sets(model, options.sets, context.seed(), notes);
    auto sides = open_sides(options, chain, other ? &*other : nullptr, context, sets.size() > 1);
    CompareOptions compare_options;
    compare_options.judging = judging_of(options.judge);
    compare_options.isolated = options.mode != "cumulative";
    compare_options.cumulative = options.mode != "isolated";
    compare_options.on_result = [&](const LayerComparison&) { return !context.interrupted(); };
    compare_options.progress = [&](std::size_t done, std::size_t total) {
        context.progress("layers", done, total);
    };
    auto comparison = compare(chain, parts, sides, sets, compare_options);
    comparison.notes = std::move(notes);
    about = context.describe(model, false);
    if (other) {
        for (std::size_t i = 1; i < comparison.sides.size(); ++i) {
            comparison.sides[i] +=
                fmt::format(" on {}", fs::path(options.against).filename().string());
        }
    }
    return comparison;
}

// Models may be JSON too.
bool is_saved(const fs::path& path) {
    if (path.extension() != ".json" || !fs::is_regular_file(path)) {
        return false;
    }
    const auto text = read_file(path);
    const auto head =
        std::as_bytes(std::span(text)).first(std::min<std::size_t>(text.size(), 4096));
    return std::none_of(formats().begin(), formats().end(), [&](const Format* format) {
        return format->matches != nullptr && format->matches(head, path);
    });
}

// The results to compare: those of the sides that are named, run where they were not yet.
std::vector<std::string> lab_sides(const Options& options, const Lab& lab, Context& context) {
    auto texts = context.engines();
    for (const auto& command : options.commands) {
        texts.push_back("command:" + command);
    }
    std::vector<std::string> names;
    for (const auto& text : texts) {
        LabRunOptions run;
        run.side = parse_side(text, context.engine_options());
        set_limits(run.side, options.limits);
        run.name = result_name(run.side);
        run.jobs = context.threads();
        run.progress = [&](std::size_t done, std::size_t total) {
            context.progress("layers", done, total);
            return !context.interrupted();
        };
        names.push_back(run.name);
        run_lab(lab, run);
    }
    return names;
}

Comparison measured(const Options& options, Context& context, std::vector<Scalar>& about) {
    std::error_code ignored;
    if (is_saved(options.subject)) {
        try {
            return comparison_from_json(read_file(options.subject));
        } catch (const Error& error) {
            throw Error(error.fault(), fmt::format("'{}': {}", options.subject, error.what()));
        }
    }
    if (fs::is_directory(options.subject, ignored) &&
        fs::exists(fs::path(options.subject) / "manifest.json", ignored)) {
        const auto lab = read_lab(options.subject);
        return compare_lab(lab, lab_sides(options, lab, context), judging_of(options.judge),
                           [&](std::size_t done, std::size_t total) {
                               context.progress("layers", done, total);
                               return !context.interrupted();
                           });
    }
    return run_model(options, context, about);
}

Report run(const Options& options, Context& context) {
    if (options.worst < 0) {
        throw Error(Fault::usage, "--worst must not be negative");
    }
    const auto judging = judging_of(options.judge);
    std::vector<Scalar> about;
    auto comparison = measured(options, context, about);
    judge(comparison, judging);
    if (!options.save.empty()) {
        write_file(options.save, to_json(comparison));
    }
    if (!options.plot.empty()) {
        write_file(options.plot, comparison_plot(comparison));
    }
    ComparisonView view;
    view.worst_first = options.sort == "worst";
    view.most = static_cast<std::size_t>(options.worst);
    view.only_bad = !options.all && options.worst == 0;
    auto report = comparison_report(comparison, view);
    report.context = std::move(about);
    for (std::size_t i = 0; i < comparison.sides.size(); ++i) {
        report.context.push_back({i == 0 ? "reference" : fmt::format("side_{}", i),
                                  i == 0 ? "Reference" : fmt::format("Side {}", i),
                                  comparison.sides[i], Show::plain, ""});
    }
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->subject, "SUBJECT",
                    "Model file; or a folder that `trocar split` made; or what --save wrote, to "
                    "judge it again");
    args.option("--against", options->against, "MODEL",
                "Run this model on the other side: one whose tensors have the same names");
    args.option("--command", options->commands, "COMMAND",
                "One more side: a command that runs {model} on {inputs} and writes {outputs}");
    declare_part_options(args, options->parts);
    declare_set_options(args, options->sets);
    args.choice("--mode", options->mode, "both|isolated|cumulative",
                "Feed each layer the reference's values, those that arrive, or both");
    declare_judge_options(args, options->judge);
    declare_limit_options(args, options->limits);
    args.choice("--sort", options->sort, "order|worst", "Order of the layers");
    args.option("--worst", options->worst, "N", "Show the N worst layers");
    args.flag("--all", options->all, "Show all layers, also those that pass");
    args.option("--plot", options->plot, "FILE.svg", "Draw the error along the network");
    args.option("--save", options->save, "FILE.json",
                "Keep all that was measured: `trocar compare FILE.json` judges it again");
    args.example("trocar compare model.onnx --engine onnxruntime --engine openvino",
                 "Two engines, layer by layer, in one pass");
    args.example("trocar compare model.onnx --engine onnxruntime:A --engine onnxruntime:B --all",
                 "Two versions of one engine, from the folders A and B");
    args.example("trocar compare model.onnx --against pruned.onnx --worst 5",
                 "Where a changed model differs most from the one it was made of");
    return [options](Context& context) { return run(*options, context); };
}

}  // namespace

extern const Command compare_tool{
    .name = "compare",
    .summary = "Run a model on several engines and say for each layer whether they agree",
    .bind = bind,
    .several_engines = true,
};

}  // namespace trocar
