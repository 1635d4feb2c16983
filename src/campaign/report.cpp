#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "campaign/claims.h"
#include "campaign/tally.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

using namespace campaign;

struct Measure {
    const char* key;
    const char* title;
    Count what;
    const char* meaning;
};

// What is counted, from bad to good, and what each means.
constexpr std::array<Measure, 10> measures{{
    {"crash", "Crash", Count::crash, "the process that ran the engine died of a signal"},
    {"hang", "Hang", Count::hang, "the run did not end within the time limit"},
    {"failed", "Failed", Count::failed, "the engine refused to go on"},
    {"due", "DUE", Count::due,
     "detected unrecoverable error: NaN or infinity, where the golden run has a number, in a "
     "monitored tensor"},
    {"sdc", "SDC-1", Count::sdc,
     "silent data corruption: the first choice along the last axis of the first output is another "
     "than in the golden run"},
    {"benign", "Benign", Count::benign, "other bits in the output, the same first choice"},
    {"masked", "Masked", Count::masked, "the golden output bit for bit"},
    {"sdc5", "SDC-5", Count::sdc5, "the faulty first choice is not among the golden first five"},
    {"sdc10", "SDC-10 %", Count::sdc10,
     "the score of the golden first choice is off by more than 10 %"},
    {"sdc20", "SDC-20 %", Count::sdc20, "… by more than 20 %"},
}};

Cell number(double value, const char* why) {
    return std::isnan(value) ? Cell::unavailable(why) : Cell(value);
}

void add_rate(std::vector<Cell>& cells, const RateEstimate& estimate, const char* why) {
    const bool none = std::isnan(estimate.rate);
    cells.push_back(number(estimate.rate, why));
    cells.push_back(none ? Cell::unavailable(why) : Cell(estimate.interval.low));
    cells.push_back(none ? Cell::unavailable(why) : Cell(estimate.interval.high));
}

std::vector<Column> rate_columns(const std::string& prefix, const std::string& title,
                                 int optional = 0) {
    return {{.key = prefix + "_rate", .title = title, .show = Show::percent, .optional = optional},
            {.key = prefix + "_low", .title = "from", .show = Show::percent, .optional = optional},
            {.key = prefix + "_high", .title = "to", .show = Show::percent, .optional = optional}};
}

std::uint64_t total(const Group& group, Count what) {
    std::uint64_t sum = 0;
    for (const auto* trial : group) {
        sum += (*trial)[what];
    }
    return sum;
}

Table titled(std::string key, std::string title) {
    Table table;
    table.key = std::move(key);
    table.title = std::move(title);
    return table;
}

Table outcome_table(const Tally& tally, const InjectReportOptions& options) {
    auto table = titled("outcomes", "Outcomes");
    table.columns = {{.key = "outcome", .title = "Outcome"},
                     {.key = "results", .title = "Results", .show = Show::count}};
    for (auto& column : rate_columns("estimated", "Rate")) {
        table.columns.push_back(std::move(column));
    }
    table.columns.push_back(
        {.key = "share", .title = "In sample", .show = Show::percent, .optional = 1});
    table.columns.push_back({.key = "meaning", .title = "Meaning", .hidden = true});
    const auto all = everything(tally);
    const auto results = tally.total(Count::results);
    for (const auto& measure : measures) {
        const auto count = tally.total(measure.what);
        Row row;
        row.cells = {Cell(measure.title), Cell(count)};
        add_rate(row.cells, rate(tally, all, measure.what, Count::results, options),
                 "there are no results");
        row.cells.push_back(results > 0
                                ? Cell(static_cast<double>(count) / static_cast<double>(results))
                                : Cell::unavailable("there are no results"));
        row.cells.emplace_back(measure.meaning);
        row.strong = measure.what == Count::sdc;
        table.rows.push_back(std::move(row));
    }
    table.note =
        "A result is one input run with the faults of one trial. Its outcome is the first "
        "of Crash to Masked that holds; SDC-5 to SDC-20 % are counted besides.";
    return table;
}

Section definitions() {
    Section section{"definitions", "Definitions", {}};
    for (const auto& measure : measures) {
        section.scalars.push_back({measure.key, measure.title, measure.meaning, Show::plain, ""});
    }
    return section;
}

