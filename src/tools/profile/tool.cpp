#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "tools/profile/compare.h"
#include "tools/profile/cut.h"
#include "tools/profile/files.h"
#include "tools/profile/present.h"
#include "trocar/command.h"
#include "trocar/counting.h"
#include "trocar/error.h"
#include "trocar/inputs.h"
#include "util/files.h"

namespace trocar {

namespace {

using namespace profiles;

constexpr std::size_t rows_that_fit = 60;
constexpr std::size_t bars_that_fit = 90;

struct Options {
    std::string model;
    InputSpec inputs;
    std::string view = "deployed";
    std::string cut;
    std::int64_t modules = 0;
    bool allow_empty = false;
    double seconds = 5;
    std::int64_t runs = 0;
    std::int64_t depth = 0;
    std::int64_t top = 0;
    bool flat = false;
    bool no_count = false;
    bool no_roofline = false;
    bool measure_peaks = false;
    std::string trace;
    std::string folded;
    std::string speedscope;
    std::string plot;
    std::string compare;
};

void check(const Options& options) {
    if (options.runs < 0 || options.depth < 0 || options.top < 0 || options.modules < 0 ||
        options.seconds < 0) {
        throw Error(Fault::usage,
                    "--runs, --seconds, --depth, --top and --modules take numbers from 0 on");
    }
    if (options.view == "deployed" && (!options.cut.empty() || options.modules > 0)) {
        throw Error(Fault::usage, "--cut and --modules choose layers of the source view",
                    "add --view source");
    }
    if (!options.cut.empty() && options.modules > 0) {
        throw Error(Fault::usage, "--cut and --modules exclude one another");
    }
}

// Processes that want to run, over the last minute; < 0 where the system does not tell.
double load() {
    double minutes = -1;
    return ::getloadavg(&minutes, 1) == 1 ? minutes : -1;
}

ProfileOptions profile_options(const Options& options, const Model& model, Context& context) {
    ProfileOptions chosen;
    chosen.view = options.view == "source" ? View::source : View::deployed;
    if (chosen.view == View::source) {
        chosen.cut =
            find_cut(model, options.cut, static_cast<int>(options.modules), options.allow_empty);
    }
    chosen.seconds = options.seconds;
    chosen.runs = static_cast<std::size_t>(options.runs);
    chosen.count = !options.no_count;
    chosen.interrupted = [&context] { return context.interrupted(); };
    chosen.progress = [&context](std::string_view what, std::uint64_t done, std::uint64_t total) {
        context.progress(what, done, total);
    };
    return chosen;
}

std::vector<profiles::Row> shown_rows(const Profile& profile, const Options& options) {
    if (!options.flat && options.top == 0) {
        return tree_rows(profile, static_cast<int>(options.depth), rows_that_fit);
    }
    auto rows = part_rows(profile);
    if (options.top > 0) {
        std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
            return a.self.typical > b.self.typical;
        });
        rows.resize(std::min(rows.size(), static_cast<std::size_t>(options.top)));
    }
    return rows;
}

std::string engine_text(Context& context) {
    const auto& info = context.engine()->info();
    return fmt::format("{} {}, {} thread{}", info.name, info.version, context.threads(),
                       context.threads() == 1 ? "" : "s");
}

void write_files(const Options& options, const Profile& profile, Context& context) {
    const auto title =
        fmt::format("{}, {}", std::filesystem::path(options.model).filename().string(),
                    profile.view == View::deployed ? "as it runs" : "as layers");
    if (!options.trace.empty()) {
        write_file(options.trace, chrome_trace(profile, title));
    }
    if (!options.folded.empty()) {
        write_file(options.folded, folded_stacks(profile));
    }
    if (!options.speedscope.empty()) {
        write_file(options.speedscope, speedscope(profile, title));
    }
    if (!options.plot.empty()) {
        const auto runs = typical_runs(profile);
        const auto subtitle = fmt::format(
            "{} · {} a run · mean over the middle half of {} steady runs, whiskers 5 to 95 %",
            engine_text(context), show(Cell(typical(profile.wall_ns, runs)), Show::nanoseconds),
            profile.wall_ns.size() - profile.steady);
        write_file(options.plot,
                   plot(profile, tree_rows(profile, 0, bars_that_fit), title, subtitle));
    }
}

