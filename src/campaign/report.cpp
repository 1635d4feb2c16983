#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "campaign/claims.h"
#include "campaign/measures.h"
#include "campaign/tally.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

using namespace campaign;

Cell number(double value, const char* why) {
    return std::isnan(value) ? Cell::unavailable(why) : Cell(value);
}

void add_rate(std::vector<Cell>& cells, const RateEstimate& estimate, const char* why) {
    const bool exact = std::isinf(estimate.effective);
    const bool none = std::isnan(estimate.rate) || exact;
    cells.push_back(number(estimate.rate, why));
    why = exact ? "every fault was tried" : why;
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
    for (const auto& measure : measures_of(tally)) {
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
        "of Crash to Masked that holds";
    table.note += tally.decision.kind == Decision::Kind::scores
                      ? "; SDC-5 to SDC-20 % are counted besides."
                      : ".";
    return table;
}

Section definitions(const Tally& tally) {
    Section section{"definitions", "Definitions", {}};
    for (const auto& measure : measures_of(tally)) {
        section.scalars.push_back({measure.key, measure.title, measure.meaning, Show::plain, ""});
    }
    return section;
}

std::string range_text(const RateEstimate& estimate, double confidence) {
    return std::isnan(estimate.rate) ? std::string()
           : std::isinf(estimate.effective)
               ? std::string("exact: every fault was tried")
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
    const char* unlabelled =
        has_positions(tally) || tally.decision.kind == Decision::Kind::error || !has_sdc(tally)
            ? "the decision gives no class for each input to compare a label with"
            : "the data has no labels";
    const double golden = add("golden_accuracy", "Golden accuracy", Count::golden_correct,
                              Count::labelled, unlabelled);
    section.scalars.back().note.clear();  // known, not estimated
    const double faulty = add("faulty_accuracy", "Accuracy with faults", Count::faulty_correct,
                              Count::labelled, unlabelled);
    section.scalars.push_back({"accuracy_loss", "Lost", number(golden - faulty, unlabelled),
                               Show::percent, "of all labelled results"});
    if (!tally.monitored) {
        section.scalars.push_back({"detection_rate", "Detected",
                                   Cell::unavailable("ranges were not monitored"), Show::percent,
                                   ""});
        return section;
    }
    add("detection_rate", "Detected", Count::harmful_detected, Count::harmful,
        "no result is harmful");
    section.scalars.back().note =
        fmt::format("of Crash to {}: ", has_sdc(tally) ? sdc_title(tally) : "DUE") +
        section.scalars.back().note;
    add("false_alarm_rate", "False alarms", Count::false_alarms, Count::harmless,
        "no result is benign or masked");
    section.scalars.back().note =
        (has_sdc(tally) ? "of Benign and Masked: " : "of Changed and Masked: ") +
        section.scalars.back().note;
    return section;
}

// Positions that were decided, in tokens, pixels or boxes, and how many of them otherwise.
Section positions_section(const Tally& tally, const InjectReportOptions& options) {
    Section section{"positions", "Positions", {}};
    section.scalars.push_back({"positions", "Decided", tally.total(Count::positions), Show::count,
                               "in all results that have outputs"});
    section.scalars.push_back(
        {"changed", "Decided otherwise", tally.total(Count::changed), Show::count, ""});
    const auto estimate = rate(tally, everything(tally), Count::changed, Count::positions, options);
    section.scalars.push_back({"changed_rate", "Share", number(estimate.rate, "no positions"),
                               Show::percent, range_text(estimate, options.confidence)});
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
    struct Shown {
        const char* key;
        std::string title;
        Count what;
        Count of;
        int optional;
    };
    std::vector<Shown> shown;
    if (has_sdc(tally)) {
        shown.push_back({"sdc", sdc_title(tally), Count::sdc, Count::results, 0});
    } else {
        shown.push_back({"benign", "Changed", Count::benign, Count::results, 0});
    }
    if (has_positions(tally)) {
        shown.push_back({"changed", "Positions", Count::changed, Count::positions, 1});
    }
    shown.push_back({"due", "DUE", Count::due, Count::results, 1});
    shown.push_back({"masked", "Masked", Count::masked, Count::results, 2});
    for (const auto& one : shown) {
        for (auto& column : rate_columns(one.key, one.title, one.optional)) {
            table.columns.push_back(std::move(column));
        }
    }
    for (const auto& [name, group, place] : groups) {
        Row row;
        const auto drawn_from = population(tally, group);
        row.cells = {
            Cell(name), Cell(std::uint64_t{group.size()}),
            drawn_from ? Cell(*drawn_from) : Cell::unavailable("not a stratum of the campaign"),
            Cell(total(group, Count::results))};
        for (const auto& one : shown) {
            add_rate(row.cells, rate(tally, group, one.what, one.of, options), "no results");
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
            const bool all = is_exact(tally, group);
            const bool several = std::isfinite(estimate.interval.low) && !all;
            const char* why = all ? "every fault was tried" : "one trial says nothing of others";
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
        return static_cast<double>((*trial)[Count::harmful]) /
               static_cast<double>((*trial)[Count::results]);
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
                     {.key = "sdc", .title = sdc_title(tally), .show = Show::count, .optional = 1},
                     {.key = "max_abs", .title = "Max abs", .optional = 3}};
    if (!has_sdc(tally)) {
        std::erase_if(table.columns, [](const Column& column) { return column.key == "sdc"; });
    }
    for (std::size_t i = 0; i < most; ++i) {
        const auto& trial = *trials[i];
        const auto fault = store.fault(trial.trial);
        const auto count = [&](Count what) { return Cell(std::uint64_t{trial[what]}); };
        table.rows.push_back(
            {.cells = {Cell(trial.trial),
                       fault ? Cell(fault->text) : Cell::unavailable("not in the store"),
                       count(Count::harmful), count(Count::results), count(Count::crash),
                       count(Count::hang), count(Count::failed), count(Count::due)}});
        if (has_sdc(tally)) {
            table.rows.back().cells.push_back(count(Count::sdc));
        }
        table.rows.back().cells.emplace_back(double{trial.max_abs});
    }
    table.note = "`trocar inject replay STORE --fault TRIAL` runs one of them again";
    return table;
}

Section work_section(const CampaignStore& store) {
    Section section{"work", "Work", {}};
    double seconds = 0;
    std::uint64_t results = 0;
    const auto runs = store.runs();
    for (const auto& run : runs) {
        seconds += run.seconds;
        results += run.results;
    }
    section.scalars.push_back(
        {"sessions", "Sessions", std::uint64_t{runs.size()}, Show::count, ""});
    section.scalars.push_back(
        {"seconds", "Time", seconds, Show::seconds,
         seconds > 0 ? fmt::format("{:.4g} runs/s", static_cast<double>(results) / seconds) : ""});
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
    if (!header.decision.empty()) {
        add("decision", "Decision", header.decision);
    }
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
    const auto& extent = tally.extent;
    const auto counting = [&] {
        return fmt::format("{} of {} trials", tally.trials.size(), extent.planned);
    };
    if (extent.reached) {
        report.notes.push_back(
            fmt::format("The campaign stopped early, after {}: it reached its goal{}.", counting(),
                        tally.goal > 0 ? fmt::format(", the SDC rate to ± {:g}", tally.goal) : ""));
    } else if (!extent.complete) {
        report.unfinished = true;
        report.warnings.push_back(
            extent.planned == 0 ? "the campaign is not finished"
            : tally.trials.empty()
                ? fmt::format("the campaign is not finished: no block of its {} trials is complete",
                              extent.planned)
                : fmt::format("the campaign is not finished: rates are those of {}, the complete "
                              "blocks",
                              counting()));
    }
    if (extent.left_out > 0) {
        report.warnings.push_back(fmt::format(
            "{} left out of all rates: {} in blocks that are not complete, and say nothing of "
            "other faults",
            extent.left_out == 1 ? "1 trial is" : fmt::format("{} trials are", extent.left_out),
            extent.left_out == 1 ? "it is" : "they are"));
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

double campaign_confidence(const CampaignStore& store) {
    const auto campaign = described(store.header());
    return campaign ? campaign->confidence : InjectReportOptions{}.confidence;
}

RateEstimate sdc_rate(const CampaignStore& store, double confidence, std::uint64_t blocks) {
    const auto all = tally(store, blocks);
    InjectReportOptions options;
    options.confidence = confidence;
    return rate(all, everything(all), Count::sdc, Count::results, options);
}

Report inject_report(const CampaignStore& store, const InjectReportOptions& options) {
    check(options);
    const auto all = tally(store);
    Report report;
    report.tool = "inject report";
    report.context = context_of(store);
    for (const auto& [key, value] : store.header().context) {
        if (key == "whole_run") {
            report.notes.push_back(value);
        }
    }
    report.sections.push_back(sample_section(store.header(), all, options));
    report.tables.push_back(outcome_table(all, options));
    report.sections.push_back(definitions(all));
    report.sections.push_back(accuracy_section(all, options));
    report.order = {"sample", "outcomes", "definitions", "accuracy"};
    if (has_positions(all)) {
        report.sections.push_back(positions_section(all, options));
        report.order.insert(report.order.begin() + 2, "positions");
    }
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
