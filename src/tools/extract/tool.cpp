#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tools/extract/types.h"
#include "trocar/command.h"
#include "trocar/error.h"
#include "trocar/model.h"
#include "util/text.h"

namespace trocar {

namespace {

struct Options {
    std::string model;
    std::string part;
    std::vector<std::string> from;
    std::vector<std::string> to;
    std::vector<std::string> shapes;
    bool no_run = false;
};

// Tensors by name. A text is one name, or else names with commas between them.
class Names {
public:
    explicit Names(const Graph& graph) : graph_(graph) {}

    std::vector<TensorId> find(const std::vector<std::string>& texts) {
        std::vector<TensorId> found;
        for (const auto& text : texts) {
            if (graph_.find_tensor(text)) {
                add(found, text);
                continue;
            }
            for (const auto& name : split(text, ',')) {
                add(found, std::string(trim(name)));
            }
        }
        return found;
    }

    // All names that were not found, in one message.
    void require_all() const {
        if (unknown_.empty()) {
            return;
        }
        std::vector<std::string> known;
        for (const auto id : graph_.tensors()) {
            known.push_back(graph_.tensor(id).name);
        }
        std::vector<std::string> quoted;
        std::vector<std::string> hints;
        for (const auto& name : unknown_) {
            quoted.push_back(fmt::format("'{}'", name));
            if (auto hint = did_you_mean(name, known); !hint.empty()) {
                hints.push_back(std::move(hint));
            }
        }
        throw Error(Fault::usage, fmt::format("the model has no tensor {}", join(quoted, ", ")),
                    hints.empty()
                        ? "`trocar summary MODEL --flat` lists the ops and what they write"
                        : fmt::format("{}", join(hints, " ")));
    }

private:
    void add(std::vector<TensorId>& found, const std::string& name) {
        if (const auto id = graph_.find_tensor(name)) {
            if (std::find(found.begin(), found.end(), *id) == found.end()) {
                found.push_back(*id);
            }
        } else {
            unknown_.push_back(name);
        }
    }

    const Graph& graph_;
    std::vector<std::string> unknown_;
};

Table tensor_table(const char* key, const char* title, const Model& part,
                   std::span<const TensorId> tensors) {
    Table table{.key = key,
                .title = title,
                .columns = {{.key = "name", .title = "Name"}, {.key = "type", .title = "Type"}},
                .rows = {},
                .note = {}};
    for (const auto id : tensors) {
        const auto& tensor = part.graph.tensor(id);
        table.rows.push_back({.cells = {tensor.name, type_text(tensor.type)}});
    }
    return table;
}

// Constants of the part that lie in further files of the model go into one new file beside the
// part: the model's own files hold all the rest too.
ExternalPolicy policy(const Model& part) {
    for (const auto id : part.graph.tensors()) {
        const auto& constant = part.graph.tensor(id).constant;
        if (constant && constant->external()) {
            return ExternalPolicy::separate;
        }
    }
    return ExternalPolicy::copy;
}

// Finds the types that the file does not declare. An engine refuses inputs without one; an output
// may go without.
void find_types(const Options& options, const Model& model, Model& part, Context& context,
                Report& report) {
    const auto tensors = untyped(part);
    if (tensors.empty()) {
        return;
    }
    const bool needed = part.graph.tensor(tensors.front()).is_input;
    std::string why = "--no-run was given";
    if (!options.no_run) {
        InputSpec spec;
        spec.shapes = options.shapes;
        spec.seed = context.seed();
        try {
            report.notes.push_back(complete_types(model, part, tensors, spec, context.engine()));
            return;
        } catch (const Error& error) {
            why = error.what();
            if (needed) {
                throw Error(
                    error.fault(),
                    fmt::format("the type of '{}' is not declared in the model, and could not "
                                "be observed: {}",
                                part.graph.tensor(tensors.front()).name, why),
                    error.hint().empty() ? "--no-run leaves such types open" : error.hint());
            }
        }
    }
    report.warnings.push_back(fmt::format("{} of the part without a type{}: {}",
                                          counted(tensors.size(), "tensor"),
                                          needed ? ", so engines may refuse it" : "", why));
}

Report extract_part(const Options& options, Context& context) {
    if (options.from.empty() && options.to.empty()) {
        throw Error(Fault::usage, "nothing says which part to extract",
                    "give tensors with --from, --to, or both");
    }
    const auto model = context.load(options.model);
    Names names(model.graph);
    const auto from = names.find(options.from);
    auto to = names.find(options.to);
    names.require_all();
    if (options.to.empty()) {
        to.assign(model.graph.outputs().begin(), model.graph.outputs().end());
    }
    auto part = extract(model, from, to);

    Report report;
    report.tool = "extract";
    find_types(options, model, part, context, report);
    save(part, options.part, {.external = policy(part)});

    report.context = context.describe(model, false);
    Section section{.key = "part", .title = "Part", .scalars = {}};
    section.scalars.push_back({"file", "File", options.part, Show::plain, ""});
    section.scalars.push_back({"file_bytes", "Size",
                               std::uint64_t{std::filesystem::file_size(options.part)}, Show::bytes,
                               ""});
    section.scalars.push_back({"ops", "Ops", std::uint64_t{part.graph.op_count()}, Show::count,
                               fmt::format("of {}", model.graph.op_count())});
    report.sections.push_back(std::move(section));
    report.tables.push_back(tensor_table("inputs", "Inputs", part, part.graph.inputs()));
    report.tables.push_back(tensor_table("outputs", "Outputs", part, part.graph.outputs()));
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->model, "MODEL", "Model file");
    args.positional(options->part, "PART", "File to write the part to");
    args.option(
        "--from", options->from, "TENSORS",
        "Tensors that the part is given, with commas between them; the model's inputs otherwise");
    args.option("--to", options->to, "TENSORS",
                "Tensors that the part computes; the model's outputs otherwise");
    args.option(
        "--shape", options->shapes, "NAME=DIMS",
        "Size of a dynamic dimension, or shape of an input, in the run that finds types which the "
        "file does not declare (1 otherwise)");
    args.flag("--no-run", options->no_run, "Leave types open that the file does not declare");
    args.example("trocar extract model.onnx part.onnx --from A --to B,C",
                 "The part that computes B and C from A");
    args.example("trocar extract model.onnx head.onnx --to features", "All up to a tensor");
    return [options](Context& context) { return extract_part(*options, context); };
}

}  // namespace

extern const Command extract_tool{
    .name = "extract",
    .summary = "Write the part of a model between tensors as a model of its own",
    .bind = bind,
};

}  // namespace trocar