std::string range_text(const RateEstimate& estimate, double confidence) {
    return std::isnan(estimate.rate)
               ? std::string()
               : fmt::format("{:.2f} to {:.2f} % at {:g} % confidence", 100 * estimate.interval.low,
                             100 * estimate.interval.high, 100 * confidence);
}

Section accuracy_section(const Tally& tally, const InjectReportOptions& options) {
    Section section{"accuracy", "Accuracy and detection", {}};
    const auto all = everything(tally);
    const auto add = [&](const char* key, const char* title, Count what, Count of,
                         const char* why) {
        const auto estimate = rate(tally, all, what, of, options);
        section.scalars.push_back({key, title, number(estimate.rate, why), Show::percent,
                                   range_text(estimate, options.confidence)});
        return estimate.rate;
    };
    const char* unlabelled = "the data has no labels";
    const double golden = add("golden_accuracy", "Golden accuracy", Count::golden_correct,
                              Count::labelled, unlabelled);
    section.scalars.back().note.clear();  // known, not estimated
    const double faulty = add("faulty_accuracy", "Accuracy with faults", Count::faulty_correct,
                              Count::labelled, unlabelled);
    section.scalars.push_back({"accuracy_loss", "Lost", number(golden - faulty, unlabelled),
                               Show::percent, "of all labelled results"});
    const bool monitored =
        tally.total(Count::harmful_detected) + tally.total(Count::false_alarms) > 0;
    if (!monitored) {
        section.scalars.push_back({"detection_rate", "Detected",
                                   Cell::unavailable("no monitor saw a value out of its range"),
                                   Show::percent, ""});
        return section;
    }
    add("detection_rate", "Detected", Count::harmful_detected, Count::harmful,
        "no result is harmful");
    section.scalars.back().note = "of Crash to SDC-1: " + section.scalars.back().note;
    add("false_alarm_rate", "False alarms", Count::false_alarms, Count::harmless,
        "no result is benign or masked");
    section.scalars.back().note = "of Benign and Masked: " + section.scalars.back().note;
    return section;
}

std::string capital(const std::string& word) {
    return std::string(1, static_cast<char>(word[0] - 'a' + 'A')) + word.substr(1);
}

