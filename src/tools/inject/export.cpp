#include <memory>

#include "tools/inject/commands.h"
#include "trocar/campaign_store.h"

namespace trocar::inject {

namespace {

struct ExportOptions {
    std::string store;
    std::string output;
    std::string table = "trials";
};

Report run_export(const ExportOptions& options) {
    const auto store = CampaignStore::read(options.store);
    store.export_to(options.output, options.table);
    Report report;
    report.tool = "inject export";
    report.context = {{"store", "Store", options.store, Show::plain, ""}};
    Section section{"exported", "", {}};
    section.scalars = {{"file", "Written", options.output, Show::plain, ""},
                       {"table", "Table", options.table, Show::plain, ""}};
    report.sections.push_back(std::move(section));
    return report;
}

std::function<Report(Context&)> bind_export(Args& args) {
    const auto options = std::make_shared<ExportOptions>();
    args.positional(options->store, "STORE", "Store of a campaign");
    args.option("-o,--output", options->output, "FILE",
                "File to write; its suffix says how: .csv or .json");
    args.require("--output");
    args.option("--table", options->table, "NAME",
                "Table or view to write, such as results, faults, golden, rates_by_layer; "
                "everything writes all tables (.json)");
    args.example("trocar inject export run.db -o trials.csv",
                 "every result with its fault, a row each");
    args.example("trocar inject export run.db -o run.json --table everything", "all there is");
    return [options](Context&) { return run_export(*options); };
}

}  // namespace

extern const Command export_command{
    .name = "export",
    .summary = "Write the results of a campaign as CSV or JSON",
    .bind = bind_export,
};

}  // namespace trocar::inject
