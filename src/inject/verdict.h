#pragma once

#include <vector>

#include "inject/lane.h"
#include "trocar/inject.h"

namespace trocar::inject {

// The decisions that outputs stand for: along the last axis of the first output that has numbers.
struct Decision {
    std::vector<std::int64_t> tops;               // first choices; -1: none, for NaN
    std::vector<std::vector<std::int64_t>> five;  // the first five of each
    std::vector<double> scores;                   // of the first choices
};
Decision decide(const std::vector<NamedValue>& outputs);

// What a run with faults did, from its outputs and what was seen on the way. `same` says that all
// outputs have their golden bits.
TrialResult judge(const std::vector<NamedValue>& golden, const Decision& decision,
                  const std::vector<NamedValue>& faulty, bool same, const Lane& lane,
                  const CampaignInput& input, const Metric& metric);

}  // namespace trocar::inject
