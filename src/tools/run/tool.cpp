#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "tools/run/outputs.h"
#include "trocar/command.h"
#include "trocar/error.h"
#include "trocar/inputs.h"
#include "trocar/session.h"
#include "util/statistics.h"
#include "util/text.h"

namespace trocar {

namespace {

struct Options {
    std::string model;
    InputSpec inputs;
    std::string output;
    std::string cut = "none";
    std::string optimize = "engine";
    std::int64_t repeat = 0;
    std::int64_t warmup = 0;
    bool isolate = false;
};

// What the clock and the runs gave.
struct Measured {
    double compile_ns = 0;
    double first_ns = 0;
    std::vector<double> repeated_ns;
    bool same_bits = true;  // every run gave what the first one did
    bool interrupted = false;
};

template <class Work>
double nanoseconds_of(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    return taken.count();
}

Selector parse_cut(const Options& options, const Model& model) {
    auto cut = parse_selector(options.cut);
    if (options.cut != "none" && select(model.graph, cut).empty()) {
        throw Error(Fault::usage, fmt::format("no op of the model matches --cut {}", options.cut),
                    fmt::format("`trocar summary {}` lists its ops", options.model));
    }
    return cut;
}

Session open_session(const Options& options, const Model& model, const Selector& cut,
                     Context& context) {
    SessionOptions session_options;
    session_options.cut = cut;
    session_options.isolate = options.isolate;
    if (options.optimize == "none") {
        session_options.compile.optimize = CompileOptions::Optimize::none;
    }
    if (options.isolate) {
        return {model, context.engine_options(), session_options};
    }
    return {model, context.engine(), session_options};
}

bool same_outputs(const std::vector<NamedValue>& a, const std::vector<NamedValue>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const NamedValue& x, const NamedValue& y) {
                          return x.name == y.name && same_bits(x.value, y.value);
                      });
}

// Runs the model again, `warmup` times without and `repeat` times with the clock.
void repeat(Session& session, const Inputs& inputs, const std::vector<NamedValue>& first,
            const Options& options, Context& context, Measured& measured) {
    const auto total = options.warmup + options.repeat;
    for (std::int64_t run = 0; run < total; ++run) {
        if (context.interrupted()) {
            measured.interrupted = true;
            return;
        }
        context.progress("runs", static_cast<std::uint64_t>(run),
                         static_cast<std::uint64_t>(total));
        std::vector<NamedValue> outputs;
        const auto taken = nanoseconds_of([&] { outputs = session.run(inputs.values); });
        measured.same_bits = measured.same_bits && same_outputs(first, outputs);
        if (run >= options.warmup) {
            measured.repeated_ns.push_back(taken);
        }
    }
}

Scalar time_scalar(const char* key, const char* title, double nanoseconds, std::string note = {}) {
    return {key, title, static_cast<std::int64_t>(nanoseconds), Show::nanoseconds, std::move(note)};
}

Section time_section(const Measured& measured, const Options& options, bool compiled_late) {
    Section section{.key = "time", .title = "Time", .scalars = {}};
    auto& scalars = section.scalars;
    scalars.push_back(time_scalar("compile_ns", "Compile", measured.compile_ns));
    scalars.push_back(time_scalar("first_ns", "First run", measured.first_ns,
                                  compiled_late ? "and compiling the programs" : ""));
    if (measured.repeated_ns.empty()) {
        return section;
    }
    const auto runs = measured.repeated_ns.size();
    const auto times = spread(measured.repeated_ns);
    auto over = fmt::format("of {} after the first", counted(runs, "run"));
    if (options.warmup > 0) {
        over += fmt::format(" and {} to warm up", options.warmup);
    }
    scalars.push_back(time_scalar("median_ns", "Median", times.median, over));
    scalars.push_back(
        time_scalar("deviation_ns", "Deviation", times.deviation, "median absolute deviation"));
    scalars.push_back(time_scalar("min_ns", "Fastest", times.least));
    scalars.push_back(time_scalar("max_ns", "Slowest", times.greatest));
    scalars.push_back({"runs", "Runs", std::uint64_t{runs}, Show::plain, ""});
    scalars.push_back({"warmup_runs", "Warm-up runs", options.warmup, Show::plain, ""});
    scalars.push_back({"same_bits", "Same bits in every run", measured.same_bits, Show::plain, ""});
    return section;
}