Report report_of(const Findings& findings, const Options& options) {
    const auto& profile = findings.profile;
    Report report;
    report.tool = "profile";
    report.sections = {time_section(findings), machine_section(findings)};
    const bool tree = !options.flat && options.top == 0;
    report.tables = {layer_table(findings, shown_rows(profile, options), tree),
                     type_table(findings), part_table(findings), sample_table(findings)};
    report.order = {"layers", "types", "compare", "time", "machine"};
    report.notes = profile.notes;
    if (profile.view == View::deployed && !profile.folded.empty()) {
        report.notes.push_back(
            fmt::format("{} of the model's {} ops are not run: they were folded into constants or "
                        "dropped when the engine compiled",
                        profile.folded.size(), findings.model.graph.op_count()));
    }
    if (profile.resolution_ns >= 100) {
        report.notes.push_back(fmt::format(
            "parts are timed by the engine's own profiler, whose clock counts steps of {}",
            show(Cell(profile.resolution_ns), Show::nanoseconds)));
    }
    report.notes.emplace_back(counting_convention());
    report.warnings = doubts(findings);
    report.partial = profile.partial;
    return report;
}

Report run(const Options& options, Context& context) {
    check(options);
    const auto model = context.load(options.model);
    auto spec = options.inputs;
    spec.seed = context.seed();
    const auto chosen = profile_options(options, model, context);
    const auto inputs = make_inputs(model, spec);
    const auto at_begin = load();
    // Before the clock runs: describing a model takes a thread for its digest.
    auto facts = context.describe(model, true);
    std::optional<Peaks> peaks;
    if (!options.no_roofline) {
        peaks = find_peaks(context, options.measure_peaks);
    }
    const auto profile = trocar::profile(model, context.engine(), inputs.values, chosen);

    const Findings findings{model, profile, peaks, chosen.cut.text(), at_begin, context.threads()};
    write_files(options, profile, context);
    auto report = report_of(findings, options);
    if (!options.compare.empty()) {
        report.tables.push_back(profiles::compare(profile, options.compare));
    }
    facts.push_back({"view", "View", view_name(profile.view), Show::plain, ""});
    report.context = std::move(facts);
    report.notes.insert(report.notes.begin(), inputs.notes.begin(), inputs.notes.end());
    return report;
}

void declare_measuring(Args& args, Options& options) {
    args.choice("--view", options.view, "deployed|source",
                "As it runs, with all fusion, or as layers that each are a program of their own");
    args.option("--cut", options.cut, "SELECTOR",
                "Source view: layers end after these ops (default: every op)");
    args.option("--modules", options.modules, "DEPTH",
                "Source view: layers are modules, this many levels deep");
    args.flag("--allow-empty", options.allow_empty, "Go on when --cut matches no op");
    args.option("--seconds", options.seconds, "S", "Begin runs for this long (default 5)");
    args.option("--runs", options.runs, "N", "Profile this many runs instead");
    args.flag("--no-count", options.no_count, "Do not count MACs: saves a run op by op");
    args.flag("--no-roofline", options.no_roofline, "Do not measure what the machine can do");
    args.flag("--measure-peaks", options.measure_peaks,
              "Measure it anew; it is kept in the user's cache");
}

void declare_output(Args& args, Options& options) {
    args.option("--depth", options.depth, "N", "Open modules N levels deep (default: as fits)");
    args.flag("--flat", options.flat, "A list of parts instead of the tree of modules");
    args.option("--top", options.top, "N", "The N parts that take most");
    args.option("--trace", options.trace, "FILE", "Write a Chrome trace, for Perfetto");
    args.option("--folded", options.folded, "FILE", "Write folded stacks, for flame graphs");
    args.option("--speedscope", options.speedscope, "FILE", "Write a file for speedscope");
    args.option("--plot", options.plot, "FILE", "Write a plot of time by layer (SVG)");
    args.option("--compare", options.compare, "FILE",
                "Compare with an earlier profile, written with --json");
}

std::function<Report(Context&)> bind(Args& args) {
    const auto options = std::make_shared<Options>();
    args.positional(options->model, "MODEL", "Model file");
    declare_input_options(args, options->inputs);
    declare_measuring(args, *options);
    declare_output(args, *options);
    args.example("trocar profile model.onnx --fill random", "Where the time goes, as it runs");
    args.example("trocar profile model.onnx --fill random --view source --modules 2",
                 "By module, and what cutting there costs");
    args.example("trocar profile model.onnx --fill random --top 10", "The ten slowest");
    args.example("trocar profile model.onnx --fill random --plot time.svg --trace trace.json",
                 "To look at");
    args.example("trocar profile model.onnx --fill random --compare before.json",
                 "What a change did");
    return [options](Context& context) { return run(*options, context); };
}

}  // namespace

extern const Command profile_tool{
    .name = "profile",
    .summary = "Show where the time of a model goes: by layer, adding up, against the roofline",
    .bind = bind,
};

}  // namespace trocar
