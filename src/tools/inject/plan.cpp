#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "tools/inject/commands.h"
#include "tools/inject/options.h"
#include "tools/inject/prepare.h"
#include "trocar/error.h"
#include "trocar/intervals.h"

namespace trocar::inject {

namespace {

// Takes no results: it is there to be timed.
class Timed : public CampaignObserver {
public:
    void results(const std::vector<TrialResult>& some, const std::vector<LayerEffect>&) override {
        runs += some.size();
    }
    bool is_done(std::uint64_t, std::uint64_t) override { return false; }
    void progress(std::uint64_t, std::uint64_t) override {}
    std::uint64_t runs = 0;
};

constexpr std::uint64_t pilot_trials = 64;
constexpr std::uint64_t plain_trials = 8;  // of brute force

// Seconds of one run, from a pilot of the same faults.
double pilot(const Prepared& prepared, bool brute_force) {
    auto options = prepared.options;
    options.brute_force = brute_force;
    const auto trials = brute_force ? plain_trials : pilot_trials;
    options.sampling.exhaustive = false;
    options.sampling.trials = trials;
    options.sampling.margin = 0;
    if (options.sampling.list.size() > trials) {
        options.sampling.list.resize(trials);
    }
    options.inputs_per_fault = 1;
    options.audit = 0;
    options.monitoring.ranges = Ranges::off;
    Campaign campaign(*prepared.model, prepared.engine, prepared.inputs, options);
    Timed first;
    campaign.run(first);  // compiles and calibrates
    Timed timed;
    const auto summary = campaign.run(timed);
    return timed.runs == 0 ? 0 : summary.seconds / static_cast<double>(timed.runs);
}

Table claims(const Campaign& campaign, double confidence) {
    Table table{
        .key = "claims", .title = "Faults for a claim", .columns = {}, .rows = {}, .note = {}};
    table.columns = {{.key = "margin", .title = "Rate to ±", .show = Show::percent},
                     {.key = "network", .title = "Whole model", .show = Show::count},
                     {.key = "strata", .title = "Every stratum", .show = Show::count}};
    for (const double margin : {0.05, 0.01, 0.005, 0.001}) {
        std::uint64_t strata = 0;
        for (const auto& stratum : campaign.strata()) {
            strata += sample_size(stratum.population, margin, confidence);
        }
        table.rows.push_back(
            {{Cell(margin), Cell(campaign.trials_for(margin, confidence)), Cell(strata)}});
    }
    table.note = fmt::format(
        "at {:g} % confidence, for a rate near 50 %, where it takes most; one "
        "sample of the whole model says nothing of single layers or bits",
        100 * confidence);
    return table;
}

Table strata_of(const Campaign& campaign, double confidence) {
    Table table{.key = "strata", .title = "Strata", .columns = {}, .rows = {}, .note = {}};
    table.columns = {{.key = "stratum", .title = "Stratum", .left = true},
                     {.key = "population", .title = "Faults", .show = Show::count},
                     {.key = "planned", .title = "Trials", .show = Show::count},
                     {.key = "margin", .title = "Rate to ±", .show = Show::percent}};
    for (const auto& stratum : campaign.strata()) {
        const auto margin = stratum.planned == 0 || stratum.population == 0
                                ? Cell::unavailable("no trials")
                                : Cell(margin_of(stratum.planned, stratum.population, confidence));
        table.rows.push_back(
            {{Cell(stratum.name), Cell(stratum.population), Cell(stratum.planned), margin}});
    }
    return table;
}

Report run_plan(const CampaignArguments& arguments, Context& context) {
    const auto prepared = prepare(campaign_of(arguments), context);
    const Campaign campaign(*prepared.model, prepared.engine, prepared.inputs, prepared.options);
    const auto seconds = pilot(prepared, false);
    const auto plain = pilot(prepared, true);
    const auto inputs = prepared.options.inputs_per_fault == 0
                            ? prepared.inputs.count
                            : std::min(prepared.options.inputs_per_fault, prepared.inputs.count);
    const auto runs = campaign.trial_count() * inputs;
    Report report;
    report.tool = "inject plan";
    report.context = context.describe(*prepared.model, false);
    Section section{"plan", "", {}};
    auto& s = section.scalars;
    s.push_back({"population", "Faults there are", campaign.population(), Show::count, ""});
    s.push_back({"trials", "Trials", campaign.trial_count(), Show::count, ""});
    s.push_back({"inputs", "Inputs for each", inputs, Show::count, ""});
    s.push_back({"golden_seconds", "One run without faults", campaign.golden_seconds(),
                 Show::seconds, "warm, op by op, one thread"});
    s.push_back({"run_seconds", "One run with a fault", seconds, Show::seconds,
                 fmt::format("from {} trials, {} at the same time", pilot_trials,
                             prepared.options.workers)});
    s.push_back({"total_seconds", "All of them, about", seconds * static_cast<double>(runs),
                 Show::seconds, ""});
    s.push_back({"brute_force_seconds", "By brute force, about", plain * static_cast<double>(runs),
                 Show::seconds, ""});
    s.push_back(
        {"golden_bytes", "Golden tensors of an input", campaign.golden_bytes(), Show::bytes, ""});
    report.sections.push_back(std::move(section));
    if (campaign.population() > 0) {
        report.tables.push_back(claims(campaign, prepared.file.confidence));
        report.tables.push_back(strata_of(campaign, prepared.file.confidence));
    }
    for (const auto& note : campaign.notes()) {
        report.notes.push_back(note);
    }
    return report;
}

std::function<Report(Context&)> bind_plan(Args& args) {
    const auto options = std::make_shared<CampaignArguments>();
    declare(args, *options);
    args.example("trocar inject plan campaign.yaml",
                 "how many faults for which claim, and how long");
    return [options](Context& context) { return run_plan(*options, context); };
}

}  // namespace

extern const Command plan_command{
    .name = "plan",
    .summary = "Say how many faults a claim needs and how long a campaign will take",
    .bind = bind_plan,
};

}  // namespace trocar::inject
