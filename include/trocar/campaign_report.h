#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "trocar/campaign_store.h"
#include "trocar/intervals.h"
#include "trocar/report.h"

#pragma GCC visibility push(default)
namespace trocar {

struct InjectReportOptions {
    // Of simple samples: one stratum, one input, equal chances; see trocar/intervals.h.
    enum class Method { wilson, clopper_pearson };
    Method method = Method::clopper_pearson;
    double confidence = 0.95;
    double margin = 0.05;  // ± of a claim worth making, for "what may be claimed"
    std::vector<std::string> by = {"target", "layer", "bit"};
    std::size_t worst = 10;  // faults to name
};

// What a campaign says: outcomes with their definitions, rates with intervals, accuracy, detection,
// the worst faults, and what may be claimed. Its verdict is "no" when an audit found a difference.
// Throws Error(usage) on options that make no sense.
Report inject_report(const CampaignStore& store, const InjectReportOptions& options = {});

// The confidence that the campaign was run with; 0.95 where its store does not have it.
double campaign_confidence(const CampaignStore& store);

// The SDC rate of all faults, from the first `blocks` blocks of trials that are complete.
RateEstimate sdc_rate(const CampaignStore& store, double confidence,
                      std::uint64_t blocks = std::numeric_limits<std::uint64_t>::max());

struct Plot {
    std::string name;  // "layers_and_bits": of a file, without suffix
    std::string svg;
};
// Those that the campaign has something to show in: rate of SDC by layer and bit, by layer with
// intervals, accuracy by bit-error rate.
std::vector<Plot> inject_plots(const CampaignStore& store, const InjectReportOptions& options = {});

}  // namespace trocar
#pragma GCC visibility pop
