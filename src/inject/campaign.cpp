#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "campaign/trial_blocks.h"
#include "inject/injector.h"
#include "inject/supervise.h"
#include "trocar/error.h"
#include "trocar/inject.h"

namespace trocar {

using namespace inject;

namespace {

// The trials of a shard, in the order in which they are run: whole blocks, so many at a time as
// have been run before. What is cut short is less than half, and soon there are so many that
// trials which begin at the same op can be run side by side.
class Groups {
public:
    Groups(const campaign::TrialBlocks& blocks, const CampaignOptions& options)
        : blocks_(blocks), options_(options) {}

    // Empty: there are no more.
    std::vector<std::uint64_t> next() {
        constexpr std::uint64_t most = 2048;
        const auto enough = std::clamp(given_, campaign::TrialBlocks::size, most);
        std::vector<std::uint64_t> group;
        while (block_ < blocks_.count() && 4 * group.size() < 3 * enough) {
            for (const auto number : blocks_.numbers(block_++)) {
                if (number % options_.shards == options_.shard) {
                    group.push_back(number);
                }
            }
        }
        std::sort(group.begin(), group.end());
        given_ += group.size();
        return group;
    }
    bool done() const { return block_ == blocks_.count(); }
    std::uint64_t blocks() const { return block_; }  // that have been given

private:
    const campaign::TrialBlocks& blocks_;
    const CampaignOptions& options_;
    std::uint64_t block_ = 0;
    std::uint64_t given_ = 0;
};

// Passes on to the observer of a campaign, and counts.
class Counted : public Sink {
public:
    Counted(CampaignObserver& observer, CampaignSummary& summary, std::uint64_t total)
        : observer_(observer), summary_(summary), total_(total) {}

    void golden(const GoldenResult& golden) override { observer_.golden(golden); }
    void results(const std::vector<TrialResult>& results,
                 const std::vector<LayerEffect>& effects) override {
        summary_.runs += results.size();
        observer_.results(results, effects);
        observer_.progress(summary_.runs, total_);
    }
    void audited(std::uint64_t trial, std::uint64_t input) override {
        ++summary_.audited;
        observer_.audited(trial, input);
    }
    bool stop() override { return observer_.stop(); }

private:
    CampaignObserver& observer_;
    CampaignSummary& summary_;
    std::uint64_t total_;
};

Saving described(const Saved& saved) {
    const auto number = [](std::uint64_t n) { return static_cast<double>(n); };
    return {{"runs", number(saved.lanes)},
            {"ops before the fault, not run", number(saved.skipped)},
            {"ops that nothing reached, not run", number(saved.clean)},
            {"ops after all was golden again, not run", number(saved.after_death)},
            {"ops run whole", number(saved.whole)},
            {"seconds in these", saved.seconds_whole},
            {"ops run at some positions", number(saved.gathered)},
            {"positions of these", number(saved.positions)},
            {"seconds at positions", saved.seconds_gathered},
            {"blocks of channels run with changed filters", number(saved.blocks)},
            {"seconds in blocks", saved.seconds_blocks},
            {"ops run whole, several lanes as one batch", number(saved.stacked)},
            {"seconds in such batches", saved.seconds_stacked},
            {"columns of products run with a changed matrix", number(saved.columns)},
            {"seconds in columns", saved.seconds_columns},
            {"ops compiled anew with a changed constant", number(saved.rebuilt)},
            {"seconds in compiling and running these", saved.seconds_rebuilt},
            {"parts of ops that have other bits than the whole", number(saved.uncalibrated)}};
}

}  // namespace

View campaign_view(const std::optional<View>& wanted, const EngineInfo& engine) {
    return wanted.value_or(engine.can.deployed ? View::deployed : View::source);
}

struct Campaign::Parts {
    Parts(const Model& model, std::shared_ptr<Engine> engine, CampaignInputs inputs,
          CampaignOptions options)
        : injector(model, std::move(engine), std::move(inputs), std::move(options)) {}

