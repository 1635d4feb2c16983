#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trocar/campaign_file.h"
#include "trocar/campaign_report.h"
#include "trocar/decision.h"
#include "trocar/intervals.h"

namespace trocar::campaign {

// What is counted of the results of one trial.
enum class Count {
    results,
    crash,
    hang,
    failed,
    due,
    sdc,
    benign,
    masked,
    sdc5,
    sdc10,
    sdc20,
    harmful,           // crash, hang, failed, due or sdc
    harmful_detected,  // of them
    harmless,
    false_alarms,  // of them
    labelled,
    golden_correct,
    faulty_correct,
    positions,  // that were decided
    changed,    // of them
    size,
};

// One fault with all inputs that were run with it.
struct TrialTally {
    std::uint64_t trial = 0;
    std::uint32_t stratum = 0;
    float weight = 1;
    std::uint32_t target = 0;  // places in the names of the tally
    std::uint32_t layer = 0;
    std::int32_t bit = -1;
    float rate = 0;  // bit-error rate; NaN: none
    float max_abs = 0;
    std::array<std::uint64_t, static_cast<std::size_t>(Count::size)> counts{};

    std::uint64_t operator[](Count what) const { return counts[static_cast<std::size_t>(what)]; }
};

// How far the campaign is. Trials count by whole blocks, for these are samples of all faults; the
// trials of others are left out.
struct Extent {
    std::uint64_t planned = 0;   // trials of the campaign
    std::uint64_t left_out = 0;  // trials with results, in blocks that are not complete
    bool complete = true;        // all that are planned are there
    bool reached = false;        // … are not, for those that are there were enough
};

struct Tally {
    std::vector<Stratum> strata;
    std::vector<TrialTally> trials;    // in order
    std::vector<std::string> targets;  // in order of the strata, then of appearance
    std::vector<std::string> layers;
    std::map<std::uint32_t, std::uint64_t> drawn;  // trials by stratum
    std::uint64_t inputs = 0;                      // that some trial was run with
    Decision decision{Decision::Kind::scores};
    std::string decision_meaning;      // empty: of an older store
    std::uint64_t most_positions = 0;  // that were decided in a result
    Extent extent;
    // Trials of a stratum were drawn without replacement, and run with all inputs: when all of them
    // were tried, nothing is left to estimate.
    bool finite = true;
    bool monitored = true;  // ranges of tensors were watched
    double goal = 0;        // ± of the SDC rate at which the campaign stops; 0: none
    // The user's metrics: by name, what each trial adds up to.
    struct Sum {
        std::uint64_t trial = 0;
        std::uint64_t results = 0;
        double sum = 0;
    };
    std::map<std::string, std::vector<Sum>> metrics;  // in the order of trials

    std::uint64_t total(Count what) const;
};

// Of all blocks that are complete; of the first `blocks` of all at most.
Tally tally(const CampaignStore& store,
            std::uint64_t blocks = std::numeric_limits<std::uint64_t>::max());

// Leaves the trials out of `tally` that are in other blocks, and says how far the campaign is.
// `inputs`: those with results, where the store does not know how many there are.
void keep_whole_blocks(const CampaignStore& store, std::uint64_t blocks, std::uint64_t inputs,
                       Tally& tally);

// The campaign as its store describes it; nothing where the store does not, or not in words that
// this version knows.
std::optional<CampaignFile> described(const CampaignHeader& header);

// Some of the trials, for which rates are asked.
using Group = std::vector<const TrialTally*>;
Group everything(const Tally& tally);
// By a property of the trial: groups in ascending order of it.
struct Named {
    std::string name;
    Group group;
    std::int64_t key = 0;
};
std::vector<Named> by_target(const Tally& tally);
std::vector<Named> by_layer(const Tally& tally);
std::vector<Named> by_bit(const Tally& tally);

// Faults there are to draw from in these strata; nothing where a part of a stratum is in the group.
std::optional<std::uint64_t> population(const Tally& tally, const Group& group);

// Was every fault tried that the group stands for? Then there is nothing to estimate.
bool is_exact(const Tally& tally, const Group& group);

// Share of `of` that are `what`, in the population that the group stands for.
RateEstimate rate(const Tally& tally, const Group& group, Count what, Count of,
                  const InjectReportOptions& options);

// The mean of a metric in the population that the group stands for, with its interval.
struct MeanEstimate {
    std::uint64_t results = 0;
    double mean = 0;  // NaN: there are no numbers
    Interval interval;
};
MeanEstimate mean(const Tally& tally, const Group& group, const std::string& metric,
                  const InjectReportOptions& options);

// Notes that all of the rates have in common; what method the intervals are by.
std::string method_text(const Tally& tally, const InjectReportOptions& options);
bool clustered(const Group& group);

}  // namespace trocar::campaign
