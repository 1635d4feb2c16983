#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "tools/inject/commands.h"
#include "trocar/campaign_report.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/text.h"

namespace trocar::inject {

namespace {

struct ReportOptions {
    std::string store;
    std::vector<std::string> by;
    std::string interval = "clopper-pearson";
    double confidence = 0;  // 0: that of the campaign
    double margin = 0.05;
    std::int64_t worst = 10;
    std::string plots;
};

void write_plots(const CampaignStore& store, const InjectReportOptions& options,
                 const std::filesystem::path& folder, Report& report) {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) {
        throw Error(Fault::input, fmt::format("cannot make the folder '{}': {}", folder.string(),
                                              failure.message()));
    }
    std::vector<std::string> files;
    for (const auto& plot : inject_plots(store, options)) {
        const auto file = folder / (plot.name + ".svg");
        write_file(file, plot.svg);
        files.push_back(file.string());
    }
    const char* why_none = store.header().decision == "none" && store.result_count() > 0
                               ? "there is no SDC rate to plot"
                               : "there are no results";
    Section section{"plots", "Plots", {}};
    section.scalars.push_back({"files", "Files",
                               files.empty() ? Cell::unavailable(why_none) : Cell(std::move(files)),
                               Show::plain, ""});
    report.sections.push_back(std::move(section));
    report.order.emplace_back("plots");
}

Report run_report(const ReportOptions& options) {
    if (options.worst < 0) {
        throw Error(Fault::usage, "--worst takes a number from 0 on");
    }
    InjectReportOptions what;
    what.method = options.interval == "wilson" ? InjectReportOptions::Method::wilson
                                               : InjectReportOptions::Method::clopper_pearson;
    what.margin = options.margin;
    what.worst = static_cast<std::size_t>(options.worst);
    if (!options.by.empty()) {
        what.by.clear();
        for (const auto& words : options.by) {
            for (const auto& word : split(words, ',')) {
                what.by.push_back(word);
            }
        }
    }
    const auto store = CampaignStore::read(options.store);
    what.confidence = options.confidence != 0 ? options.confidence : campaign_confidence(store);
    auto report = inject_report(store, what);
    if (!options.plots.empty()) {
        write_plots(store, what, options.plots, report);
    }
    return report;
}

std::function<Report(Context&)> bind_report(Args& args) {
    const auto options = std::make_shared<ReportOptions>();
    args.positional(options->store, "STORE", "Store of a campaign; it may be running still");
    args.option("--by", options->by, "WHAT",
                "Rates by target, layer or bit; several with commas; when not given, all of them");
    args.choice("--interval", options->interval, "clopper-pearson|wilson",
                "Interval of simple samples: Clopper and Pearson's covers at least the confidence "
                "at every rate, Wilson's on average");
    args.option("--confidence", options->confidence, "SHARE",
                "Confidence of the intervals (default: that of the campaign)");
    args.option("--margin", options->margin, "SHARE",
                "± of a claim worth making, for what may be claimed; 0.01 is a point");
    args.option("--worst", options->worst, "N", "Faults to name that did most harm");
    args.option("--plots", options->plots, "DIR",
                "Write plots as SVG files: rates by layer and bit, by layer with intervals, and "
                "accuracy by bit-error rate");
    args.example("trocar inject report run.db", "rates with intervals, and what they mean");
    args.example("trocar inject report run.db --by layer,bit --plots plots --report run.md",
                 "for a paper");
    return [options](Context&) { return run_report(*options); };
}

}  // namespace

extern const Command report_command{
    .name = "report",
    .summary = "Say what a campaign found: rates with intervals by layer, bit and target",
    .bind = bind_report,
};

}  // namespace trocar::inject
