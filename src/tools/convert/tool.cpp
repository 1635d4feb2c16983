#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "trocar/command.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/inputs.h"
#include "trocar/mapping.h"
#include "trocar/model.h"
#include "trocar/weights.h"
#include "util/mapped_file.h"
#include "util/text.h"

namespace trocar {

namespace {

namespace fs = std::filesystem;

struct Options {
    std::string model;
    std::string out;
    std::string external = "copy";
    bool verify = false;
    std::vector<std::string> rules;
    std::string weights;
    bool keep_layout = false;
    InputSpec inputs;
};

ExternalPolicy policy(const std::string& text) {
    if (text == "reference") {
        return ExternalPolicy::reference;
    }
    if (text == "inline") {
        return ExternalPolicy::inlined;
    }
    return text == "separate" ? ExternalPolicy::separate : ExternalPolicy::copy;
}

// Compared piece by piece, so that files larger than memory are not kept in it.
bool same_content(const fs::path& a, const fs::path& b) {
    constexpr std::size_t piece = std::size_t{4} << 20;
    const auto first = MappedFile::open(a);
    const auto second = MappedFile::open(b);
    const auto size = first->bytes().size();
    if (size != second->bytes().size()) {
        return false;
    }
    for (std::size_t at = 0; at < size; at += piece) {
        const auto left = first->bytes().subspan(at, std::min(piece, size - at));
        const auto right = second->bytes().subspan(at, left.size());
        if (!std::equal(left.begin(), left.end(), right.begin())) {
            return false;
        }
        release_pages(left);
        release_pages(right);
    }
    return true;
}

// Problems of the graph as a table, at most so many.
Table problem_table(const std::vector<Problem>& problems) {
    constexpr std::size_t shown = 50;
    Table table{.key = "problems",
                .title = "Problems",
                .columns = {{.key = "where", .title = "Where"}, {.key = "what", .title = "What"}},
                .rows = {},
                .note = {}};
    for (std::size_t i = 0; i < std::min(shown, problems.size()); ++i) {
        table.rows.push_back({.cells = {problems[i].where, problems[i].what}});
    }
    if (problems.size() > shown) {
        table.note = fmt::format("and {} more", problems.size() - shown);
    }
    return table;
}

// Into a folder means: under the same name, as cp does it.
fs::path target_of(const Options& options) {
    std::error_code ignored;
    if (fs::is_directory(options.out, ignored)) {
        return fs::path(options.out) / fs::path(options.model).filename();
    }
    if (options.out.ends_with('/')) {
        throw Error(Fault::usage, fmt::format("there is no folder '{}'", options.out));
    }
    return options.out;
}

// Does the file to be written have other words? Two formats of one dialect may have different ops:
// then there are rules of that dialect to itself.
bool speaks_otherwise(const Format& format, const Model& model) {
    return format.dialect != model.dialect ||
           (format.name != model.format && can_map(model.dialect, format.dialect));
}

// Shapes come from a run.
void observe(Model& model, const Options& options, Context& context) {
    auto spec = options.inputs;
    spec.seed = context.seed();
    spec.fill = spec.fill.empty() ? "random" : spec.fill;
    const auto inputs = make_inputs(model, spec);
    complete_types(model, context.engine(), inputs.values);
}

// Rules may decline because a shape is not known. Then the model is mapped with those of a run,
// where it can run op by op; why it cannot is not said, as the rules have said what they lack.
std::optional<Mapped> map_observed(const Model& model, const std::string& dialect,
                                   const MapOptions& how, const Options& options,
                                   Context& context) {
    try {
        auto typed = clone(model);
        observe(typed, options, context);
        auto mapped = map_model(typed, dialect, how);
        return mapped.complete() ? std::optional(std::move(mapped)) : std::nullopt;
    } catch (const Error& e) {
        if (e.fault() == Fault::internal) {
            throw;
        }
        return std::nullopt;
    }
}

// Labels, which an op that is a loss in training has as an input and no rule asked for.
void drop_labels(const Graph& source, Graph& made) {
    std::vector<TensorId> kept;
    std::vector<TensorId> dropped;
    for (const auto id : made.inputs()) {
        const auto& tensor = made.tensor(id);
        const auto before = source.find_tensor(tensor.name);
        const auto is_label = [](const Property& one) {
            return one.key == "kind" && one.value == "label";
        };
        const bool label = before && std::any_of(source.tensor(*before).metadata.begin(),
                                                 source.tensor(*before).metadata.end(), is_label);
        (label && tensor.uses.empty() && !tensor.is_output ? dropped : kept).push_back(id);
    }
    made.set_inputs(std::move(kept));
    for (const auto id : dropped) {
        made.remove_tensor(id);
    }
}

// The model in the words that the format of `target` has. Nothing: some ops cannot be said so.
std::optional<Model> in_dialect(Model model, const Format& format, const Options& options,
                                Context& context, Report& report) {
    const bool wants_types = needs_types(model.dialect, format.dialect);
    if (wants_types && !has_all_types(model.graph)) {
        observe(model, options, context);
    }
    MapOptions how;
    how.rules.assign(options.rules.begin(), options.rules.end());
    how.tidy = !options.keep_layout;
    auto mapped = map_model(model, format.dialect, how);
    if (!wants_types && !mapped.complete() && !has_all_types(model.graph)) {
        if (auto again = map_observed(model, format.dialect, how, options, context)) {
            mapped = std::move(*again);
            report.notes.push_back(
                "shapes that rules asked for are those of a run: the sizes of the inputs are "
                "fixed");
        }
    }
    report_mapping(mapped, model.dialect, report);
    if (!mapped.complete()) {
        return std::nullopt;
    }
    drop_labels(model.graph, mapped.model.graph);
    return std::move(mapped.model);
}

// The constants alone, in a file of tensors.
void write_weights(const Model& model, const fs::path& target, Report& report) {
    const auto& format = *find_archive(target);
    std::vector<NamedValue> held;
    std::vector<std::string> others;
    for (auto& value : weights(model)) {
        if (format.holds(value.value)) {
            held.push_back(std::move(value));
        } else {
            others.push_back(fmt::format("'{}' ({})", value.name, value_text(value.value)));
        }
    }
    save_values(held, target);
    Section written{.key = "written", .title = "Written", .scalars = {}};
    auto& scalars = written.scalars;
    scalars.push_back({"file", "File", target.string(), Show::plain, ""});
    scalars.push_back(
        {"file_bytes", "Size", std::uint64_t{fs::file_size(target)}, Show::bytes, ""});
    scalars.push_back({"constants", "Constants", std::uint64_t{held.size()}, Show::plain,
                       fmt::format("of {}", held.size() + others.size())});
    report.sections.push_back(std::move(written));
    if (!others.empty()) {
        report.notes.push_back(
            fmt::format("{} holds no such type: {}", format.name, join(others, ", ")));
    }
}

Report convert(const Options& options, Context& context) {
    auto model = context.load(options.model);
    Report report;
    report.tool = "convert";
    report.context = context.describe(model, false);
    if (!options.weights.empty()) {
        set_weights(model, load_values(options.weights));
    }
    if (options.verify) {
        const auto problems = model.graph.verify();
        if (!problems.empty()) {
            report.verdict = false;
            report.tables.push_back(problem_table(problems));
            report.notes.push_back(fmt::format("{} found, so nothing was written",
                                               counted(problems.size(), "problem")));
            return report;
        }
    }
    const auto target = target_of(options);
    if (find_archive(target) != nullptr) {
        write_weights(model, target, report);
        return report;
    }
    if (const auto* format = find_writer(target);
        format != nullptr && speaks_otherwise(*format, model)) {
        auto mapped = in_dialect(std::move(model), *format, options, context, report);
        if (!mapped) {
            return report;
        }
        model = std::move(*mapped);
        model.format = format->name;
    } else if (!options.rules.empty()) {
        throw Error(Fault::usage, "there is nothing to map: both files speak the same dialect");
    }
    std::error_code ignored;
    const bool in_place = fs::equivalent(options.model, target, ignored);
    // Asked before saving: the file may be about to be replaced.
    const bool intact = model.intact();
    save(model, target, {.external = policy(options.external)});

    Section written{.key = "written", .title = "Written", .scalars = {}};
    auto& scalars = written.scalars;
    scalars.push_back({"file", "File", target.string(), Show::plain, ""});
    scalars.push_back(
        {"file_bytes", "Size", std::uint64_t{fs::file_size(target)}, Show::bytes, ""});
    if (options.external != "reference") {
        // What was written must be readable; this also counts what went into further files.
        const auto back = load(target, model.format);
        scalars.push_back({"external_bytes", "In further files", std::uint64_t{back.external_bytes},
                           Show::bytes, ""});
    }
    const bool is_file = fs::is_regular_file(options.model, ignored);  // or a folder
    const bool identical = in_place ? intact : is_file && same_content(options.model, target);
    scalars.push_back({"identical", "Same bytes as the source", identical, Show::plain,
                       in_place ? "written over the source" : ""});
    report.sections.push_back(std::move(written));
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->model, "MODEL", "Model file to read");
    args.positional(options->out, "OUT",
                    "File to write, or a folder to write it in; the constants alone where it is "
                    ".safetensors or .npz");
    args.choice("--external-data", options->external, "copy|reference|inline|separate",
                "Constants in further files: copied beside OUT, left where they are, taken into "
                "OUT; or all "
                "constants of 1 kB and more put into one file beside OUT");
    args.option("--rules", options->rules, "FILE",
                "Further rules for another dialect, asked before Trocar's own; may be repeated");
    args.option("--weights", options->weights, "FILE",
                "Constants from a file of tensors (.safetensors, .npz) in the place of those of "
                "the same names");
    args.flag("--keep-layout", options->keep_layout,
              "Leave every change of layout, activation and quantised op as a rule made it");
    declare_input_options(args, options->inputs);
    args.flag("--verify", options->verify, "Write nothing when the graph has problems (exit 1)");
    args.example("trocar convert model.onnx copy.onnx", "Read a model and write it back");
    args.example("trocar convert model.onnx one.onnx --external-data inline",
                 "Gather a model and its external data in one file");
    args.example("trocar convert model.tflite model.onnx", "Say a model in another dialect");
    args.example("trocar convert model.onnx weights.safetensors", "Take its weights out");
    args.example("trocar convert model.onnx new.onnx --weights weights.safetensors",
                 "Put weights in");
    return [options](Context& context) { return convert(*options, context); };
}

}  // namespace

extern const Command convert_tool{
    .name = "convert",
    .summary = "Write a model in another format, or back with its external data where you want it",
    .bind = bind,
};

}  // namespace trocar
