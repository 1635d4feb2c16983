#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "tools/run/outputs.h"
#include "trocar/command.h"
#include "trocar/error.h"
#include "trocar/inputs.h"
#include "trocar/prune.h"
#include "trocar/session.h"
#include "trocar/tool_library.h"
#include "util/same_bits.h"
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
    std::vector<std::string> tools;
    std::string masks;
    std::string view = "source";
    std::string lowering = "auto";
    bool allow_empty = false;
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
    if (options.cut != "none" && !options.allow_empty) {
        select_some(model.graph, cut, "--cut");
    }
    return cut;
}

std::vector<std::shared_ptr<Tool>> load_tools(const Options& options, Context& context) {
    std::vector<std::shared_ptr<Tool>> tools;
    for (const auto& text : options.tools) {
        const auto choice = parse_tool(text);
        tools.push_back(load_tool(choice.path, ToolSettings(choice.settings, context.seed())));
    }
    return tools;
}

// A tool that stands nowhere is most likely a mistake.
void check_ports(const Session& session, const Model& model, const Options& options) {
    const auto ports = session.ports();
    if (options.allow_empty || ports.unmatched.empty() ||
        ports.taps + ports.cuts + ports.constants > 0) {
        return;
    }
    const auto& text = ports.unmatched.front();
    const auto near = near_matches(model.graph, parse_selector(text));
    throw Error(Fault::usage, fmt::format("no op of the model matches {} of the tool", text),
                near.empty() ? "--allow-empty runs it all the same"
                             : fmt::format("near to it: {}; --allow-empty runs it all the same",
                                           join(near, ", ")));
}

Session open_session(const Options& options, const Model& model, const Selector& cut,
                     const std::vector<std::shared_ptr<Tool>>& tools, Context& context) {
    SessionOptions session_options;
    session_options.cut = cut;
    session_options.view = parse_view(options.view);
    session_options.lowering = parse_lowering(options.lowering);
    for (const auto& tool : tools) {
        session_options.tools.push_back(tool.get());
    }
    if (options.optimize == "none") {
        session_options.compile.optimize = CompileOptions::Optimize::none;
    }
    return {model, context.engine(), session_options};
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
        measured.same_bits = measured.same_bits && same_bits(first, outputs);
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

// Ops of what is run, without those that instruments added.
std::size_t session_ops(const Session& session) {
    const auto& graph = session.model().graph;
    return static_cast<std::size_t>(
        std::count_if(graph.ops().begin(), graph.ops().end(),
                      [&](OpId id) { return graph.op(id).domain != host_domain; }));
}

Section program_section(const Session& session, const Selector& cut, const Options& options,
                        Context& context) {
    Section section{.key = "programs", .title = "Programs", .scalars = {}};
    section.scalars.push_back({"cut", "Cut", cut.text(), Show::plain, ""});
    section.scalars.push_back({"programs", "Programs",
                               std::uint64_t{session.plan().segments.size()}, Show::count,
                               fmt::format("of {}", counted(session_ops(session), "op"))});
    section.scalars.push_back({"optimize", "Optimised", options.optimize, Show::plain,
                               "programs of one op are never optimised"});
    section.scalars.push_back({"isolated", "Isolated", options.isolate, Show::plain, ""});
    if (!options.tools.empty() || !options.masks.empty()) {
        const auto ports = session.ports();
        section.scalars.push_back({"view", "View", options.view, Show::plain, ""});
        section.scalars.push_back({"taps", "Ops with taps", std::uint64_t{ports.taps}, Show::count,
                                   "instruments inside the engine's program"});
        section.scalars.push_back({"cuts", "Ops with cuts", std::uint64_t{ports.cuts}, Show::count,
                                   "instruments between programs"});
    }
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
    parse_view(options.view);
    parse_lowering(options.lowering);
    if (!options.masks.empty() && options.view != "source") {
        throw Error(Fault::usage, "--masks are for the model's own constants: --view source");
    }
    if (options.tools.empty() && options.masks.empty() &&
        (options.view != "source" || options.lowering != "auto")) {
        throw Error(Fault::usage, "--view and --lowering are about tools, and none is given",
                    "give one with --tool ./mytool.so");
    }
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

// What the tools have to say comes after what the run itself has.
void add_findings(Report& report, const std::vector<std::shared_ptr<Tool>>& tools,
                  const Session& session) {
    const auto tables = report.tables.size();
    const auto sections = report.sections.size();
    for (const auto& tool : tools) {
        tool->report(report);
    }
    for (std::size_t i = tables; i < report.tables.size(); ++i) {
        report.order.push_back(report.tables[i].key);
    }
    for (std::size_t i = sections; i < report.sections.size(); ++i) {
        report.order.push_back(report.sections[i].key);
    }
    const auto ports = session.ports();
    for (const auto& text : ports.unmatched) {
        report.warnings.push_back(fmt::format("no op matches {} of a tool", text));
    }
    report.notes.insert(report.notes.end(), ports.notes.begin(), ports.notes.end());
}

Report run(const Options& options, Context& context) {
    check(options);
    if (options.isolate) {
        context.isolate();
        context.doing("running the model");
    }
    auto tools = load_tools(options, context);
    const auto model = context.load(options.model);
    if (!options.masks.empty()) {
        tools.insert(tools.begin(), mask_tool(model, load_masks(options.masks)));
    }
    const auto cut = parse_cut(options, model);
    auto spec = options.inputs;
    spec.seed = context.seed();
    const auto inputs = make_inputs(model, spec);

    context.engine();  // opened before the clock starts
    Measured measured;
    std::unique_ptr<Session> session;
    measured.compile_ns = nanoseconds_of([&] {
        session = std::make_unique<Session>(open_session(options, model, cut, tools, context));
    });
    check_ports(*session, model, options);
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
    report.context = context.describe(model, true);
    report.tables.push_back(input_table(inputs));
    report.tables.push_back(output_table(outputs, files));
    report.sections.push_back(time_section(measured, options, session->plan().segments.size() > 1));
    report.sections.push_back(program_section(*session, cut, options, context));
    report.order = {"inputs", "outputs", "time", "programs"};
    report.notes = inputs.notes;
    if (tools.empty() && session->plan().segments.size() > 1 && has_half_floats(model.graph)) {
        const auto whole =
            compare_whole_run(model, context.engine(), session->plan(), inputs.values, outputs);
        if (!whole.same) {
            report.notes.push_back(text(whole));
        }
    }
    add_findings(report, tools, *session);
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
                "with none, whole and cut runs give the same bits, but for half floats that the "
                "engine computes in f32");
    args.option("--repeat", options->repeat, "N", "Run N more times and show median and spread");
    args.option("--warmup", options->warmup, "N",
                "Runs before those of --repeat that are not counted");
    args.option("--tool", options->tools, "LIB.so[,KEY=VALUE…]",
                "Put an instrument from a shared library in; several are called in this order");
    args.option("--masks", options->masks, "FILE",
                "Read elements of constants as 0, as masks of `trocar prune --masks` say");
    args.choice("--view", options->view, "source|deployed",
                "Whose ops instruments stand at: the model's, or those the engine made of them");
    args.choice("--lowering", options->lowering, "auto|tap|cut",
                "How instruments are brought in: inside the engine's program, or between programs");
    args.flag("--allow-empty", options->allow_empty, "A selector may match no op");
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
