#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "trocar/command.h"
#include "trocar/data.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/inputs.h"
#include "trocar/mapping.h"
#include "trocar/quantize.h"
#include "util/op_label.h"
#include "util/text.h"

namespace trocar {

namespace {

constexpr double telling_db = 6;

struct Options {
    std::string model;
    std::string out;
    std::string to;
    DataArguments data;
    InputSpec inputs;
    std::string scheme = "int8";
    std::string method = "min-max";
    double percentile = 99.99;
    bool per_tensor = false;
    std::int64_t block = 32;
    std::int64_t weight_bits = 8;
    std::string keep;
    double mixed = 0;
    std::int64_t samples = 100;
    bool integer_outputs = false;
};

std::shared_ptr<const QualityInputs> source_of(const Options& options, const Model& model,
                                               Context& context) {
    if (!QualityInputs::given(options.data, options.inputs)) {
        throw Error(
            Fault::usage, "calibration needs inputs: --data, --input or --fill",
            "--data FOLDER takes pictures, arrays or data sets; --fill random is for trying "
            "things out");
    }
    return std::make_shared<QualityInputs>(options.data, options.inputs, model, context.seed());
}

double worst_output(const Quality& quality) {
    double worst = std::numeric_limits<double>::infinity();
    for (const auto& output : quality.outputs) {
        worst = std::min(worst, output.sqnr_db);
    }
    return worst;
}

class Work {
public:
    Work(const Options& options, Context& context)
        : options_(options), context_(context), model_(context.load(options.model)) {
        how_.scheme = parse_quantize_scheme(options.scheme);
        how_.method = parse_range_method(options.method);
        how_.percentile = options.percentile;
        how_.per_channel = !options.per_tensor;
        how_.block = options.block;
        how_.outputs = options.integer_outputs || needs_integers();
        how_.weight_bits = static_cast<int>(std::clamp<std::int64_t>(options.weight_bits, 0, 99));
        if (options.percentile <= 0 || options.percentile > 100) {
            throw Error(Fault::usage, "--percentile is a number above 0, and 100 at most");
        }
        if (!options.keep.empty()) {
            how_.keep = parse_selector(options.keep);
            select_some(model_.graph, how_.keep, "--keep");
        }
        progress_ = [&context](std::string_view what, std::uint64_t done) {
            context.progress(what, done, 0);
        };
    }

    Report run() {
        if (model_.dialect != "onnx") {
            throw Error(
                Fault::unsupported,
                fmt::format("models of the dialect '{}' cannot be quantised", model_.dialect),
                "`trocar convert` maps it to onnx");
        }
        Report report;
        report.tool = "quantize";
        report.order = {"layers", "sensitivity", "kept", "quantized", "quality"};
        report.context = context_.describe(model_, true);
        const bool weights_only = how_.scheme != QuantizeScheme::int8;
        const bool have_inputs = QualityInputs::given(options_.data, options_.inputs);
        std::vector<TensorRange> ranges;
        if (!weights_only || have_inputs) {
            source_ = source_of(options_, model_, context_);
        }
        const auto inputs = [this](std::size_t number, std::vector<NamedValue>& values) {
            return !context_.interrupted() && (*source_)(number, values);
        };
        const auto some = [this, inputs](std::size_t number, std::vector<NamedValue>& values) {
            return number < static_cast<std::size_t>(options_.samples) && inputs(number, values);
        };
        if (!weights_only) {
            ranges = calibrate(model_, context_.engine(), some, how_, progress_);
            tell_of_left_out(ranges, report);
        }
        auto made = quantize(model_, ranges, how_);
        if (count_of(made) == 0 || context_.interrupted()) {
            report.partial = context_.interrupted();
            report.verdict = report.partial;
            report.notes.emplace_back(
                report.partial     ? "interrupted, so nothing was written"
                : made.ops.empty() ? "no op outside of bodies has weights or sums of f32, so "
                                     "nothing was written"
                                   : "there is nothing to quantize, so "
                                     "nothing was written");
            add_left(made, report);
            return report;
        }
        Quality quality;
        if (source_) {
            quality = compared(made.model, inputs);
            if (options_.mixed > 0) {
                mix(ranges, some, made, quality, report);
                quality = compared(made.model, inputs);
            }
        }
        describe(made, quality, report);
        if (context_.interrupted()) {
            report.partial = true;
            report.notes.emplace_back("interrupted, so nothing was written");
            return report;
        }
        write(made.model, inputs, report);
        return report;
    }

private:
    // Is a format written whose engines have integer ops only between integers?
    bool needs_integers() const {
        const auto asks = [](const std::string& path) {
            const auto* format = path.empty() ? nullptr : find_writer(path);
            return format != nullptr && std::string_view(format->dialect) == "tflite";
        };
        return asks(options_.out) || asks(options_.to);
    }

