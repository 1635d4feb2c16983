#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trocar/campaign_file.h"
#include "trocar/campaign_store.h"
#include "trocar/command.h"
#include "trocar/data.h"
#include "trocar/inject.h"

namespace trocar::inject {

// A campaign with all that it needs to run.
struct Prepared {
    CampaignFile file;
    std::unique_ptr<Model> model;  // stays where it is: others refer to it
    EngineOptions engine_options;  // of the command line; the file may name another engine
    std::shared_ptr<Engine> engine;
    std::unique_ptr<Dataset> data;  // nullptr: inputs as --input and --fill say
    CampaignInputs inputs;
    CampaignOptions options;
    CampaignHeader header;
    std::vector<std::string> notes;
};

// Loads the model and finds the data. `file` is complete: what the command line said is in it.
Prepared prepare(CampaignFile file, Context& context);
// The same with the model loaded; `file` has its seed. `threads`: workers, where it says none.
Prepared prepare(CampaignFile file, std::unique_ptr<Model> model,
                 const EngineOptions& engine_options, int threads);

// How another process prepares the same campaign, with the options as they are now.
CampaignRecipe recipe_of(const Prepared& prepared);

// `text` as --model takes it: bitflip, stuck0, zero, "set 1.5", "noise 0.1", "rate 1e-6"…
Effect parse_effect(const std::string& text);

}  // namespace trocar::inject
