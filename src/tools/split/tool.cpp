#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "tools/split/overview.h"
#include "trocar/command.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/lab.h"
#include "trocar/lab_options.h"
#include "util/files.h"
#include "util/text.h"

namespace trocar {

namespace {

struct Options {
    std::string model;
    std::string folder;
    PartArguments parts;
    SetArguments sets;
    LimitArguments limits;
    std::string select;
    std::string views;
    std::string kinds = "npy,bin,pb";
    std::string to;
    bool unique = false;
};

std::vector<std::string> kinds_of(const std::string& text) {
    std::vector<std::string> kinds;
    for (const auto& word : split(text, ',')) {
        const std::string kind(trim(word));
        if (kind != "npy" && kind != "bin" && kind != "pb") {
            throw Error(Fault::usage, fmt::format("'{}' is no kind of file for tensors", kind),
                        "--tensors takes npy, bin and pb, with commas between them");
        }
        if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
            kinds.push_back(kind);
        }
    }
    return kinds;
}

std::string format_named(const std::string& name) {
    std::vector<std::string> names;
    for (const auto* format : formats()) {
        if (format->encode != nullptr) {
            names.emplace_back(format->name);
        }
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        throw Error(Fault::usage, fmt::format("layers cannot be written as '{}'", name),
                    fmt::format("--to takes {}", join(names, ", ")));
    }
    return name;
}

Report run(const Options& options, Context& context) {
    const auto model = context.load(options.model);
    const auto chain = make_chain(model, options.parts);
    const auto parts = make_parts(chain, parts_options(model, options.parts));
    SplitOptions how;
    how.folder = options.folder;
    how.kinds = kinds_of(options.kinds);
    how.format = options.to.empty() ? "" : format_named(options.to);
    how.unique = options.unique;
    how.seed = context.seed();
    how.by = options.parts.by;
    if (!options.select.empty()) {
        how.select = parse_selector(options.select);
        select_some(model.graph, how.select, "--select");
    }
    if (!options.views.empty()) {
        how.views = parse_selector(options.views);
        select_some(model.graph, how.views, "--views");
    }
    how.progress = [&](std::size_t done, std::size_t total) {
        context.progress("layers", done, total);
        return !context.interrupted();
    };
    std::vector<std::string> notes;
    const auto sets = make_sets(model, options.sets, context.seed(), notes);
    const auto texts = context.engines();
    auto side_options = parse_side(texts.empty() ? context.engine_options().name : texts.front(),
                                   context.engine_options());
    set_limits(side_options, options.limits);
    Side side(chain, side_options, {}, sets.size() > 1);
    const auto lab = split(chain, parts, side, sets, how);
    auto report = split_report(chain, parts, lab);
    report.context = context.describe(model, false);
    report.context.push_back({"golden", "Golden outputs", lab.engine, Show::plain, ""});
    report.notes = notes;
    write_overview(lab, report);
    report.partial = !lab.complete;
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->model, "MODEL", "Model file");
    args.positional(options->folder, "FOLDER", "Folder to make, with a folder for each layer");
    declare_part_options(args, options->parts);
    args.option("--select", options->select, "SELECTOR", "Write layers with one of these ops only");
    args.flag("--unique", options->unique,
              "Of layers that differ in their weights and names only, write the first");
    declare_set_options(args, options->sets);
    args.option(
        "--tensors", options->kinds, "KINDS",
        "Files for tensors: npy, bin (raw elements, with a JSON file beside), pb (ONNX test "
        "data); all three by default");
    args.option("--views", options->views, "SELECTOR",
                "Pictures of what these ops write: channels as a grid (.png), their spread (.svg)");
    args.option("--to", options->to, "FORMAT",
                "Write layers in this format, mapped where it speaks another dialect: executorch, "
                "tflite, onnx; by default that of the model");
    declare_limit_options(args, options->limits);
    args.example("trocar split model.onnx lab", "One folder per op: model, inputs, golden outputs");
    args.example("trocar split model.onnx lab --by module --input real.npz",
                 "One per module, with the values of a real input");
    args.example("trocar split model.onnx lab --select Conv --unique",
                 "One convolution of each kind");
    args.example("trocar split model.onnx lab --to executorch",
                 "One .pte per op, for ExecuTorch's runtime");
    return [options](Context& context) { return run(*options, context); };
}

}  // namespace

extern const Command split_tool{
    .name = "split",
    .summary = "Split a model into layers that run alone, with inputs and golden outputs",
    .bind = bind,
};

}  // namespace trocar
