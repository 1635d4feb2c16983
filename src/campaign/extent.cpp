// Which trials of a store count: those of blocks that are complete.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>

#include "campaign/tally.h"
#include "campaign/trial_blocks.h"
#include "trocar/error.h"

namespace trocar::campaign {

namespace {

const std::string* context(const CampaignHeader& header, std::string_view key) {
    const auto found = std::find_if(header.context.begin(), header.context.end(),
                                    [&](const Property& property) { return property.key == key; });
    return found == header.context.end() ? nullptr : &found->value;
}

// With how many results a trial is complete.
class Expected {
public:
    Expected(const CampaignStore& store, const std::optional<CampaignFile>& campaign,
             std::uint64_t inputs)
        : seed_(store.header().seed), inputs_(inputs) {
        if (!campaign) {
            each_ = inputs_;
            return;
        }
        each_ = campaign->inputs_per_fault == 0 ? inputs_
                                                : std::min(campaign->inputs_per_fault, inputs_);
        if (campaign->only_correct) {
            store.each_golden([&](const GoldenInput& golden) {
                if (golden.correct && !*golden.correct) {
                    without_.insert(golden.input);
                }
                return true;
            });
        }
    }
    bool all_inputs() const { return each_ == inputs_; }
    std::uint64_t results(std::uint64_t trial) const {
        if (without_.empty() || all_inputs()) {
            return each_ - without_.size();
        }
        const auto chosen = drawn_inputs(seed_, trial, each_, inputs_);
        return static_cast<std::uint64_t>(
            std::count_if(chosen.begin(), chosen.end(),
                          [&](std::uint64_t input) { return !without_.contains(input); }));
    }

private:
    std::uint64_t seed_;
    std::uint64_t inputs_;
    std::uint64_t each_ = 0;
    std::set<std::uint64_t> without_;  // inputs that are left out
};

// The shards that sessions worked on.
using Shards = std::set<std::pair<std::uint64_t, std::uint64_t>>;

Shards shards_of(const CampaignStore& store) {
    Shards shards;
    for (const auto& run : store.runs()) {
        shards.emplace(run.shard, run.shards);
    }
    return shards.empty() ? Shards{{0, 1}} : shards;
}

bool all_there(const Shards& shards) {
    std::map<std::uint64_t, std::uint64_t> parts;
    return std::any_of(shards.begin(), shards.end(),
                       [&](const auto& shard) { return ++parts[shard.second] == shard.second; });
}

}  // namespace

std::optional<CampaignFile> described(const CampaignHeader& header) {
    const auto* whole = context(header, "campaign_file");
    try {
        return parse_campaign(whole != nullptr ? *whole : header.campaign, "the store");
    } catch (const Error&) {
        return std::nullopt;  // of a test, or of another version
    }
}

void keep_whole_blocks(const CampaignStore& store, std::uint64_t most, std::uint64_t inputs,
                       Tally& tally) {
    const auto& header = store.header();
    const auto campaign = described(header);
    const auto* known = context(header, "inputs");
    if (known != nullptr) {
        std::from_chars(known->data(), known->data() + known->size(), inputs);
    }
    const Expected expected(store, campaign, inputs);
    tally.finite = expected.all_inputs() && (!campaign || campaign->faults_per_trial == 1);
    tally.monitored = !campaign || campaign->ranges != Ranges::off;
    tally.goal = campaign ? campaign->stop_at.value_or(0) : 0;
    const TrialBlocks blocks(tally.strata);
    auto& extent = tally.extent;
    extent.planned = blocks.trials();
    if (blocks.count() == 0 || (known == nullptr && !header.finished.empty())) {
        extent.complete = !header.finished.empty();
        return;  // nothing is known of blocks
    }
    const auto shards = shards_of(store);
    const auto there = [&](std::uint64_t number) {
        return std::any_of(shards.begin(), shards.end(),
                           [&](const auto& shard) { return number % shard.second == shard.first; });
    };
    const auto results = [&](std::uint64_t number) -> std::uint64_t {
        const auto at = std::lower_bound(
            tally.trials.begin(), tally.trials.end(), number,
            [](const TrialTally& trial, std::uint64_t n) { return trial.trial < n; });
        return at != tally.trials.end() && at->trial == number ? (*at)[Count::results] : 0;
    };
    std::set<std::uint64_t> out;
    bool complete = true;
    for (std::uint64_t block = 0; block < blocks.count(); ++block) {
        const auto numbers = blocks.numbers(block);
        const bool whole = std::all_of(numbers.begin(), numbers.end(), [&](std::uint64_t number) {
            const bool mine = there(number);
            complete = complete && mine;
            return !mine || results(number) >= expected.results(number);
        });
        complete = complete && whole;
        if (!whole || block >= most) {
            std::copy_if(numbers.begin(), numbers.end(), std::inserter(out, out.end()),
                         [&](std::uint64_t number) { return results(number) > 0; });
        }
    }
    extent.complete = complete;
    extent.reached = !complete && !header.finished.empty() && all_there(shards);
    const auto before = tally.trials.size();
    std::erase_if(tally.trials, [&](const TrialTally& trial) { return out.contains(trial.trial); });
    extent.left_out = before - tally.trials.size();
}

}  // namespace trocar::campaign
