#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <unordered_set>

#include "tools/inject/commands.h"
#include "tools/inject/options.h"
#include "tools/inject/prepare.h"
#include "trocar/campaign_report.h"
#include "trocar/error.h"
#include "util/scratch.h"

namespace trocar::inject {

namespace {

struct RunOptions {
    CampaignArguments campaign;
    bool resume = false;
    std::string shard;
    bool brute_force = false;
    bool explain = false;
};

std::pair<std::uint64_t, std::uint64_t> parse_shard(const std::string& text) {
    if (text.empty()) {
        return {0, 1};
    }
    unsigned long long number = 0;
    unsigned long long of = 0;
    char rest = 0;
    // NOLINTNEXTLINE(cert-err34-c): both numbers are checked below
    if (std::sscanf(text.c_str(), "%llu/%llu%c", &number, &of, &rest) != 2 || number < 1 ||
        number > of) {
        throw Error(Fault::usage, fmt::format("'{}' is no shard", text), "write --shard 3/16");
    }
    return {number - 1, of};
}

GoldenInput record_of(const GoldenResult& golden) {
    GoldenInput record;
    record.input = golden.input;
    record.name = golden.name;
    record.label = golden.label;
    record.top = golden.top;
    record.correct = golden.correct;
    for (const auto& output : golden.outputs) {
        // What the store does not hold, sequences and strings, is not compared again.
        if (output.value.is_tensor() && bits(output.value.dtype()) > 0) {
            record.outputs.push_back(golden_output(output));
        }
    }
    return record;
}

// Puts what a campaign gives into its store, and shows how far it is.
class Recorder : public CampaignObserver {
public:
    Recorder(CampaignStore& store, std::uint64_t session, Campaign& campaign, Context& context,
             const CampaignFile& file)
        : store_(store),
          session_(session),
          campaign_(campaign),
          context_(context),
          file_(file),
          done_(store.done()),
          start_(std::chrono::steady_clock::now()) {}