    Quality compared(const Model& after, const InputSets& inputs,
                     const QualityOptions& options = {}) {
        return compare_quality(
            model_, after, context_.engine(), inputs,
            [this](std::size_t number) { return source_->label(number); }, progress_, options);
    }

    // Under each name, in the dialect of its format. Nothing is written before all can be.
    void write(const Model& made, const InputSets& inputs, Report& report) {
        std::vector<std::pair<std::string, std::optional<Model>>> all;  // without: `made`
        for (const auto& path : {options_.out, options_.to}) {
            const auto* format = path.empty() ? nullptr : find_writer(path);
            if (path.empty()) {
                continue;
            }
            if (format == nullptr || format->dialect == made.dialect) {
                all.emplace_back(path, std::nullopt);
                continue;
            }
            auto typed = clone(made);
            if (needs_types(made.dialect, format->dialect) && !has_all_types(typed.graph)) {
                complete_types(typed, context_.engine(), first_inputs());
            }
            auto mapped = map_model(typed, format->dialect);
            report_mapping(mapped, made.dialect, report);
            if (!mapped.complete()) {
                auto& file = report.sections.front().scalars.front();
                file.value = Cell::unavailable(fmt::format("{} cannot be written", path));
                return;
            }
            report.tables.back().hidden = true;  // all were mapped
            mapped.model.format = format->name;
            if (source_) {
                compare_mapped(mapped.model, inputs, report);
            }
            all.emplace_back(path, std::move(mapped.model));
        }
        for (const auto& [path, model] : all) {
            save(model ? *model : made, path);
        }
    }

    // Any that fit do, where only shapes are asked for.
    std::vector<NamedValue> first_inputs() {
        std::vector<NamedValue> values;
        if (source_ && (*source_)(0, values)) {
            return values;
        }
        InputSpec spec;
        spec.seed = context_.seed();
        spec.fill = "random";
        return make_inputs(model_, spec).values;
    }

    // What another dialect's own engine makes of it.
    void compare_mapped(const Model& model, const InputSets& inputs, Report& report) {
        auto engine = context_.engine_options();
        engine.name = engine_for(model.dialect, engine);
        if (engine.name == context_.engine_options().name) {
            report.notes.push_back(
                fmt::format("there is no engine for {} here to compare it on", model.dialect));
            return;
        }
        engine.path.clear();
        engine.options.clear();
        const auto opened = open_engine(engine);
        const auto quality = compared(model, inputs, {.layers = false, .engine_after = opened});
        add_quality_section(quality, report, engine.name);
    }

