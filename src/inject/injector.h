#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "inject/runner.h"
#include "inject/universe.h"
#include "inject/verdict.h"
#include "trocar/inject.h"

namespace trocar::inject {

// Trials to be run with one input.
struct Share {
    std::uint64_t group = 0;  // what was drawn is kept for all inputs of a group
    std::uint64_t input = 0;
    std::vector<std::uint64_t> trials;  // ascending
    bool plainly = false;               // by brute force, one after the other
};

// Takes what comes of a share, as it comes; called from one thread at a time, but for the last two.
class Sink {
public:
    virtual ~Sink() = default;
    virtual void golden(const GoldenResult& golden) = 0;
    virtual void results(const std::vector<TrialResult>& results,
                         const std::vector<LayerEffect>& effects) = 0;
    virtual void audited(std::uint64_t trial, std::uint64_t input) = 0;
    virtual bool stop() = 0;
    // A worker runs these trials from now on; it has come back from the engine.
    virtual void begin(std::size_t, std::span<const std::uint64_t>) {}
    virtual void end(std::size_t) {}
};

// A model, its inputs and its faults, ready to be run.
class Injector {
public:
    // Throws as Campaign does.
    Injector(const Model& model, std::shared_ptr<Engine> engine, CampaignInputs inputs,
             CampaignOptions options);

    const CampaignOptions& options() const { return options_; }
    std::uint64_t input_count() const { return inputs_.count; }
    const Rule& rule() const { return rule_; }
    const Universe& universe() const { return *universe_; }
    double golden_seconds() const { return golden_seconds_; }
    std::uint64_t golden_bytes() const { return golden_bytes_; }
    std::vector<std::string>& notes() { return notes_; }
    // How a run of the whole model differs from the golden run; empty: it does not, as far as is
    // seen.
    const std::string& whole_run() const { return whole_run_; }
    // Of the golden run of the first input, as the model gives them.
    const std::vector<NamedValue>& first_outputs() { return ready(0).raw; }
    Saved saved() const;
    void forget_saved();

    // The trial of this number is this one, not drawn; what it does to every tensor is wanted.
    void give(const Trial& trial);
    // The ranges that tensors have in golden runs, where they are asked for.
    void find_ranges();
    // Does the engine give the golden bits once more, as in the process where this was made? Also
    // compiles some ops as trials do. Throws Error where the engine fails.
    bool rehearse();
    // The same with every op compiled anew.
    bool rehearse_all();
    // False: the sink said stop.
    bool work(const Share& share, Sink& sink);
    // By brute force, in this process.
    TrialResult replay(const Trial& trial, std::uint64_t input, std::vector<LayerEffect>& effects);

private:
    // One input, ready to be run with faults.
    struct Ready {
        std::uint64_t number = 0;
        CampaignInput input;
        Golden golden;
        std::vector<NamedValue> raw;  // outputs as the model gives them
        // Of them as they are processed, once `decide_on` was there.
        std::optional<std::vector<NamedValue>> outputs = std::nullopt;
        Choices choices;
        bool left_out = false;
    };
    // One trial on that input.
    struct Work {
        std::uint64_t trial;
        Lane lane;
        std::vector<LayerEffect> effects = {};
        std::vector<std::size_t> twins = {};  // others that do the same
        TrialResult result = {};
    };

    void check(const Model& model);
    void settle();
    void compare_whole(const Model& model, const Ready& first);
    Ready& ready(std::uint64_t number);
    const Ready& decide_on(std::uint64_t number);
    void hire(std::size_t workers);
    Lane lane_of(std::uint64_t trial, std::uint64_t input);
    Runner& runner(std::size_t worker) {
        return worker == 0 ? first_runner_ : *others_[worker - 1];
    }
    GoldenResult told(const Ready& on) const;
    TrialResult result_of(const Ready& on, std::uint64_t trial, const Lane& lane,
                          std::size_t worker) const;
    std::size_t lanes_at_once(const Golden& golden) const;
    std::vector<std::size_t> ordered(std::vector<Work>& works) const;
    bool is_audited(std::uint64_t trial, std::uint64_t input) const;
    void audit(const Ready& on, const Work& work, std::size_t worker, Sink& sink);
    void run_lanes(const Ready& on, std::span<Work* const> works, bool plainly, Runner& runner);
    void give_results(const Ready& on, std::vector<Work>& works, std::span<Work* const> done,
                      Sink& sink) const;
    bool run(const Ready& on, std::vector<Work>& works, bool plainly, Sink& sink);

    CampaignOptions options_;
    CampaignInputs inputs_;
    Circuit circuit_;
    Rule rule_;  // of the decision
    Runner first_runner_;
    std::vector<std::unique_ptr<Runner>> others_;  // of the workers but the first
    std::vector<Metric> metrics_;                  // by worker
    std::vector<Postprocess> postprocesses_;
    std::unique_ptr<Universe> universe_;
    Watch watch_;
    bool ranges_known_ = false;
    double golden_seconds_ = 0;
    std::uint64_t golden_bytes_ = 0;
    std::vector<std::string> notes_;
    std::string whole_run_;
    std::vector<Type> types_;     // of the first input's golden tensors
    std::optional<Ready> ready_;  // the last one
    std::optional<Trial> given_;
    // What the trials of a group do is the same for every input, unless it comes and goes.
    std::uint64_t group_ = 0;
    std::unordered_map<std::uint64_t, Trial> drawn_;
    std::unordered_map<std::uint64_t, Lane> lanes_;
};

// What a trial comes to that the engine did not survive.
TrialResult lost(const GoldenResult& golden, std::uint64_t trial, Outcome outcome, std::string how);

}  // namespace trocar::inject