Table group_table(const Tally& tally, const std::string& key, const std::vector<Named>& groups,
                  const InjectReportOptions& options) {
    auto table = titled("by_" + key, "By " + key);
    table.columns = {{.key = key, .title = capital(key)},
                     {.key = "faults", .title = "Faults", .show = Show::count},
                     {.key = "population", .title = "of", .show = Show::compact, .optional = 3},
                     {.key = "results", .title = "Results", .show = Show::count, .optional = 4}};
    for (auto& column : rate_columns("sdc", "SDC-1")) {
        table.columns.push_back(std::move(column));
    }
    for (auto& column : rate_columns("due", "DUE", 1)) {
        table.columns.push_back(std::move(column));
    }
    for (auto& column : rate_columns("masked", "Masked", 2)) {
        table.columns.push_back(std::move(column));
    }
    for (const auto& [name, group, place] : groups) {
        Row row;
        const auto drawn_from = population(tally, group);
        row.cells = {
            Cell(name), Cell(std::uint64_t{group.size()}),
            drawn_from ? Cell(*drawn_from) : Cell::unavailable("not a stratum of the campaign"),
            Cell(total(group, Count::results))};
        for (const auto what : {Count::sdc, Count::due, Count::masked}) {
            add_rate(row.cells, rate(tally, group, what, Count::results, options), "no results");
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

// Means of the user's metrics: of all, and of each group.
Table metric_table(const Tally& tally, const std::string& key, const std::vector<Named>& groups,
                   const InjectReportOptions& options) {
    auto table = titled(key.empty() ? "metrics" : "metrics_by_" + key,
                        key.empty() ? "Metrics" : "Metrics by " + key);
    if (!key.empty()) {
        table.columns.push_back({.key = key, .title = capital(key)});
    }
    for (auto& column :
         std::vector<Column>{{.key = "metric", .title = "Metric"},
                             {.key = "results", .title = "Results", .show = Show::count},
                             {.key = "mean", .title = "Mean"},
                             {.key = "mean_low", .title = "from"},
                             {.key = "mean_high", .title = "to"}}) {
        table.columns.push_back(std::move(column));
    }
    for (const auto& [name, group, place] : groups) {
        for (const auto& [metric, sums] : tally.metrics) {
            const auto estimate = mean(tally, group, metric, options);
            const bool several = std::isfinite(estimate.interval.low);
            const char* why = "one trial says nothing of others";
            Row row;
            if (!key.empty()) {
                row.cells.emplace_back(name);
            }
            row.cells.emplace_back(metric);
            row.cells.emplace_back(estimate.results);
            row.cells.push_back(number(estimate.mean, "no result has it"));
            row.cells.push_back(several ? Cell(estimate.interval.low) : Cell::unavailable(why));
            row.cells.push_back(several ? Cell(estimate.interval.high) : Cell::unavailable(why));
            table.rows.push_back(std::move(row));
        }
    }
    table.note = fmt::format(
        "Means over all faults and these inputs, of results that have a number; at {:g} % "
        "confidence, by the variance between faults.",
        100 * options.confidence);
    return table;
}

Table worst_table(const CampaignStore& store, const Tally& tally, std::size_t most) {
    auto trials = everything(tally);
    std::erase_if(trials, [](const TrialTally* trial) { return (*trial)[Count::harmful] == 0; });
    const auto share = [](const TrialTally* trial) {
        return static_cast<double>((*trial)[Count::harmful]) / (*trial)[Count::results];
    };
    const auto worse = [&](const TrialTally* a, const TrialTally* b) {
        const auto rank = [&](const TrialTally* t) {
            return std::tuple(-share(t), -static_cast<double>((*t)[Count::harmful]), -t->max_abs,
                              t->trial);
        };
        return rank(a) < rank(b);
    };
    most = std::min(most, trials.size());
    std::partial_sort(trials.begin(), trials.begin() + static_cast<std::ptrdiff_t>(most),
                      trials.end(), worse);
    auto table = titled("worst", "Worst faults");
    table.columns = {{.key = "trial", .title = "Trial"},
                     {.key = "fault", .title = "Fault"},
                     {.key = "harmful", .title = "Harmed", .show = Show::count},
                     {.key = "results", .title = "of", .show = Show::count},
                     {.key = "crash", .title = "Crash", .show = Show::count, .optional = 2},
                     {.key = "hang", .title = "Hang", .show = Show::count, .optional = 2},
                     {.key = "failed", .title = "Failed", .show = Show::count, .optional = 2},
                     {.key = "due", .title = "DUE", .show = Show::count, .optional = 1},
                     {.key = "sdc", .title = "SDC-1", .show = Show::count, .optional = 1},
                     {.key = "max_abs", .title = "Max abs", .optional = 3}};
    for (std::size_t i = 0; i < most; ++i) {
        const auto& trial = *trials[i];
        const auto fault = store.fault(trial.trial);
        const auto count = [&](Count what) { return Cell(std::uint64_t{trial[what]}); };
        table.rows.push_back(
            {.cells = {Cell(trial.trial),
                       fault ? Cell(fault->text) : Cell::unavailable("not in the store"),
                       count(Count::harmful), count(Count::results), count(Count::crash),
                       count(Count::hang), count(Count::failed), count(Count::due),
                       count(Count::sdc), Cell(double{trial.max_abs})}});
    }
    table.note = "`trocar inject replay STORE --fault TRIAL` runs one of them again";
    return table;
}

Section work_section(const CampaignStore& store) {
    Section section{"work", "Work", {}};
    double seconds = 0;
    std::uint64_t trials = 0;
    const auto runs = store.runs();
    for (const auto& run : runs) {
        seconds += run.seconds;
        trials += run.trials;
    }
    section.scalars.push_back(
        {"sessions", "Sessions", std::uint64_t{runs.size()}, Show::count, ""});
    section.scalars.push_back(
        {"seconds", "Time", seconds, Show::seconds,
         seconds > 0 ? fmt::format("{:.4g} trials/s", static_cast<double>(trials) / seconds) : ""});
    const auto audits = store.audits();
    const auto differences = std::count_if(audits.begin(), audits.end(),
                                           [](const AuditRecord& audit) { return !audit.same; });
    section.scalars.push_back({"audits", "Audited by brute force", std::uint64_t{audits.size()},
                               Show::count,
                               audits.empty() ? "" : fmt::format("{} differ", differences)});
    return section;
}

std::vector<Scalar> context_of(const CampaignStore& store) {
    const auto& header = store.header();
    std::vector<Scalar> context;
    const auto add = [&](const char* key, const char* title, Cell value) {
        context.push_back({key, title, std::move(value), Show::plain, ""});
    };
    add("store", "Store", store.path().string());
    add("campaign_hash", "Campaign", header.hash);
    add("model", "Model", header.model);
    add("model_sha256", "Model SHA-256", header.model_sha256);
    add("data", "Data", header.data.empty() ? Cell::unavailable("no data") : Cell(header.data));
    add("engine", "Engine", fmt::format("{} {}", header.engine, header.engine_version));
    add("view", "View", header.view);
    add("threads", "Threads", header.threads);
    add("seed", "Seed", header.seed);
    for (const auto& [key, value] : header.context) {
        context.push_back({key, key, value, Show::plain, ""});
    }
    return context;
}

void check(const InjectReportOptions& options) {
    static const std::vector<std::string> known{"target", "layer", "bit"};
    for (const auto& by : options.by) {
        if (std::find(known.begin(), known.end(), by) == known.end()) {
            const auto guess = did_you_mean(by, known);
            throw Error(
                Fault::usage, fmt::format("rates cannot be shown by '{}'", by),
                fmt::format("{}{}by target, layer or bit", guess, guess.empty() ? "" : " "));
        }
    }
    if (!(options.confidence > 0 && options.confidence < 1)) {
        throw Error(Fault::usage, "a confidence lies between 0 and 1", "0.95 is usual");
    }
    if (!(options.margin > 0 && options.margin < 1)) {
        throw Error(Fault::usage, "a margin lies between 0 and 1", "0.01 is ± 1 point");
    }
}

void add_warnings(Report& report, const CampaignStore& store, const Tally& tally) {
    if (store.header().finished.empty()) {
        std::uint64_t planned = 0;
        for (const auto& stratum : tally.strata) {
            planned += stratum.planned;
        }
        report.warnings.push_back(
            planned > 0 ? fmt::format("the campaign is not finished: {} of {} trials are there",
                                      tally.trials.size(), planned)
                        : "the campaign is not finished");
    }
    for (const auto& audit : store.audits()) {
        if (!audit.same) {
            report.warnings.push_back(
                fmt::format("trial {}, input {} gave another result by brute force: {}",
                            audit.trial, audit.input, audit.difference));
            report.verdict = false;
        }
    }
}

}  // namespace

Report inject_report(const CampaignStore& store, const InjectReportOptions& options) {
    check(options);
    const auto all = tally(store);
    Report report;
    report.tool = "inject report";
    report.context = context_of(store);
    report.sections.push_back(sample_section(store.header(), all, options));
    report.tables.push_back(outcome_table(all, options));
    report.sections.push_back(definitions());
    report.sections.push_back(accuracy_section(all, options));
    report.order = {"sample", "outcomes", "definitions", "accuracy"};
    if (!all.metrics.empty()) {
        report.tables.push_back(metric_table(all, "", {{"", everything(all)}}, options));
        report.order.emplace_back("metrics");
    }
    for (const auto& by : options.by) {
        const auto groups = by == "target"  ? by_target(all)
                            : by == "layer" ? by_layer(all)
                                            : by_bit(all);
        report.tables.push_back(group_table(all, by, groups, options));
        report.order.push_back("by_" + by);
        if (!all.metrics.empty()) {
            report.tables.push_back(metric_table(all, by, groups, options));
            report.order.push_back("metrics_by_" + by);
        }
    }
    if (auto table = worst_table(store, all, options.worst); !table.rows.empty()) {
        report.tables.push_back(std::move(table));
    }
    report.sections.push_back(work_section(store));
    report.order.insert(report.order.end(), {"worst", "work"});
    for (auto& claim : claims(all, options)) {
        report.notes.push_back(std::move(claim));
    }
    add_warnings(report, store, all);
    return report;
}

}  // namespace trocar