    // Leaves the most sensitive ops as they were until the outputs are as near as asked for.
    void mix(const std::vector<TensorRange>& ranges, const InputSets& inputs, Quantized& made,
             Quality& quality, Report& report) {
        const auto order = sensitivity(model_, context_.engine(), inputs, ranges, how_, progress_);
        Table table{.key = "sensitivity",
                    .title = "Sensitivity",
                    .columns = {{.key = "op", .title = "Op"},
                                {.key = "type", .title = "Type"},
                                {.key = "sqnr_db", .title = "SQNR", .show = Show::decibels},
                                {.key = "kept", .title = "Kept"}},
                    .rows = {},
                    .note = "of the outputs when this op alone is quantised"};
        std::set<std::string> kept;
        const auto own = how_.keep;
        for (const auto& one : order) {
            if (worst_output(quality) >= options_.mixed) {
                break;
            }
            kept.insert(one.op);
            how_.keep = own | where([&kept](const Graph& graph, OpId op) {
                            return kept.contains(op_label(graph, op));
                        });
            made = quantize(model_, ranges, how_);
            quality = compared(made.model, inputs, {.layers = false});
        }
        for (const auto& one : order) {
            table.rows.push_back(
                {.cells = {one.op, one.type, decibels(one.sqnr_db), Cell(kept.contains(one.op))}});
        }
        report.tables.push_back(std::move(table));
        for (auto& op : made.ops) {
            if (kept.contains(op.name)) {
                op.why = fmt::format("the outputs have {:.1f} dB without it", options_.mixed);
            }
        }
        if (count_of(made) == 0) {
            report.notes.push_back(fmt::format(
                "with any op quantised the outputs have less than {:.1f} dB: all stay as they were",
                options_.mixed));
        }
        if (worst_output(quality) < options_.mixed) {
            report.verdict = false;
            report.notes.push_back(fmt::format("{:.1f} dB were asked for", options_.mixed));
        }
    }

    void describe(const Quantized& made, const Quality& quality, Report& report) const {
        const auto quantized = count_of(made);
        Section written{.key = "quantized", .title = "Quantized", .scalars = {}};
        auto& scalars = written.scalars;
        scalars.push_back({"file", "File", options_.out, Show::plain, ""});
        scalars.push_back({"scheme", "Scheme", options_.scheme, Show::plain, ""});
        scalars.push_back({"ops", "Ops", quantized, Show::count,
                           fmt::format("of {} that could be", made.ops.size())});
        scalars.push_back(
            {"folded", "Normalisations folded", std::uint64_t{made.folded}, Show::count, ""});
        scalars.push_back(
            {"bytes_before", "Constants before", made.constant_bytes_before, Show::bytes, ""});
        scalars.push_back(
            {"bytes_after", "Constants after", made.constant_bytes_after, Show::bytes, ""});
        report.sections.push_back(std::move(written));
        if (quality.samples > 0) {
            add_quality_section(quality, report);
            tell_of_saturation(quality, report);
            report.tables.push_back(quality_table(quality));
        } else {
            report.notes.emplace_back(
                "not compared with the model before: --data, --input or --fill would say on what");
        }
        add_left(made, report);
    }

    static std::uint64_t count_of(const Quantized& made) {
        return static_cast<std::uint64_t>(std::count_if(
            made.ops.begin(), made.ops.end(), [](const auto& op) { return op.quantized; }));
    }

    static void add_left(const Quantized& made, Report& report) {
        Table left{.key = "kept",
                   .title = "Not quantized",
                   .columns = {{.key = "op", .title = "Op"},
                               {.key = "type", .title = "Type"},
                               {.key = "why", .title = "Why"}},
                   .rows = {},
                   .note = {}};
        for (const auto& op : made.ops) {
            if (!op.quantized) {
                left.rows.push_back({.cells = {op.name, op.type, op.why}});
            }
        }
        if (!left.rows.empty()) {
            report.tables.push_back(std::move(left));
        }
    }

