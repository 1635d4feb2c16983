#pragma once

#include <string>
#include <vector>

#include "trocar/campaign_file.h"
#include "trocar/command.h"
#include "trocar/data.h"

namespace trocar::inject {

// What `trocar inject` takes: a model with everything else as options, or a campaign file, which
// some options may still change.
struct CampaignArguments {
    std::string subject;  // model, or campaign file
    DataArguments data;
    InputSpec inputs;
    std::string view;
    std::vector<std::string> targets;
    std::string at;
    std::string tensors;
    std::string elements;
    std::string effect;
    std::string bits;
    std::string extent;
    std::int64_t bits_at_once = 0;  // 0: not given
    bool all_readers = false;
    std::vector<std::string> faults;
    std::string faults_from;
    std::int64_t trials = 0;
    bool exhaustive = false;
    double margin = 0;
    double confidence = 0;  // 0: not given
    std::vector<std::string> per;
    std::string allocation;
    std::vector<std::string> importance;
    double stop_at = 0;
    std::int64_t together = 1;
    std::int64_t inputs_per_fault = 0;
    bool only_correct = false;
    bool nan_everywhere = false;
    std::string ranges;
    bool layers = false;
    std::string metric;
    std::string decision;
    std::string postprocess;
    double answer_limit = 0;
    std::vector<std::string> tools;
    std::vector<std::string> without;
    std::string memory;
    std::int64_t workers = 0;
    std::string audit;
    bool not_isolated = false;
    double time_limit = 0;
    std::string store;
};

void declare(Args& args, CampaignArguments& arguments);
CampaignFile campaign_of(const CampaignArguments& arguments);

}  // namespace trocar::inject
