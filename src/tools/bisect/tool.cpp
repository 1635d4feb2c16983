#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "trocar/bisect.h"
#include "trocar/command.h"
#include "trocar/compare_report.h"
#include "trocar/error.h"
#include "trocar/lab_options.h"
#include "util/text.h"

namespace trocar {

namespace {

struct Options {
    std::string model;
    std::string against;
    std::vector<std::string> commands;
    SetArguments sets;
    JudgeArguments judge;
    LimitArguments limits;
    std::string reproducer;
};

std::pair<SideOptions, SideOptions> sides_of(const Options& options, Context& context) {
    auto texts = context.engines();
    if (texts.empty()) {
        texts.push_back(context.engine_options().name);
    }
    for (const auto& command : options.commands) {
        texts.push_back("command:" + command);
    }
    if (texts.size() == 1 && !options.against.empty()) {
        texts.push_back(texts.front());
    }
    if (texts.size() != 2) {
        throw Error(Fault::usage, fmt::format("bisect takes two sides, not {}", texts.size()),
                    "give --engine twice, the reference first, or one and --command or --against");
    }
    auto first = parse_side(texts[0], context.engine_options());
    auto second = parse_side(texts[1], context.engine_options());
    set_limits(first, options.limits);
    set_limits(second, options.limits);
    return {std::move(first), std::move(second)};
}

const char* sentence(Bisection::Found found) {
    switch (found) {
        case Bisection::Found::layer:
            return "this layer introduces it";
        case Bisection::Found::fused:
            return "these ops introduce it when they are compiled together";
        case Bisection::Found::accumulated:
            return "no layer introduces it alone: small errors add up";
        default:
            return "nothing differs";
    }
}

Section result_section(const Bisection& found) {
    Section section{.key = "bisection", .title = "Bisection", .scalars = {}};
    auto& all = section.scalars;
    all.push_back({"reference", "Reference", found.sides[0], Show::plain, ""});
    all.push_back({"other", "Against it", found.sides[1], Show::plain, ""});
    all.push_back({"whole", "Model in one piece",
                   found.whole.end == RunEnd::done ? Cell(name(found.whole.verdict))
                                                   : Cell::unavailable(found.whole.reason),
                   Show::plain,
                   found.whole.end == RunEnd::done
                       ? fmt::format("relative error {:.3g}", relative_error(found.whole))
                       : ""});
    all.push_back({"found", "Found", sentence(found.found), Show::plain, ""});
    if (found.found == Bisection::Found::nothing) {
        return section;
    }
    if (!found.path.empty()) {
        all.push_back(
            {"inside", "Inside of", fmt::format("{}", join(found.path, ", ")), Show::plain, ""});
    }
    all.push_back({"layer", "Layer", found.culprit.name, Show::plain, found.culprit.type});
    all.push_back({"ops", "Ops", found.culprit.ops, Show::plain, ""});
    for (const auto& tensor : found.difference.tensors) {
        if (tensor.verdict != Verdict::pass) {
            all.push_back({"tensor", "Tensor", tensor.tensor, Show::plain, tensor.reason});
        }
    }
    if (!found.also.empty()) {
        all.push_back({"also", "Errors of their own", fmt::format("{}", join(found.also, ", ")),
                       Show::plain, "layers further down"});
    }
    return section;
}

Report run(const Options& options, Context& context) {
    auto model = context.load(options.model);
    const auto [first, second] = sides_of(options, context);
    inline_functions(model);
    std::optional<Model> other;
    if (!options.against.empty()) {
        other = context.load(options.against);
        inline_functions(*other);
    }
    std::error_code ignored;
    if (!options.reproducer.empty() && std::filesystem::exists(options.reproducer, ignored) &&
        !std::filesystem::is_empty(options.reproducer, ignored)) {
        throw Error(Fault::usage, fmt::format("'{}' has something in it", options.reproducer),
                    "name a new folder for the reproducer");
    }
    std::vector<std::string> notes;
    const auto sets = make_sets(model, options.sets, context.seed(), notes);
    BisectOptions how;
    how.judging = judging_of(options.judge);
    how.progress = [&](std::string_view doing, std::size_t done, std::size_t total) {
        context.progress(doing, done, total);
        return !context.interrupted();
    };
    const auto found = bisect(model, other ? &*other : nullptr, first, second, sets.front(), how);
    Report report;
    report.tool = "bisect";
    report.context = context.describe(model, false);
    report.sections.push_back(result_section(found));
    report.notes = found.notes;
    report.notes.insert(report.notes.end(), notes.begin(), notes.end());
    report.verdict = found.found == Bisection::Found::nothing;
    report.partial = !found.complete;
    if (!options.reproducer.empty() && !found.reference.empty()) {
        write_reproducer(found, first, second, options.reproducer);
        report.notes.push_back(
            fmt::format("the smallest part that shows it is in '{}': python3 "
                        "{}/reproduce.py",
                        options.reproducer, options.reproducer));
    }
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->model, "MODEL", "Model file");
    args.option("--against", options->against, "MODEL",
                "Run this model on the other side: one whose tensors have the same names");
    args.option("--command", options->commands, "COMMAND",
                "The other side: a command that runs {model} on {inputs} and writes {outputs}");
    args.option("-o,--reproducer", options->reproducer, "FOLDER",
                "Write the smallest part that shows the difference, with a script that does");
    declare_set_options(args, options->sets);
    declare_judge_options(args, options->judge);
    declare_limit_options(args, options->limits);
    args.example("trocar bisect model.onnx --engine onnxruntime --engine openvino -o repro",
                 "The first layer that makes two engines differ, as a model of its own");
    args.example("trocar bisect model.onnx --against changed.onnx",
                 "The first layer that a changed model computes differently");
    return [options](Context& context) { return run(*options, context); };
}

}  // namespace

extern const Command bisect_tool{
    .name = "bisect",
    .summary = "Find the first layer that makes two engines or models differ",
    .bind = bind,
    .several_engines = true,
};

}  // namespace trocar
