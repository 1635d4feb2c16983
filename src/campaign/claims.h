#pragma once

#include <string>
#include <vector>

#include "campaign/tally.h"

namespace trocar::campaign {

// How the sample was drawn: seed, N, n, inputs, interval.
Section sample_section(const CampaignHeader& header, const Tally& tally,
                       const InjectReportOptions& options);

// What the sample is large enough to say, and what it does not say; a sentence each.
std::vector<std::string> claims(const Tally& tally, const InjectReportOptions& options);

}  // namespace trocar::campaign
