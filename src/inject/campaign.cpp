#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "inject/injector.h"
#include "inject/supervise.h"
#include "trocar/error.h"
#include "trocar/inject.h"
#include "trocar/random.h"

namespace trocar {

using namespace inject;

namespace {

// Trials are worked on in groups of this many: stopping is decided group by group.
constexpr std::uint64_t group_size = 2048;

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
            supervisor_.reset();
            injector.notes().emplace_back(
                "not isolated: the engine does not live on in a child process; a fault that "
                "crashes it ends the campaign");
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
Trial Campaign::trial(std::uint64_t number) const {
    return parts_->injector.universe().trial(number);
}
double Campaign::golden_seconds() const {
    return parts_->injector.golden_seconds();
}
std::uint64_t Campaign::golden_bytes() const {
    return parts_->injector.golden_bytes();
}
std::vector<std::string> Campaign::notes() const {
    return parts_->injector.notes();
}

std::vector<std::uint64_t> Campaign::inputs_of(std::uint64_t trial) const {
    const auto count = parts_->injector.input_count();
    const auto wanted = parts_->options().inputs_per_fault;
    std::vector<std::uint64_t> chosen;
    const auto key = philox(parts_->options().sampling.seed, 0x696e707574, trial);
    for (std::uint64_t i = 0; i < (wanted == 0 ? count : std::min(wanted, count)); ++i) {
        chosen.push_back(wanted == 0 || wanted >= count
                             ? i
                             : permuted(i, count, std::uint64_t{key[0]} << 32 | key[1]));
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
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
    for (std::uint64_t first = 0; first < mine && !summary.stopped; first += group_size) {
        const auto last = std::min(mine, first + group_size);
        // By input: the trials of the group that are still to be done.
        std::map<std::uint64_t, std::vector<std::uint64_t>> pending;
        for (auto i = first; i < last; ++i) {
            const auto number = i * options.shards + options.shard;
            for (const auto input : inputs_of(number)) {
                if (!observer.is_done(number, input)) {
                    pending[input].push_back(number);
                }
            }
        }
        for (auto& [input, numbers] : pending) {
            const Share share{first, input, std::move(numbers)};
            const bool complete = supervisor != nullptr ? supervisor->work(share, counted)
                                                        : injector.work(share, counted);
            summary.stopped = !complete;
            if (summary.stopped) {
                break;
            }
        }
        summary.stopped = summary.stopped || (last < mine && observer.enough());
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
