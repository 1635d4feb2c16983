#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trocar/campaign_report.h"
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
    std::array<std::uint32_t, static_cast<std::size_t>(Count::size)> counts{};

    std::uint32_t operator[](Count what) const { return counts[static_cast<std::size_t>(what)]; }
};

struct Tally {
    std::vector<Stratum> strata;
    std::vector<TrialTally> trials;    // in order
    std::vector<std::string> targets;  // in order of the strata, then of appearance
    std::vector<std::string> layers;
    std::map<std::uint32_t, std::uint64_t> drawn;  // trials by stratum
    std::uint64_t inputs = 0;                      // that some trial was run with
    // The user's metrics: by name, what each trial adds up to.
    struct Sum {
        std::uint64_t trial = 0;
        std::uint64_t results = 0;
        double sum = 0;
    };
    std::map<std::string, std::vector<Sum>> metrics;  // in the order of trials

    std::uint64_t total(Count what) const;
};

Tally tally(const CampaignStore& store);

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
