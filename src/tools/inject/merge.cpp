#include <memory>

#include "tools/inject/commands.h"
#include "trocar/campaign_store.h"

namespace trocar::inject {

namespace {

struct MergeOptions {
    std::vector<std::string> shards;
    std::string store;
};

Report run_merge(const MergeOptions& options) {
    const std::vector<std::filesystem::path> shards(options.shards.begin(), options.shards.end());
    const auto all = merge(shards, options.store);
    Report report;
    report.tool = "inject merge";
    Section section{"merged", "Merged", {}};
    section.scalars = {
        {"store", "Store", all.path().string(), Show::plain, ""},
        {"shards", "Shards", std::uint64_t{shards.size()}, Show::count, ""},
        {"trials", "Trials", all.trial_count(), Show::count, ""},
        {"results", "Results", all.result_count(), Show::count, ""},
        {"digest", "Digest", all.digest(), Show::plain,
         "the same for the same results, however they were come by"},
    };
    report.sections.push_back(std::move(section));
    return report;
}

std::function<Report(Context&)> bind_merge(Args& args) {
    const auto options = std::make_shared<MergeOptions>();
    args.positionals(options->shards, "SHARD", "Stores of shards of the same campaign");
    args.option("--store", options->store, "FILE", "The store to make of them");
    args.require("--store");
    args.example("trocar inject merge shard*.db --store all.db",
                 "one store of all; results that are in several must be the same");
    return [options](Context&) { return run_merge(*options); };
}

}  // namespace

extern const Command merge_command{
    .name = "merge",
    .summary = "Make one store of the shards of a campaign",
    .bind = bind_merge,
};

}  // namespace trocar::inject
