#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trocar/campaign_store.h"
#include "trocar/report.h"

namespace trocar {

struct InjectReportOptions {
    enum class Method { wilson, clopper_pearson };  // see trocar/intervals.h
    Method method = Method::wilson;
    double confidence = 0.95;
    double margin = 0.05;  // ± of a claim worth making, for "what may be claimed"
    std::vector<std::string> by = {"target", "layer", "bit"};
    std::size_t worst = 10;  // faults to name
};

// What a campaign says: outcomes with their definitions, rates with intervals, accuracy, detection,
// the worst faults, and what may be claimed. Its verdict is "no" when an audit found a difference.
// Throws Error(usage) on options that make no sense.
Report inject_report(const CampaignStore& store, const InjectReportOptions& options = {});

struct Plot {
    std::string name;  // "layers_and_bits": of a file, without suffix
    std::string svg;
};
// Those that the campaign has something to show in: rate of SDC by layer and bit, by layer with
// intervals, accuracy by bit-error rate.
std::vector<Plot> inject_plots(const CampaignStore& store, const InjectReportOptions& options = {});

}  // namespace trocar
