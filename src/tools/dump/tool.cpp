#include <fmt/format.h>

#include <memory>

#include "tools/dump/present.h"
#include "trocar/command.h"
#include "trocar/dump.h"
#include "trocar/error.h"
#include "trocar/inputs.h"
#include "trocar/prune.h"
#include "trocar/session.h"
#include "util/selector_hint.h"
#include "util/text.h"

namespace trocar {

namespace {

struct Options {
    std::string model;
    InputSpec inputs;
    std::vector<std::string> sets;
    std::string at = "all";
    bool allow_empty = false;
    std::string output;
    bool tensors = false;
    std::string as = "npy";
    std::string hash = "xxh64";
    bool exact = false;
    bool histograms = false;
    bool first_bad = false;
    std::string masks;
    std::string view = "source";
    std::string lowering = "automatic";
    std::string optimize = "none";
};

DumpOptions::Tensors tensors_as(const Options& options) {
    if (!options.tensors) {
        return DumpOptions::Tensors::none;
    }
    return options.as == "npy"   ? DumpOptions::Tensors::npy
           : options.as == "npz" ? DumpOptions::Tensors::npz
                                 : DumpOptions::Tensors::safetensors;
}

DumpOptions::Hash hash_of(const Options& options) {
    return options.hash == "xxh64"    ? DumpOptions::Hash::xxh64
           : options.hash == "sha256" ? DumpOptions::Hash::sha256
                                      : DumpOptions::Hash::none;
}

std::filesystem::path folder_of(const Options& options) {
    return options.output.empty() ? std::filesystem::path(options.model).stem().string() + ".dump"
                                  : options.output;
}

[[noreturn]] void refuse_selector(const Options& options, const Model& model) {
    throw Error(Fault::usage, fmt::format("no op of the model matches --at {}", options.at),
                selector_hint(model.graph, options.at));
}

// All ops of a model without any are none.
bool allows_empty(const Options& options) {
    return options.allow_empty || options.at == "all";
}

// Before anything is written. Functions are seen only when they were put in place.
Selector parse_at(const Options& options, const Model& model) {
    auto at = parse_selector(options.at);
    if (!allows_empty(options) && model.functions.empty() && options.view == "source" &&
        !selects_anything(model.graph, at)) {
        refuse_selector(options, model);
    }
    return at;
}

// The values of each run: those of --input for all, and one more source for each set.
std::vector<Inputs> make_sets(const Options& options, const Model& model, Context& context) {
    auto spec = options.inputs;
    spec.seed = context.seed();
    if (options.sets.empty()) {
        return {make_inputs(model, spec)};
    }
    std::vector<Inputs> sets;
    for (const auto& source : options.sets) {
        auto one = spec;
        one.sources.push_back(source);
        sets.push_back(make_inputs(model, one));
    }
    return sets;
}

std::vector<Property> about(const Options& options, const std::vector<Scalar>& context) {
    std::vector<Property> all;
    for (const auto& scalar : context) {
        if (!scalar.value.missing()) {
            all.push_back({scalar.key, show(scalar.value, Show::plain)});
        }
    }
    all.push_back({"at", options.at});
    all.push_back({"view", options.view});
    all.push_back({"lowering", options.lowering});
    all.push_back({"optimize", options.view == "deployed" ? "engine" : options.optimize});
    return all;
}

DumpOptions dump_options(const Options& options, const std::vector<Scalar>& described,
                         Context& context) {
    DumpOptions dump;
    dump.folder = folder_of(options);
    dump.tensors = tensors_as(options);
    dump.hash = hash_of(options);
    dump.statistics.spread =
        options.exact ? StatisticsOptions::Spread::exact : StatisticsOptions::Spread::sampled;
    dump.statistics.sample = 4096;
    dump.histograms = options.histograms;
    dump.first_bad = options.first_bad;
    dump.about = about(options, described);
    dump.cancel = [&context] { return context.interrupted(); };
    return dump;
}

SessionOptions session_options(const Options& options, Tool& tool, Tool* masks) {
    SessionOptions session;
    session.tools = {&tool};
    if (masks != nullptr) {
        session.tools.insert(session.tools.begin(), masks);
    }
    session.view = options.view == "deployed" ? View::deployed : View::source;
    session.lowering = options.lowering == "tap"   ? Lowering::tap
                       : options.lowering == "cut" ? Lowering::cut
                                                   : Lowering::automatic;
    session.compile.low_memory = options.sets.size() <= 1;  // it runs once
    if (options.optimize == "none") {
        session.compile.optimize = CompileOptions::Optimize::none;
    }
    return session;
}

std::vector<DumpInput> describe_inputs(const Inputs& inputs, DumpOptions::Hash hash) {
    std::vector<DumpInput> described;
    for (std::size_t i = 0; i < inputs.values.size(); ++i) {
        const auto& input = inputs.values[i];
        described.push_back(
            {input.name, value_text(input.value), inputs.origins[i], dump_hash(input.value, hash)});
    }
    return described;
}

// Runs the sets one after the other. Returns how the dump ended.
std::string run_sets(Session& session, DumpWriter& writer, const std::vector<Inputs>& sets,
                     const Options& options) {
    for (const auto& inputs : sets) {
        writer.start_set(describe_inputs(inputs, hash_of(options)));
        session.run(inputs.values);
        if (writer.cancelled()) {
            return "interrupted";
        }
        if (writer.first_bad()) {
            return "stopped";
        }
    }
    return "complete";
}

void add_first_bad(Report& report, const DumpWriter& writer) {
    const auto& bad = writer.first_bad();
    report.verdict = !bad;
    Section section{.key = "first_bad", .title = "First NaN or infinity", .scalars = {}};
    if (!bad) {
        section.scalars.push_back({"found", "Found", false, Show::plain, "all numbers are finite"});
        report.sections.push_back(std::move(section));
        return;
    }
    const auto& record = bad->record;
    const auto& s = *record.statistics;
    section.scalars = {
        {"found", "Found", true, Show::plain, ""},
        {"op", "Op", fmt::format("op {} ({} '{}')", record.op, record.type, record.name),
         Show::plain, record.scope},
        {"tensor", "Tensor", record.tensor, Show::plain, ""},
        {"nans", "NaN", std::uint64_t{s.nans}, Show::count,
         fmt::format("of {}", show(Cell(std::uint64_t{s.count}), Show::count))},
        {"infinities", "Infinite", std::uint64_t{s.infinities()}, Show::count, ""},
        {"set", "Set of inputs", record.set, Show::plain, ""},
        {"made_here", "Made here", bad->bad_inputs.empty(), Show::plain,
         bad->bad_inputs.empty() ? "all that it read is finite"
                                 : fmt::format("{}", join(bad->bad_inputs, ", "))},
    };
    report.sections.push_back(std::move(section));
}

Section dump_section(const DumpWriter& writer, const Session& session, const Table& table,
                     const std::string& end) {
    const auto ports = session.ports();
    Section section{.key = "dump", .title = "Dump", .scalars = {}};
    section.scalars = {
        {"index", "Index", writer.index().string(), Show::plain, ""},
        {"records", "Tensors", std::uint64_t{table.rows.size()}, Show::count, ""},
        {"tensor_bytes", "Written", std::uint64_t{writer.tensor_bytes()}, Show::bytes,
         writer.tensor_bytes() == 0 ? "statistics only; --tensors writes the tensors too" : ""},
        {"end", "Ended", end, Show::plain, ""},
        {"taps", "Taps", std::uint64_t{ports.taps}, Show::count, ""},
        {"cuts", "Cuts", std::uint64_t{ports.cuts}, Show::count, ""},
        {"constants", "Constants", std::uint64_t{ports.constants}, Show::count,
         "ops that only pass a constant on"},
    };
    return section;
}

Report run(const Options& options, Context& context) {
    context.isolate();
    const auto model = context.load(options.model);
    const auto at = parse_at(options, model);
    const auto sets = make_sets(options, model, context);
    std::unique_ptr<Tool> masks;
    if (!options.masks.empty()) {
        if (options.view != "source") {
            throw Error(Fault::usage, "--masks are for the model's own constants: --view source");
        }
        masks = mask_tool(model, load_masks(options.masks));
    }

    Report report;
    report.tool = "dump";
    report.context = context.describe(model, true);
    DumpWriter writer(model, at, dump_options(options, report.context, context));
    auto table = dump::record_table(sets.size() > 1);
    writer.on_record = [&](const DumpRecord& record) {
        table.rows.push_back(dump::record_row(record));
        context.doing(fmt::format("running the model, after op {} ({} '{}')", record.op,
                                  record.type, record.name));
        context.progress("tensors", table.rows.size(), 0);
    };
    context.doing("compiling the model");
    Session session(model, context.engine(), session_options(options, writer, masks.get()));
    if (!allows_empty(options) && !session.ports().unmatched.empty()) {
        refuse_selector(options, model);
    }
    context.doing("running the model");
    const auto end = run_sets(session, writer, sets, options);
    writer.finish(end);

    report.partial = end == "interrupted";
    report.sections.push_back(dump_section(writer, session, table, end));
    report.tables.push_back(std::move(table));
    if (options.first_bad) {
        add_first_bad(report, writer);
    }
    report.order = {"tensors", "first_bad", "dump"};
    for (const auto& inputs : sets) {
        report.notes.insert(report.notes.end(), inputs.notes.begin(), inputs.notes.end());
    }
    for (const auto& note : session.ports().notes) {
        report.notes.push_back(note);
    }
    return report;
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->model, "MODEL", "Model file");
    declare_input_options(args, options->inputs);
    args.option("--input-set", options->sets, "SOURCE",
                "One run more on this folder with input_0.pb…, .npz or other source; what --input "
                "and --fill give holds for every set");
    args.option("--at", options->at, "SELECTOR",
                "The ops whose outputs are wanted, those in bodies of If, Loop and Scan included; "
                "all by default");
    args.flag("--allow-empty", options->allow_empty, "A selector may match no op");
    args.option("-o,--output", options->output, "FOLDER",
                "Where the dump goes: a new or empty folder; MODEL's name with .dump by default");
    args.flag("--tensors", options->tensors, "Write the tensors too, not only their statistics");
    args.choice("--as", options->as, "npy|npz|safetensors",
                "How: a file per tensor, or archives; what these cannot hold goes to .npy or .pb "
                "files");
    args.choice("--hash", options->hash, "xxh64|sha256|none", "Of each tensor, in the index");
    args.flag("--exact", options->exact,
              "Quantiles and entropy of all numbers, not of a sample of 4096");
    args.flag("--histogram", options->histograms, "64 bins from min to max of each, in the index");
    args.flag("--first-bad", options->first_bad,
              "Stop at the first NaN or infinity and say who made it; exit code 1");
    args.option("--masks", options->masks, "FILE",
                "Read elements of constants as 0, as masks of `trocar prune --masks` say");
    args.choice("--view", options->view, "source|deployed",
                "The model's own ops, or those that the engine made of them");
    args.choice("--lowering", options->lowering, "automatic|tap|cut",
                "Inside the engine's program, between programs, or as the plan chooses");
    args.choice("--optimize", options->optimize, "engine|none",
                "With none, every tensor has the bits of the engine's own unfused run");
    args.example("trocar dump model.onnx --fill random", "Statistics of every op's output");
    args.example("trocar dump model.onnx --input x.npy --tensors --at Conv -o convs",
                 "The outputs of the convolutions as .npy files");
    args.example("trocar dump model.onnx --input x.npy --first-bad",
                 "Find the op that makes the first NaN or infinity");
    args.example("trocar dump model.onnx --input-set test_data_set_0 --input-set test_data_set_1",
                 "Several inputs, one dump");
    return [options](Context& context) { return run(*options, context); };
}

}  // namespace

extern const Command dump_tool{
    .name = "dump",
    .summary = "Write statistics or tensors of every op's output, and find the first NaN",
    .bind = bind,
};

}  // namespace trocar
