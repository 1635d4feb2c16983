#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trocar/campaign.h"
#include "trocar/decision.h"
#include "trocar/engine.h"
#include "trocar/model.h"

#pragma GCC visibility push(default)
namespace trocar {

// One input to try the faults with.
struct CampaignInput {
    std::vector<NamedValue> values;
    std::optional<std::int64_t> label = std::nullopt;
    std::string name = {};
};
// Where inputs come from: input `i` of `count`. Called once for each input, in any order, from one
// thread at a time.
struct CampaignInputs {
    std::uint64_t count = 0;
    std::function<CampaignInput(std::uint64_t)> get;
};

// Which faults are tried.
struct Sampling {
    std::uint64_t trials = 1000;  // of all strata together; 0 with `exhaustive`
    // Above 0: as many trials as a rate needs to be known to ± this, instead of `trials`.
    double margin = 0;
    double confidence = 0.95;  // of that
    bool exhaustive = false;   // every fault of the populations once
    int faults_per_trial = 1;  // drawn independently of one another
    std::uint64_t seed = 0;
    bool by_layer = false;  // strata: the faults of each layer, bit, target are drawn on their own
    bool by_bit = false;
    bool by_target = false;
    Allocation allocation = Allocation::proportional;
    // Not empty: within strata, faults are drawn with chances in proportion to their factors, and
    // with replacement.
    std::vector<Importance> importance = {};
    std::vector<std::vector<ModelFault>> list = {};  // given faults, a trial each, instead
};

// Measures a run: of the golden and the faulty outputs. A single number may have an empty name.
using Metric =
    std::function<Metrics(const std::vector<NamedValue>& golden,
                          const std::vector<NamedValue>& faulty, const CampaignInput& input)>;
// Makes of the outputs what decisions are taken from, and measured; always as many of them.
using Postprocess = std::function<std::vector<NamedValue>(const std::vector<NamedValue>& outputs,
                                                          const CampaignInput& input)>;
// Makes of an input what the model is run with.
using PrepareInput = std::function<std::vector<NamedValue>(const CampaignInput& input)>;

// Two of them by a process that runs `command` in a shell, one for each worker; docs/inject.md says
// what it is told and answers. They throw Error(input) when it ends, or answers what makes no
// sense. One that gives no answer to outputs of a run with faults for `limit` seconds makes that
// run a hang; 0: 100 times what the first answer took, and a minute at least.
std::function<Metric()> metric_command(const std::string& command, double limit = 0);
std::function<Postprocess()> postprocess_command(const std::string& command, double limit = 0);

// All three by tool libraries (trocar/evaluation.h), in their order. What none of them has is
// empty.
struct Evaluations {
    PrepareInput preprocess = {};  // one thread at a time
    std::function<Postprocess()> postprocess = {};
    std::function<Metric()> metric = {};
};
// `tools`: PATH[,key=value…] each. Throws as load_tool does, and Error(usage) on one that has none
// of the three.
Evaluations load_evaluations(const std::vector<std::string>& tools, std::uint64_t seed);

// What is measured.
struct Monitoring {
    bool nan_everywhere = false;  // NaN and infinity in every tensor, not only in outputs
    Ranges ranges = Ranges::off;
    double margin = 0;          // by which ranges are widened, as a share of their width
    bool only_correct = false;  // inputs whose golden decision is not their label are left out
    bool layers = false;        // effects on every tensor on the way
    Decision decision = {};     // on the outputs, after post-processing
    // The user's. Called once for each worker, in the thread that runs the campaign; what they give
    // is called by that worker alone. With the same arguments it must give the same.
    std::function<Metric()> metric = {};
    std::function<Postprocess()> postprocess = {};
    std::map<std::string, CustomEffect> effects = {};  // fault models of the user's own, by name
};

struct CampaignOptions;

// How another process makes a campaign: `make` loads the model, opens the engine, and calls what it
// is given once, with the options as they are here, but for `isolate`, `workers` and `recipe`; that
// does not return. It runs in a process that was forked from this program before there were threads
// or engines, so that it may use nothing but `arguments` and files.
using CampaignTaker =
    std::function<void(const Model&, std::shared_ptr<Engine>, CampaignInputs, CampaignOptions)>;
struct CampaignRecipe {
    void (*make)(const std::string& arguments, const CampaignTaker& take) = nullptr;
    std::string arguments = {};
};

struct CampaignOptions {
    std::optional<View> view;  // none: deployed where the engine has that view, else source
    std::vector<Population> populations;
    Sampling sampling;
    Monitoring monitoring;
    Accelerate accelerate;
    std::uint64_t inputs_per_fault = 0;                // drawn for each trial; 0: all
    std::size_t memory_budget = std::size_t{2} << 30;  // for golden tensors and those on the way
    int workers = 1;
    double audit = 0;          // share of runs that are done again by brute force
    bool brute_force = false;  // all of them, and nothing else
    // Runs are done in a child process, so that the engine may crash or run for ever: that is an
    // outcome then, like others. Results come to the observer in this process. The child is forked
    // from it, and has no other thread of it: nothing that `inputs` and effects use may be locked
    // by one. Where the engine does not give golden bits there, or compiles nothing, as those whose
    // threads it needs, the child is made by `recipe`, with an engine of its own; where there is
    // none, or the program did not start its fork server first, it is not done, and a note says so.
    bool isolate = false;
    CampaignRecipe recipe = {};
    // Seconds on the wall that a trial may take with `isolate`; 0: as docs/inject.md says.
    double time_limit = 0;
    // Shard `shard` of `shards`: trials whose number leaves that remainder.
    std::uint64_t shard = 0;
    std::uint64_t shards = 1;
};

// The view that a campaign takes with this engine.
View campaign_view(const std::optional<View>& wanted, const EngineInfo& engine);

// What a golden run gave.
struct GoldenResult {
    std::uint64_t input = 0;
    std::string name = {};
    std::optional<std::int64_t> label = std::nullopt;
    std::int64_t top = -1;
    bool left_out = false;                       // only_correct, and it is not
    std::optional<bool> correct = std::nullopt;  // with a label, and one class to compare it with
    std::vector<NamedValue> outputs;
};

// What a campaign tells while it runs; called from one thread at a time.
class CampaignObserver {
public:
    virtual ~CampaignObserver() = default;
    virtual void golden(const GoldenResult&) {}
    virtual void results(const std::vector<TrialResult>& results,
                         const std::vector<LayerEffect>& effects) = 0;
    virtual bool is_done(std::uint64_t trial, std::uint64_t input) = 0;  // from an earlier session
    virtual void progress(std::uint64_t done, std::uint64_t total) = 0;
    virtual void audited(std::uint64_t, std::uint64_t) {}  // a run done again, with the same result
    virtual bool stop() { return false; }  // as soon as can be: what is under way is dropped
    // Trials are run in blocks, each of them a sample of all faults. Asked after some blocks: are
    // the results of the first `blocks` enough? Asked in order, also where all were done before.
    virtual bool enough(std::uint64_t /*blocks*/) { return false; }
};

// What was saved, as names and numbers, for reports.
using Saving = std::vector<std::pair<std::string, double>>;

struct CampaignSummary {
    std::uint64_t runs = 0;  // trials times inputs, done now
    std::uint64_t audited = 0;
    double seconds = 0;         // with faults, of all workers together
    double golden_seconds = 0;  // of one golden run
    bool stopped = false;
    Saving saving;
};

// A model with its faults laid out: strata, trials, and how to run them.
class Campaign {
public:
    // Looks at the model, runs the first input, and refuses what cannot be done exactly: an engine
    // that does not give the same bits twice, a golden output with NaN. Throws Error(usage) on
    // populations that hold no fault, with near matches.
    Campaign(const Model& model, std::shared_ptr<Engine> engine, CampaignInputs inputs,
             CampaignOptions options);
    ~Campaign();

    const std::vector<Stratum>& strata() const;
    std::uint64_t population() const;   // all faults there are
    std::uint64_t trial_count() const;  // of all shards
    // Trials that a rate of all faults needs to be known to ± `margin`.
    std::uint64_t trials_for(double margin, double confidence) const;
    Trial trial(std::uint64_t number) const;
    // The inputs that a trial is run with.
    std::vector<std::uint64_t> inputs_of(std::uint64_t trial) const;
    // Seconds of one golden run, and of one run with a fault as far as has been seen.
    double golden_seconds() const;
    std::uint64_t golden_bytes() const;
    ChosenDecision decision() const;
    std::vector<std::string> notes() const;
    // The one of these that says how a run of the whole model differs from the golden run, as where
    // an engine rounds half floats less often; empty: it has the same bits, or was not compared.
    const std::string& whole_run() const;

    // Runs all trials of the shard that the observer does not have yet. Throws Error(internal)
    // when an audit finds a difference, with the fault that shows it.
    CampaignSummary run(CampaignObserver& observer);
    // One trial on one input, by brute force, with what it did to every tensor.
    TrialResult replay(const Trial& trial, std::uint64_t input, std::vector<LayerEffect>& effects);

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace trocar
#pragma GCC visibility pop
