#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "tools/prune/present.h"
#include "trocar/command.h"
#include "trocar/error.h"
#include "trocar/prune.h"
#include "util/text.h"

namespace trocar {

namespace {

namespace parts = prune_tool_parts;

constexpr double not_given = -std::numeric_limits<double>::infinity();

struct Options {
    std::string model;
    std::string out;
    std::string method = "magnitude";
    double sparsity = not_given;  // then 0.5
    std::string scope = "layer";
    std::string rank = "l1";
    std::int64_t multiple = 1;
    std::string at;
    std::string keep;
    std::string masks;
    std::string apply;
    bool sparse = false;
    bool no_run = false;
    DataArguments data;
    InputSpec inputs;
};

PruneOptions chosen(const Options& options, const Model& model, std::uint64_t seed) {
    PruneOptions how;
    parse_prune_method(options.method, how);
    if (how.method == PruneMethod::pattern) {
        if (options.sparsity != not_given) {
            throw Error(Fault::usage,
                        fmt::format("--sparsity says nothing beside --method {}: the pattern "
                                    "itself says how many stay",
                                    options.method));
        }
    } else {
        how.sparsity = options.sparsity == not_given ? 0.5 : options.sparsity;
    }
    if (options.multiple != 1 && how.method != PruneMethod::channels) {
        throw Error(Fault::usage, "--multiple is about --method channels");
    }
    how.global = options.scope == "global";
    how.rank = options.rank == "l2"       ? ChannelRank::l2
               : options.rank == "random" ? ChannelRank::random
                                          : ChannelRank::l1;
    how.multiple = options.multiple;
    how.seed = seed;
    if (!options.at.empty()) {
        how.at = parse_selector(options.at);
        select_some(model.graph, *how.at, "--at");
    }
    if (!options.keep.empty()) {
        how.keep = parse_selector(options.keep);
        select_some(model.graph, how.keep, "--keep");
    }
    return how;
}

class Work {
public:
    Work(const Options& options, Context& context)
        : options_(options), context_(context), model_(context.load(options.model)) {}

    Report run() {
        Report report;
        report.tool = "prune";
        const auto how =
            options_.apply.empty() ? chosen(options_, model_, context_.seed()) : PruneOptions{};
        if (QualityInputs::given(options_.data, options_.inputs)) {
            source_ = std::make_shared<QualityInputs>(options_.data, options_.inputs, model_,
                                                      context_.seed());
        }
        const auto shapes = find_shapes(how, report);
        auto pruned = options_.apply.empty() ? prune(model_, how, shapes)
                                             : apply_masks(model_, load_masks(options_.apply));
        if (!options_.apply.empty()) {
            pruned.shapes = shapes;
        }
        if (pruned.masks.empty()) {
            report.context = context_.describe(model_, ran_);
            report.tables.push_back(parts::left_table(pruned, how.method == PruneMethod::channels));
            report.notes.emplace_back("there is nothing to prune, so nothing was written");
            report.verdict = false;
            return report;
        }
        if (how.method == PruneMethod::channels && !inputs_.empty()) {
            check_shapes(pruned);
        }
        Quality quality;
        if (source_) {
            quality = compare_quality(
                model_, pruned.model, context_.engine(),
                [this](std::size_t number, std::vector<NamedValue>& values) {
                    return !context_.interrupted() && (*source_)(number, values);
                },
                [this](std::size_t number) { return source_->label(number); },
                [this](std::string_view what, std::uint64_t done) {
                    context_.progress(what, done, source_->size());
                },
                {.kept = pruned.kept});
        }
        const auto after = parts::totals_of(pruned.model, pruned.shapes);
        const auto stored = options_.sparse ? store_sparse(pruned.model) : SparseStored{};
        write(pruned);
        report.context = context_.describe(model_, ran_);
        describe(how, pruned, parts::totals_of(model_, shapes), after, stored, report);
        report.tables.push_back(parts::weight_table(model_, pruned, shapes, quality));
        if (quality.samples > 0) {
            add_quality_section(quality, report);
            report.tables.push_back(quality_table(quality));
            report.tables.back().hidden = true;
        } else {
            report.notes.emplace_back(
                "not compared with the model before: --data, --input or --fill would say on what");
        }
        if (auto left = parts::left_table(pruned, how.method == PruneMethod::channels);
            !left.rows.empty()) {
            report.tables.push_back(std::move(left));
        }
        report.order = {"weights", "left", "pruned", "quality", "layers"};
        report.partial = context_.interrupted();
        return report;
    }

private:
    // Shapes come from a run; where nothing says on what, sizes that are open are 1.
    Shapes find_shapes(const PruneOptions& how, Report& report) {
        if (options_.no_run) {
            return declared_shapes(model_.graph);
        }
        try {
            if (source_) {
                (*source_)(0, inputs_);
            } else {
                auto spec = options_.inputs;
                spec.seed = context_.seed();
                spec.fill = "random";
                spec.unknown_dims = 1;
                inputs_ = make_inputs(model_, spec).values;
            }
            ran_ = true;
            return shapes_of(observed_types(model_, context_.engine(), inputs_));
        } catch (const Error& error) {
            inputs_.clear();
            if (source_ || how.method == PruneMethod::channels) {
                throw Error(error.fault(), error.what(),
                            error.hint().empty() && !source_
                                ? "sizes that the model leaves open were taken as 1: --shape gives "
                                  "others, --input real inputs"
                                : error.hint());
            }
            report.warnings.push_back(
                fmt::format("shapes, and so MACs, are not known: {}", error.what()));
            return declared_shapes(model_.graph);
        }
    }