Section program_section(const Session& session, const Selector& cut, const Model& model,
                        const Options& options, Context& context) {
    Section section{.key = "programs", .title = "Programs", .scalars = {}};
    section.scalars.push_back({"cut", "Cut", cut.text(), Show::plain, ""});
    section.scalars.push_back({"programs", "Programs",
                               std::uint64_t{session.plan().segments.size()}, Show::count,
                               fmt::format("of {}", counted(model.graph.op_count(), "op"))});
    section.scalars.push_back({"optimize", "Optimised", options.optimize, Show::plain,
                               "programs of one op are never optimised"});
    section.scalars.push_back({"isolated", "Isolated", options.isolate, Show::plain, ""});
    if (context.verbosity() > 0) {
        const auto footprint = session.footprint();
        section.scalars.push_back({"constant_bytes_copied", "Constants copied",
                                   footprint.constant_bytes_copied
                                       ? Cell(std::uint64_t{*footprint.constant_bytes_copied})
                                       : Cell::unavailable(footprint.unavailable),
                                   Show::bytes, "by the engine"});
    }
    return section;
}

Table input_table(const Inputs& inputs) {
    Table table{.key = "inputs",
                .title = "Inputs",
                .columns = {{.key = "name", .title = "Name"},
                            {.key = "type", .title = "Type"},
                            {.key = "source", .title = "From"}},
                .rows = {},
                .note = {}};
    for (std::size_t i = 0; i < inputs.values.size(); ++i) {
        const auto& input = inputs.values[i];
        table.rows.push_back({.cells = {input.name, value_text(input.value), inputs.origins[i]}});
    }
    return table;
}

void check(const Options& options) {
    if (options.repeat < 0 || options.warmup < 0) {
        throw Error(Fault::usage, "--repeat and --warmup take a number of runs, 0 or more");
    }
    if (options.warmup > 0 && options.repeat == 0) {
        throw Error(Fault::usage, "--warmup does nothing without --repeat");
    }
    std::error_code ignored;
    if (!options.output.empty() && std::filesystem::exists(options.output, ignored) &&
        !std::filesystem::is_directory(options.output, ignored)) {
        throw Error(Fault::usage, fmt::format("--output {} is not a folder", options.output));
    }
}

Report run(const Options& options, Context& context) {
    check(options);
    const auto model = context.load(options.model);
    const auto cut = parse_cut(options, model);
    auto spec = options.inputs;
    spec.seed = context.seed();
    const auto inputs = make_inputs(model, spec);

    if (!options.isolate) {
        context.engine();  // opened before the clock starts
    }
    Measured measured;
    std::unique_ptr<Session> session;
    measured.compile_ns = nanoseconds_of(
        [&] { session = std::make_unique<Session>(open_session(options, model, cut, context)); });
    std::vector<NamedValue> outputs;
    measured.first_ns = nanoseconds_of([&] { outputs = session->run(inputs.values); });

    Report report;
    report.tool = "run";
    std::vector<std::filesystem::path> files;
    if (!options.output.empty()) {
        files = write_outputs(outputs, options.output, report.warnings);
    }
    repeat(*session, inputs, outputs, options, context, measured);
    report.partial = measured.interrupted;
    report.context = context.describe(model, !options.isolate);
    report.tables.push_back(input_table(inputs));
    report.tables.push_back(output_table(outputs, files));
    report.sections.push_back(time_section(measured, options, session->plan().segments.size() > 1));
    report.sections.push_back(program_section(*session, cut, model, options, context));
    report.order = {"inputs", "outputs", "time", "programs"};
    report.notes = inputs.notes;
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->model, "MODEL", "Model file");
    declare_input_options(args, options->inputs);
    args.option("-o,--output", options->output, "FOLDER",
                "Write each output to a file there: .npy, or ONNX .pb for what .npy cannot hold");
    args.option(
        "--cut", options->cut, "SELECTOR",
        "End a program after these ops: none, all, or a selector such as Conv or name:/layer1/*");
    args.choice("--optimize", options->optimize, "engine|none",
                "What the engine may do with a program: fuse and reorder as it likes, or nothing; "
                "with none, whole and cut runs give the same bits");
    args.option("--repeat", options->repeat, "N", "Run N more times and show median and spread");
    args.option("--warmup", options->warmup, "N",
                "Runs before those of --repeat that are not counted");
    args.flag("--isolate", options->isolate, "Run the engine in a process of its own");
    args.example("trocar run model.onnx --input x=x.npy --output out",
                 "Run a model on an array and keep what comes out");
    args.example("trocar run model.onnx --fill random --shape batch=4 --repeat 20",
                 "Time it on random inputs");
    args.example("trocar run model.onnx --fill random --cut all", "Run it op by op");
    args.example("trocar run model.onnx --fill random --optimize none --output whole",
                 "Run it whole without fusion: the bits of the run op by op");
    args.example("trocar run model.onnx --input image=data.bin:f32:1x3x224x224 --input scale=0.5",
                 "Inputs from raw elements, and one number");
    return [options](Context& context) { return run(*options, context); };
}

}  // namespace

extern const Command run_tool{
    .name = "run",
    .summary = "Run a model, whole or cut into programs, and keep its outputs",
    .bind = bind,
};

}  // namespace trocar