    void golden(const GoldenResult& golden) override {
        if (known_.insert(golden.input).second) {
            const auto record = record_of(golden);
            store_.add_golden(std::span(&record, 1));
        }
    }
    void results(const std::vector<TrialResult>& results,
                 const std::vector<LayerEffect>& effects) override {
        std::vector<FaultRecord> faults;
        for (const auto& result : results) {
            if (recorded_.insert(result.trial).second) {
                faults.push_back(fault_record(campaign_.trial(result.trial)));
            }
        }
        store_.add_faults(faults);
        store_.append(results, effects);
    }
    bool is_done(std::uint64_t trial, std::uint64_t input) override {
        return done_.contains(trial, input);
    }
    void progress(std::uint64_t done, std::uint64_t total) override {
        const auto seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
        context_.progress(
            fmt::format("{:.1f} runs/s", seconds > 0 ? static_cast<double>(done) / seconds : 0),
            done + done_.size(), total);
    }
    void audited(std::uint64_t trial, std::uint64_t input) override {
        const AuditRecord record{session_, trial, input, true, ""};
        store_.add_audits(std::span(&record, 1));
    }
    bool stop() override { return context_.interrupted(); }
    // By the interval that the report gives. It takes a look at the whole store, which is not
    // worth it for a few trials more.
    bool enough(std::uint64_t blocks) override {
        if (!file_.stop_at || static_cast<double>(blocks) < 1.1 * static_cast<double>(asked_)) {
            return false;
        }
        asked_ = blocks;
        store_.commit();
        const auto [low, high] = sdc_rate(store_, file_.confidence, blocks).interval;
        reached_ = (high - low) / 2 <= *file_.stop_at;
        return reached_;
    }
    bool reached() const { return reached_; }
    std::uint64_t trials() const { return recorded_.size(); }

private:
    CampaignStore& store_;
    std::uint64_t session_;
    Campaign& campaign_;
    Context& context_;
    const CampaignFile& file_;
    DonePairs done_;
    std::set<std::uint64_t> known_;               // inputs whose golden run is in the store
    std::unordered_set<std::uint64_t> recorded_;  // trials whose faults are
    std::chrono::steady_clock::time_point start_;
    std::uint64_t asked_ = 0;  // blocks, whether they are enough
    bool reached_ = false;
};

CampaignStore open_store(const RunOptions& options, const Prepared& prepared,
                         const std::filesystem::path& path) {
    if (std::filesystem::exists(path)) {
        if (!options.resume) {
            throw Error(Fault::usage, fmt::format("'{}' is there already", path.string()),
                        "--resume goes on with it; or name another --store");
        }
        auto store = CampaignStore::open(path);
        store.require_same(prepared.header);
        return store;
    }
    if (options.resume && !prepared.file.store.empty()) {
        throw Error(Fault::input,
                    fmt::format("there is no store '{}' to go on with", path.string()),
                    "leave --resume out to begin");
    }
    return CampaignStore::create(path, prepared.header);
}

Section speed(const CampaignSummary& summary, const CampaignOptions& options) {
    Section section{"session", "This session", {}};
    auto& s = section.scalars;
    s.push_back({"runs", "Runs with faults", summary.runs, Show::count, ""});
    s.push_back({"seconds", "Time", summary.seconds, Show::seconds,
                 fmt::format("{} at the same time", options.workers)});
    const auto rate = summary.seconds > 0 ? static_cast<double>(summary.runs) / summary.seconds : 0;
    s.push_back({"runs_per_second", "Runs/s", rate, Show::plain, ""});
    s.push_back({"golden_seconds", "One run without faults", summary.golden_seconds, Show::seconds,
                 "warm, op by op, one thread"});
    s.push_back({"speed_up", "Estimated speedup",
                 rate * summary.golden_seconds / std::max(1, options.workers), Show::ratio,
                 "per worker, over such a run for every fault"});
    if (options.audit > 0) {
        s.push_back({"audited", "Done again by brute force", summary.audited, Show::count,
                     "all with the same bits"});
    }
    return section;
}

Table explained(const Saving& saving) {
    Table table{.key = "explain", .title = "What was saved", .columns = {}, .rows = {}, .note = {}};
    table.columns = {{.key = "what", .title = "What", .left = true},
                     {.key = "number", .title = "Number"}};
    for (const auto& [what, number] : saving) {
        table.rows.push_back({{Cell(what), Cell(number)}});
    }
    return table;
}

Report run(const RunOptions& options, Context& context) {
    auto prepared = prepare(campaign_of(options.campaign), context);
    const auto [shard, shards] = parse_shard(options.shard);
    prepared.options.shard = shard;
    prepared.options.shards = shards;
    prepared.options.brute_force = options.brute_force;
    prepared.options.recipe = recipe_of(prepared);
    std::unique_ptr<ScratchFolder> scratch;
    std::filesystem::path path = prepared.file.store;
    if (path.empty()) {
        scratch = std::make_unique<ScratchFolder>(context.engine_options().scratch);
        path = scratch->path() / "campaign.db";
    }
    Campaign campaign(*prepared.model, prepared.engine, prepared.inputs, prepared.options);
    const auto decision = campaign.decision();
    if (prepared.file.stop_at && decision.decision.kind == Decision::Kind::none) {
        throw Error(Fault::usage, "there is no SDC rate to stop at, for the decision is 'none'",
                    "choose a --decision, or leave --stop-at out");
    }
    prepared.header.decision = text(decision.decision);
    prepared.header.decision_meaning = decision.meaning;
    if (!campaign.whole_run().empty()) {
        prepared.header.context.push_back({"whole_run", campaign.whole_run()});
    }
    auto store = open_store(options, prepared, path);
    store.set_strata(campaign.strata());
    const auto session = store.begin_run(shard, shards);
    Recorder recorder(store, session, campaign, context, prepared.file);
    const auto summary = campaign.run(recorder);
    RunRecord record;
    record.run = session;
    record.shard = shard;
    record.shards = shards;
    record.trials = recorder.trials();
    record.results = summary.runs;
    record.seconds = summary.seconds;
    record.saved = summary.saving;
    store.end_run(record);
    store.commit();
    if (!summary.stopped || recorder.reached()) {
        store.finish();
    }
    InjectReportOptions how;
    how.confidence = prepared.file.confidence;
    auto report = inject_report(store, how);
    report.sections.push_back(speed(summary, prepared.options));
    if (!report.order.empty()) {
        report.order.emplace_back("session");
    }
    if (options.explain) {
        report.tables.push_back(explained(summary.saving));
        if (!report.order.empty()) {
            report.order.emplace_back("explain");
        }
    }
    for (const auto& note : campaign.notes()) {
        if (note != campaign.whole_run()) {  // the store has it
            report.notes.push_back(note);
        }
    }
    for (const auto& note : prepared.notes) {
        report.notes.push_back(note);
    }
    report.partial = summary.stopped && !recorder.reached();
    if (report.partial && !prepared.file.store.empty()) {
        report.notes.push_back("interrupted; --resume goes on from here");
    }
    return report;
}

}  // namespace

std::function<Report(Context&)> bind_run(Args& args) {
    const auto options = std::make_shared<RunOptions>();
    declare(args, options->campaign);
    // The rest of how they are run.
    args.option("--shard", options->shard, "I/N",
                "Only this share of the trials; `trocar inject merge` puts shards together");
    args.flag("--brute-force", options->brute_force,
              "Run the whole model for every fault, with no acceleration");
    args.flag("--explain", options->explain, "Show what each acceleration saved");
    args.section("");
    args.flag("--resume", options->resume, "Go on with the store of an earlier session");
    args.example(
        "trocar inject model.onnx --data digits/ --target weights --faults 10000 --store run.db",
        "10,000 single-bit faults in weights");
    args.example("trocar inject campaign.yaml --store run.db --resume",
                 "the whole experiment as a file, where it was left");
    args.example(
        "trocar inject model.onnx --fill random --target activations --per layer,bit --audit 1%",
        "strata by layer and bit; one run in a hundred checked by brute force");
    return [options](Context& context) { return run(*options, context); };
}

}  // namespace trocar::inject