    // What was removed must leave what was foretold.
    void check_shapes(const Pruned& pruned) {
        const auto seen = shapes_of(observed_types(pruned.model, context_.engine(), inputs_));
        for (const auto id : model_.graph.tensors()) {
            const auto& foretold = pruned.shapes[index(id)];
            if (pruned.model.graph.contains(id) && foretold && seen[index(id)] &&
                *foretold != *seen[index(id)]) {
                throw Error(Fault::internal,
                            fmt::format("'{}' became {} where {} was foretold; nothing was written",
                                        model_.graph.tensor(id).name, shape_text(*seen[index(id)]),
                                        shape_text(*foretold)),
                            "--keep with the ops around it leaves them alone");
            }
        }
    }

    void write(const Pruned& pruned) const {
        if (!options_.out.empty()) {
            save(pruned.model, options_.out,
                 {.external =
                      model_.external_bytes > 0 ? ExternalPolicy::separate : ExternalPolicy::copy});
        }
        if (!options_.masks.empty()) {
            save_masks(pruned.masks, options_.masks);
        }
    }

    void describe(const PruneOptions& how, const Pruned& pruned, const parts::Totals& before,
                  const parts::Totals& after, const SparseStored& stored, Report& report) const {
        Section section{.key = "pruned", .title = "Pruned", .scalars = {}};
        auto& scalars = section.scalars;
        const auto missing = [](const char* why) { return Cell::unavailable(why); };
        scalars.push_back(
            {"file", "File",
             options_.out.empty() ? missing("only masks were asked for") : Cell(options_.out),
             Show::plain, ""});
        if (!options_.masks.empty()) {
            scalars.push_back({"masks", "Masks", options_.masks, Show::plain,
                               fmt::format("of {}", counted(pruned.masks.size(), "constant"))});
        }
        scalars.push_back({"method", "Method",
                           options_.apply.empty() ? options_.method : "masks of " + options_.apply,
                           Show::plain, ""});
        if (options_.apply.empty() && how.method != PruneMethod::pattern) {
            scalars.push_back({"sparsity", "Asked for", how.sparsity, Show::percent,
                               how.global ? "of all together" : "of each layer"});
        }
        if (how.method == PruneMethod::channels && options_.apply.empty()) {
            scalars.push_back({"channels_before", "Channels before",
                               std::uint64_t{pruned.channels_before}, Show::count,
                               "coupled ones counted once"});
            scalars.push_back({"channels_after", "Channels after",
                               std::uint64_t{pruned.channels_after}, Show::count, ""});
        }
        const auto share = [](double part, double whole) {
            return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : std::string();
        };
        const auto all = static_cast<double>(before.parameters);
        scalars.push_back(
            {"parameters_before", "Parameters before", before.parameters, Show::count, ""});
        scalars.push_back({"parameters_after", "Parameters after", after.parameters, Show::count,
                           share(static_cast<double>(after.parameters), all)});
        scalars.push_back({"nonzero_before", "Not 0 before", before.nonzero, Show::count, ""});
        scalars.push_back({"nonzero_after", "Not 0 after", after.nonzero, Show::count,
                           share(static_cast<double>(after.nonzero), all)});
        const auto macs = [&](const std::optional<std::uint64_t>& value) {
            return value ? Cell(std::uint64_t{*value}) : missing("shapes are not known");
        };
        scalars.push_back({"macs_before", "MACs before", macs(before.macs), Show::compact, ""});
        scalars.push_back({"macs_after", "MACs after", macs(after.macs), Show::compact, ""});
        if (after.macs) {
            scalars.push_back({"macs_nonzero", "MACs not with 0",
                               static_cast<std::uint64_t>(after.macs_nonzero), Show::compact,
                               "what an engine that skips zeros computes"});
        }
        if (options_.sparse) {
            scalars.push_back(
                {"sparse_constants", "Stored sparse", std::uint64_t{stored.constants}, Show::count,
                 stored.constants > 0 ? fmt::format("{} in the place of {}",
                                                    show(Cell(stored.bytes_after), Show::bytes),
                                                    show(Cell(stored.bytes_before), Show::bytes))
                                      : "no constant gets smaller by it"});
        }
        report.sections.push_back(std::move(section));
    }