    // NaN and infinity say nothing about a range.
    void tell_of_left_out(const std::vector<TensorRange>& ranges, Report& report) const {
        auto first = std::find_if(ranges.begin(), ranges.end(),
                                  [](const auto& one) { return one.left_out > 0; });
        for (auto at = first; at != ranges.end(); ++at) {
            const auto tensor = model_.graph.find_tensor(at->tensor);
            if (at->left_out > 0 && tensor && model_.graph.tensor(*tensor).is_input) {
                first = at;  // what comes in rather than what becomes of it
            }
        }
        if (first != ranges.end()) {
            const auto tensors = std::count_if(ranges.begin(), ranges.end(),
                                               [](const auto& one) { return one.left_out > 0; });
            report.warnings.push_back(fmt::format(
                "calibration met NaN or infinity in {} of {} tensors, which no range counts: {} "
                "of '{}'",
                tensors, ranges.size(), first->left_out, first->tensor));
        }
    }

    static void tell_of_saturation(const Quality& quality, Report& report) {
        // Op by op in real numbers, and as the engine runs it in integers.
        for (const auto& output : quality.outputs) {
            const auto at =
                std::find_if(quality.layers.begin(), quality.layers.end(),
                             [&](const auto& one) { return one.tensor == output.tensor; });
            if (at != quality.layers.end() && at->sqnr_db > output.sqnr_db + telling_db) {
                report.notes.push_back(fmt::format(
                    "the engine's integer kernels lose more of '{}' than rounding does ({:.1f} "
                    "against {:.1f} dB): sums that saturate? --weight-bits 7 avoids it",
                    output.tensor, output.sqnr_db, at->sqnr_db));
            }
        }
    }

    const Options& options_;
    Context& context_;
    Model model_;
    QuantizeOptions how_;
    QuantizeProgress progress_;
    std::shared_ptr<const QualityInputs> source_;
};

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->model, "MODEL", "Model file of ONNX ops");
    args.positional(options->out, "OUT", "File to write");
    args.option("--to", options->to, "FILE",
                "Write it here too, in the format that the name asks for");
    args.option("--scheme", options->scheme, "SCHEME",
                "int8 (weights and activations), weights-int8, weights-int4, weights-f16, "
                "weights-bf16");
    args.choice("--range", options->method, "min-max|percentile|entropy|mse",
                "How the range of an activation is chosen from what was seen");
    args.option("--percentile", options->percentile, "PERCENT",
                "Numbers that --range percentile keeps; 99.99");
    args.flag("--per-tensor", options->per_tensor, "One scale for all channels of a weight");
    args.option("--block", options->block, "N", "Elements with one scale, for weights-int4; 32");
    args.option("--weight-bits", options->weight_bits, "N",
                "Bits of a weight that int8 and weights-int8 use; 8. 7 where sums saturate");
    args.flag(
        "--integer-outputs", options->integer_outputs,
        "Quantise the outputs of the model too; done anyway where TensorFlow Lite is written");
    args.option("--keep", options->keep, "SELECTOR", "Ops that stay as they are");
    args.option("--mixed", options->mixed, "DB",
                "Keep the most sensitive ops until the outputs have this SQNR; exit 1 where that "
                "is not reached");
    args.option("--samples", options->samples, "N", "Calibrate with so many samples at most; 100");
    declare_data_options(args, options->data);
    declare_input_options(args, options->inputs);
    args.example("trocar quantize model.onnx q.onnx --data calibration/",
                 "Static int8, with accuracy and the SQNR of every layer");
    args.example("trocar quantize model.onnx q.onnx --data calibration/ --to q.tflite",
                 "The same in TensorFlow Lite's own 8-bit ops as well");
    args.example("trocar quantize model.onnx small.onnx --scheme weights-int4",
                 "Smaller constants, computed with as before");
    return [options](Context& context) {
        if (options->samples < 1) {
            throw Error(Fault::usage, "--samples is 1 at least");
        }
        return Work(*options, context).run();
    };
}

}  // namespace

extern const Command quantize_tool{
    .name = "quantize",
    .summary = "Smaller numbers: int8 by calibration, or weights alone, with what it costs",
    .bind = bind,
};

}  // namespace trocar