    Injector injector;
    const CampaignOptions& options() const { return injector.options(); }
    // Where the work is to be done in another process: what sees to that.
    Supervisor* supervisor();

private:
    std::unique_ptr<Supervisor> supervisor_;
    bool tried_ = false;
};

Supervisor* Campaign::Parts::supervisor() {
    if (!options().isolate || supervisor_) {
        return supervisor_.get();
    }
    if (!tried_) {
        tried_ = true;
        supervisor_ = std::make_unique<Supervisor>(injector);
        if (!supervisor_->rehearse()) {
            const auto& why = supervisor_->why_not();
            injector.notes().push_back(
                fmt::format("not isolated: the engine does not live on in a child process{}{}; a "
                            "fault that crashes it ends the campaign",
                            why.empty() ? "" : ": ", why));
            supervisor_.reset();
        }
    }
    return supervisor_.get();
}

Campaign::Campaign(const Model& model, std::shared_ptr<Engine> engine, CampaignInputs inputs,
                   CampaignOptions options) {
    if (inputs.count == 0) {
        throw Error(Fault::input, "there are no inputs to try the faults with",
                    "give --data, or --fill random");
    }
    if (options.populations.empty() && options.sampling.list.empty()) {
        throw Error(Fault::usage, "there are no faults to try",
                    "give --target, or a list of faults");
    }
    parts_ =
        std::make_unique<Parts>(model, std::move(engine), std::move(inputs), std::move(options));
}
Campaign::~Campaign() = default;

const std::vector<Stratum>& Campaign::strata() const {
    return parts_->injector.universe().strata();
}
std::uint64_t Campaign::population() const {
    return parts_->injector.universe().population();
}
std::uint64_t Campaign::trial_count() const {
    return parts_->injector.universe().trials();
}
std::uint64_t Campaign::trials_for(double margin, double confidence) const {
    return parts_->injector.universe().trials_for(margin, confidence);
}
Trial Campaign::trial(std::uint64_t number) const {
    return parts_->injector.universe().trial(number);
}
double Campaign::golden_seconds() const {
    return parts_->injector.golden_seconds();
}
std::uint64_t Campaign::golden_bytes() const {
    return parts_->injector.golden_bytes();
}
ChosenDecision Campaign::decision() const {
    return chosen(parts_->injector.rule());
}
std::vector<std::string> Campaign::notes() const {
    return parts_->injector.notes();
}

const std::string& Campaign::whole_run() const {
    return parts_->injector.whole_run();
}

std::vector<std::uint64_t> Campaign::inputs_of(std::uint64_t trial) const {
    const auto count = parts_->injector.input_count();
    const auto wanted = parts_->options().inputs_per_fault;
    return campaign::drawn_inputs(parts_->options().sampling.seed, trial,
                                  wanted == 0 ? count : wanted, count);
}

CampaignSummary Campaign::run(CampaignObserver& observer) {
    auto& injector = parts_->injector;
    const auto& options = injector.options();
    injector.find_ranges();
    injector.forget_saved();
    CampaignSummary summary;
    summary.golden_seconds = injector.golden_seconds();
    const auto mine = (trial_count() + options.shards - 1 - options.shard) / options.shards;
    const auto inputs_each = options.inputs_per_fault == 0
                                 ? injector.input_count()
                                 : std::min(options.inputs_per_fault, injector.input_count());
    Counted counted(observer, summary, mine * inputs_each);
    auto* supervisor = parts_->supervisor();
    if (supervisor != nullptr) {
        supervisor->forget_saved();
    }
    const auto start = std::chrono::steady_clock::now();
    const campaign::TrialBlocks blocks(strata());
    Groups groups(blocks, options);
    for (std::uint64_t place = 0; !groups.done() && !summary.stopped; ++place) {
        // By input: the trials of the group that are still to be done.
        std::map<std::uint64_t, std::vector<std::uint64_t>> pending;
        for (const auto number : groups.next()) {
            for (const auto input : inputs_of(number)) {
                if (!observer.is_done(number, input)) {
                    pending[input].push_back(number);
                }
            }
        }
        for (auto& [input, numbers] : pending) {
            const Share share{place, input, std::move(numbers)};
            const bool complete = supervisor != nullptr ? supervisor->work(share, counted)
                                                        : injector.work(share, counted);
            summary.stopped = !complete;
            if (summary.stopped) {
                break;
            }
        }
        summary.stopped = summary.stopped || (!groups.done() && observer.enough(groups.blocks()));
    }
    summary.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    auto saved = injector.saved();
    if (supervisor != nullptr) {
        saved += supervisor->saved();
    }
    summary.saving = described(saved);
    return summary;
}

TrialResult Campaign::replay(const Trial& trial, std::uint64_t input,
                             std::vector<LayerEffect>& effects) {
    parts_->injector.find_ranges();  // before there is a child, which is to know them
    if (auto* supervisor = parts_->supervisor()) {
        return supervisor->replay(trial, input, effects);
    }
    return parts_->injector.replay(trial, input, effects);
}

}  // namespace trocar