    const Options& options_;
    Context& context_;
    Model model_;
    std::shared_ptr<const QualityInputs> source_;
    std::vector<NamedValue> inputs_;
    bool ran_ = false;
};

void check(const Options& options) {
    if (options.out.empty() && options.masks.empty()) {
        throw Error(Fault::usage, "there is nothing to write: neither OUT nor --masks is given");
    }
    if (!options.apply.empty() &&
        (options.method != "magnitude" || options.sparsity != not_given || !options.at.empty() ||
         !options.keep.empty() || !options.masks.empty() || options.scope != "layer")) {
        throw Error(
            Fault::usage,
            "--apply takes what is in the masks: options that choose say nothing beside it");
    }
    if (options.sparse && options.out.empty()) {
        throw Error(Fault::usage, "--sparse-encoding is about OUT, and none is given");
    }
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->model, "MODEL", "Model file");
    args.positional(options->out, "[OUT]", "File to write; may be left out with --masks");
    args.option("--method", options->method, "METHOD",
                "magnitude (smallest elements become 0), random, N:M such as 2:4 (of M neighbours "
                "along the axis that is summed over the N largest stay), channels (whole output "
                "channels are removed)");
    args.option("--sparsity", options->sparsity, "SHARE",
                "Share of the elements or channels to go, from 0 to below 1; 0.5");
    args.choice("--scope", options->scope, "layer|global",
                "Rank within each layer, or over all of them together");
    args.choice("--rank", options->rank, "l1|l2|random", "What --method channels ranks filters by");
    args.option("--multiple", options->multiple, "N",
                "As many channels stay as a multiple of N says; 1");
    args.option("--at", options->at, "SELECTOR", "Prune these ops; all that sum over weights");
    args.option("--keep", options->keep, "SELECTOR", "Leave these ops as they are");
    args.option("--masks", options->masks, "FILE",
                "Write which elements stay: .npz or .safetensors, for `trocar run --masks`");
    args.option("--apply", options->apply, "FILE", "Zero what the masks of this file say, instead");
    args.flag("--sparse-encoding", options->sparse,
              "Store constants as their elements other than 0, where that is smaller");
    args.flag("--no-run", options->no_run, "Take shapes from the file, without a run");
    declare_data_options(args, options->data);
    declare_input_options(args, options->inputs);
    args.example("trocar prune model.onnx half.onnx --sparsity 0.5 --data images/",
                 "Half of the elements of every layer, with what it costs");
    args.example("trocar prune model.onnx p.onnx --method 2:4", "For kernels that know 2:4");
    args.example("trocar prune model.onnx small.onnx --method channels --sparsity 0.3",
                 "A smaller model: 30 % of the channels of every layer are gone");
    args.example(
        "trocar prune model.onnx --masks m.npz && trocar run model.onnx --masks m.npz "
        "--fill random",
        "Masks as an instrument: the model stays as it is");
    return [options](Context& context) {
        check(*options);
        return Work(*options, context).run();
    };
}

}  // namespace

extern const Command prune_tool{
    .name = "prune",
    .summary = "Zero weights or remove channels, with what that costs",
    .bind = bind,
};

}  // namespace trocar
