#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trocar/campaign.h"
#include "trocar/decision.h"
#include "trocar/inputs.h"
#include "trocar/tool.h"

#pragma GCC visibility push(default)
namespace trocar {

// A campaign as a YAML file says it; docs/inject-campaign.md explains the keys, and
// `campaign_schema` has them for editors. Paths are as in the file; `read_campaign` makes them
// stand from the folder of the file.
struct CampaignFile {
    std::string model;
    std::string engine;        // NAME[:PATH][,KEY=VALUE…]; empty: the default
    int threads = 0;           // 0: one per core
    std::optional<View> view;  // none: deployed where the engine has that view, else source
    std::optional<std::uint64_t> seed;

    struct Data {
        std::string path;
        std::string kind;    // "images", "arrays", "idx"…; empty: found out
        std::string labels;  // where they are not beside the data
        std::string split;   // "test", "train"
        std::uint64_t offset = 0;
        std::optional<std::uint64_t> limit;
        // Steps by their keys, in the order in which they are taken: ("resize", "256"), ("mean",
        // "0.485,0.456,0.406").
        std::vector<std::pair<std::string, std::string>> preprocess;
    };
    std::optional<Data> data;
    InputSpec inputs;  // where there is no data

    std::vector<Population> populations;
    std::vector<std::vector<ModelFault>> list;  // given trials
    std::vector<std::string> files;             // with a trial on each line

    std::optional<std::uint64_t> trials;  // none: exhaustive, or as many as `margin` needs
    bool exhaustive = false;
    std::optional<double> margin;  // ± of the rate
    double confidence = 0.95;      // of that, and of all intervals of the campaign
    bool by_layer = false;         // strata
    bool by_bit = false;
    bool by_target = false;
    Allocation allocation = Allocation::proportional;
    std::vector<Importance> importance;
    std::optional<double> stop_at;  // half-width of the interval of the SDC rate
    int faults_per_trial = 1;
    std::uint64_t inputs_per_fault = 0;  // 0: all
    bool only_correct = false;

    bool nan_everywhere = false;
    Ranges ranges = Ranges::off;
    double range_margin = 0;
    Decision decision;
    std::string postprocess;  // commands; empty: none
    std::string metric;
    std::optional<double> answer_limit;  // seconds that these may take
    std::vector<std::string> tools;      // libraries that do the same: PATH[,key=value…]
    bool layer_effects = false;

    Accelerate accelerate;
    std::uint64_t memory = std::uint64_t{2} << 30;  // bytes
    int workers = 0;                                // 0: one per thread
    double audit = 0;                               // share
    bool isolate = true;                            // runs in a child process
    std::optional<double> time_limit;               // seconds of a trial there
    std::string store;
};

// Throws Error(input) that names file, line and key: unknown and repeated keys with what may have
// been meant, values of another kind, numbers out of range, keys that contradict one another.
// `name` stands for the file in messages. Opens no file.
CampaignFile parse_campaign(std::string_view text, const std::string& name);
// What holds for all campaigns, wherever they are written. Throws Error(usage) on what contradicts
// itself. `parse_campaign` has asked it.
void check_campaign(const CampaignFile& campaign);
// The same of a file; the faults of `files` are in `list` then.
CampaignFile read_campaign(const std::filesystem::path& path);

// The whole campaign as YAML that reads back as the same.
std::string campaign_text(const CampaignFile& campaign);
// What its results depend on, apart from model, data and engine, which stores know by their hashes
// and versions: the same text for the same campaign, however its file is written.
std::string canonical_text(const CampaignFile& campaign);

// JSON Schema of campaign files.
std::string campaign_schema();

}  // namespace trocar
#pragma GCC visibility pop
