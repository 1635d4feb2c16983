#pragma once

#include <vector>

#include "inject/decision.h"
#include "inject/lane.h"
#include "trocar/inject.h"

namespace trocar::inject {

// Is the golden decision the label of the input? Nothing where there is no label, or no single
// class to compare it with.
std::optional<bool> is_correct(const Rule& rule, const Choices& choices,
                               const CampaignInput& input);

// What a run with faults did, from its outputs and what was seen on the way. `same` says that all
// outputs have their golden bits.
TrialResult judge(const std::vector<NamedValue>& golden, const Rule& rule, const Choices& choices,
                  const std::vector<NamedValue>& faulty, bool same, const Lane& lane,
                  const CampaignInput& input, const Metric& metric);

}  // namespace trocar::inject
