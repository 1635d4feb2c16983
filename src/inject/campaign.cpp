#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "inject/outputs.h"
#include "inject/runner.h"
#include "inject/universe.h"
#include "inject/verdict.h"
#include "trocar/error.h"
#include "trocar/inject.h"
#include "trocar/random.h"
#include "trocar/statistics.h"

namespace trocar {

namespace inject {

namespace {

// Trials are worked on in groups of this many: results come, and stopping is decided, group by
// group.
constexpr std::uint64_t group_size = 2048;

}  // namespace

}  // namespace inject

using namespace inject;

struct Campaign::Parts {
    Parts(const Model& model, std::shared_ptr<Engine> engine, CampaignInputs given,
          CampaignOptions how)
        : options(std::move(how)),
          inputs(std::move(given)),
          circuit(model, std::move(engine), options.view),
          first_runner(circuit, options.accelerate) {}

    CampaignOptions options;
    CampaignInputs inputs;
    Circuit circuit;
    Runner first_runner;
    std::unique_ptr<Universe> universe;
    std::vector<std::unique_ptr<Runner>> others;  // of the workers but the first
    Watch watch;
    bool ranges_known = false;
    double golden_seconds = 0;
    std::uint64_t golden_bytes = 0;
    std::vector<std::string> notes;
    std::vector<Type> types;  // of the first input's golden tensors

    // One input, ready to be run with faults.
    struct Ready {
        std::uint64_t number = 0;
        CampaignInput input;
        Golden golden;
        std::vector<NamedValue> outputs;
        Decision decision;
        bool left_out = false;
    };
    Ready ready(std::uint64_t number);
    void check(const Model& model);
    void find_ranges();
    Runner& runner(std::size_t worker) { return worker == 0 ? first_runner : *others[worker - 1]; }
    TrialResult result_of(const Ready& on, std::uint64_t trial, const Lane& lane) const;
    std::size_t lanes_at_once(const Golden& golden) const;

    struct Work {
        std::uint64_t trial;
        Lane lane;
        std::vector<LayerEffect> effects = {};
        std::size_t like = no_step;  // another one that does the same
        TrialResult result = {};
    };
    void run_group(Ready& on, std::vector<Work>& works, CampaignObserver& observer,
                   CampaignSummary& summary, std::uint64_t total);
    void audit(const Ready& on, const Work& work, Runner& runner, CampaignObserver& observer,
               CampaignSummary& summary, std::mutex& lock);
};

Campaign::Parts::Ready Campaign::Parts::ready(std::uint64_t number) {
    Ready made;
    made.number = number;
    made.input = inputs.get(number);
    made.golden = first_runner.golden(made.input.values, options.memory_budget / 2);
    made.outputs = outputs_of(circuit, made.golden, nullptr);
    made.decision = decide(made.outputs);
    if (has_nan(made.outputs)) {
        throw Error(Fault::input,
                    fmt::format("the golden output of input {} has NaN: nothing can be said of "
                                "what faults do to it",
                                made.input.name.empty() ? std::to_string(number) : made.input.name),
                    "`trocar dump` finds the op where it comes from");
    }
    made.left_out = options.monitoring.only_correct && made.input.label &&
                    (made.decision.tops.empty() || made.decision.tops[0] != *made.input.label);
    return made;
}

// Exact results need an engine that gives the same bits for the same work, cut or whole.
void Campaign::Parts::check(const Model& model) {
    auto first = ready(0);
    const auto again = first_runner.golden(first.input.values, options.memory_budget / 2);
    if (!same_bits(first.outputs, outputs_of(circuit, again, nullptr))) {
        throw Error(Fault::unsupported,
                    fmt::format("{} {} does not give the same bits twice for this model: what a "
                                "fault does cannot be told from that",
                                circuit.engine().info().name, circuit.engine().info().version),
                    "fix the seeds of random ops, or run with one thread");
    }
    if (circuit.deployed() != nullptr) {
        Session whole(model, std::shared_ptr<Engine>(&circuit.engine(), [](Engine*) {}));
        if (!same_bits(first.outputs, whole.run(first.input.values))) {
            notes.emplace_back(
                "the model run op by op has other bits than run whole: faults are in the former");
        }
    }
    golden_seconds = 0;
    for (const auto seconds : again.seconds) {
        golden_seconds += seconds;
    }
    golden_bytes = again.bytes;
    if (again.partial) {
        notes.emplace_back(
            fmt::format("golden tensors take {} MiB, over half the budget: they are not kept, but "
                        "computed again along with each batch of trials",
                        again.bytes >> 20));
    }
    types = again.types;
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
    parts_->check(model);
    parts_->universe = std::make_unique<Universe>(parts_->circuit, parts_->types, parts_->options);
}
Campaign::~Campaign() = default;

const std::vector<Stratum>& Campaign::strata() const {
    return parts_->universe->strata();
}
std::uint64_t Campaign::population() const {
    return parts_->universe->population();
}
std::uint64_t Campaign::trial_count() const {
    return parts_->universe->trials();
}
Trial Campaign::trial(std::uint64_t number) const {
    return parts_->universe->trial(number);
}
double Campaign::golden_seconds() const {
    return parts_->golden_seconds;
}
std::uint64_t Campaign::golden_bytes() const {
    return parts_->golden_bytes;
}
std::vector<std::string> Campaign::notes() const {
    return parts_->notes;
}

std::vector<std::uint64_t> Campaign::inputs_of(std::uint64_t trial) const {
    const auto count = parts_->inputs.count;
    const auto wanted = parts_->options.inputs_per_fault;
    std::vector<std::uint64_t> chosen;
    const auto key = philox(parts_->options.sampling.seed, 0x696e707574, trial);
    for (std::uint64_t i = 0; i < (wanted == 0 ? count : std::min(wanted, count)); ++i) {
        chosen.push_back(wanted == 0 || wanted >= count
                             ? i
                             : permuted(i, count, std::uint64_t{key[0]} << 32 | key[1]));
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

// The range that each tensor of numbers has in all golden runs.
void Campaign::Parts::find_ranges() {
    const auto& monitoring = options.monitoring;
    watch.nan_everywhere = monitoring.nan_everywhere;
    watch.ranges = monitoring.ranges;
    if (ranges_known || watch.ranges == Ranges::off) {
        return;
    }
    watch.bounds.resize(circuit.graph().tensor_limit());
    StatisticsOptions how;
    how.spread = StatisticsOptions::Spread::none;
    const auto widen = [&](TensorId id, const Value& value) {
        if (!value.is_tensor() || !is_float(value.dtype()) || value.element_count() == 0) {
            return;
        }
        const auto s = statistics(value, how);
        auto& bounds = watch.bounds[index(id)];
        if (!std::isnan(s.min)) {
            bounds =
                bounds ? Watch::Bounds{std::min(bounds->low, s.min), std::max(bounds->high, s.max)}
                       : Watch::Bounds{s.min, s.max};
        }
    };
    for (std::uint64_t i = 0; i < inputs.count; ++i) {
        first_runner.golden(inputs.get(i).values, options.memory_budget / 2, widen);
    }
    for (auto& bounds : watch.bounds) {
        if (bounds) {
            const auto margin = (bounds->high - bounds->low) * monitoring.margin;
            bounds->low -= margin;
            bounds->high += margin;
        }
    }
    ranges_known = true;
}

TrialResult Campaign::Parts::result_of(const Ready& on, std::uint64_t trial,
                                       const Lane& lane) const {
    const auto outputs = lane.failure.empty() ? outputs_of(circuit, on.golden, &lane) : on.outputs;
    bool same = true;
    for (const auto id : circuit.graph().outputs()) {
        same = same && lane.patch(id) == nullptr && circuit.constant(id) == nullptr;
    }
    same = same || same_bits(on.outputs, outputs);
    auto result = judge(on.outputs, on.decision, outputs, same, lane, on.input, options.monitoring);
    result.trial = trial;
    result.input = on.number;
    return result;
}

// A lane may hold a few whole tensors on its way.
std::size_t Campaign::Parts::lanes_at_once(const Golden& golden) const {
    std::size_t largest = 1;
    for (const auto& g : golden.geometries) {
        largest = std::max(largest, g.bytes());
    }
    const auto workers = static_cast<std::size_t>(std::max(1, options.workers));
    const auto room = options.memory_budget / 2 / workers / (4 * largest);
    return std::clamp<std::size_t>(room, 1, std::max<std::size_t>(1, options.accelerate.batch));
}

void Campaign::Parts::audit(const Ready& on, const Work& work, Runner& runner,
                            CampaignObserver& observer, CampaignSummary& summary,
                            std::mutex& lock) {
    const auto words = philox(options.sampling.seed ^ 0x6175646974, work.trial, on.number);
    if (unit_double(words[0], words[1]) >= options.audit) {
        return;
    }
    const auto trial = universe->trial(work.trial);
    auto plain = make_lane(circuit, types, trial.faults, on.number, options.monitoring.effects);
    runner.run_plainly(on.golden, plain, watch);
    const auto expected = result_of(on, work.trial, plain);
    const auto faulty = outputs_of(circuit, on.golden, &plain);
    const auto found = outputs_of(circuit, on.golden, &work.lane);
    const bool same = expected == work.result && (!work.lane.failure.empty() ||
                                                  work.like != no_step || same_bits(faulty, found));
    const std::lock_guard guard(lock);
    ++summary.audited;
    if (!same) {
        throw Error(Fault::internal,
                    fmt::format("trial {} on input {} differs from brute force: {} instead of {}; "
                                "its faults: {}",
                                work.trial, on.number, name(work.result.outcome),
                                name(expected.outcome), text(trial.faults)),
                    "please report it; --brute-force is exact meanwhile");
    }
    observer.audited(work.trial, on.number);
}

void Campaign::Parts::run_group(Ready& on, std::vector<Work>& works, CampaignObserver& observer,
                                CampaignSummary& summary, std::uint64_t total) {
    // Lanes that begin near one another go together.
    std::vector<std::size_t> order;
    std::unordered_map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < works.size(); ++i) {
        auto& work = works[i];
        const bool nothing = work.lane.constants.empty() && work.lane.tensors.empty();
        const auto key = options.accelerate.twins && !nothing ? key_of(work.lane) : std::string();
        if (!key.empty()) {
            const auto [found, fresh] = known.emplace(key, i);
            if (!fresh) {
                work.like = found->second;
                continue;
            }
        }
        if (nothing && options.accelerate.screen && !options.brute_force) {
            work.lane.done = true;  // no bit is changed: the golden run it is
            continue;
        }
        order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return works[a].lane.first < works[b].lane.first;
    });
    const auto at_once = options.accelerate.prefix ? lanes_at_once(on.golden) : 1;
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> halt = false;
    std::mutex lock;
    std::exception_ptr failed;
    const auto done_before = summary.runs;
    const auto work_on = [&](std::size_t worker) {
        auto& mine = runner(worker);
        std::vector<Lane> lanes;
        try {
            while (!halt) {
                const auto first = next.fetch_add(at_once);
                if (first >= order.size()) {
                    return;
                }
                const auto last = std::min(order.size(), first + at_once);
                lanes.clear();
                for (auto i = first; i < last; ++i) {
                    auto& work = works[order[i]];
                    work.lane.effects = options.monitoring.layers ? &work.effects : nullptr;
                    lanes.push_back(std::move(work.lane));
                }
                if (options.brute_force || !options.accelerate.prefix) {
                    for (auto& lane : lanes) {
                        mine.run_plainly(on.golden, lane, watch);
                    }
                } else {
                    mine.run(on.golden, lanes, watch);
                }
                for (auto i = first; i < last; ++i) {
                    auto& work = works[order[i]];
                    work.lane = std::move(lanes[i - first]);
                    work.result = result_of(on, work.trial, work.lane);
                    if (options.audit > 0 && !options.brute_force) {
                        audit(on, work, mine, observer, summary, lock);
                    }
                    work.lane.patches.clear();
                }
                const std::lock_guard guard(lock);
                summary.runs += last - first;
                observer.progress(summary.runs, total);
                halt = halt || observer.stop();
            }
        } catch (...) {
            const std::lock_guard guard(lock);
            failed = failed ? failed : std::current_exception();
            halt = true;
        }
    };
    std::vector<std::thread> threads;
    for (int w = 1; w < options.workers; ++w) {
        threads.emplace_back(work_on, static_cast<std::size_t>(w));
    }
    work_on(0);
    for (auto& thread : threads) {
        thread.join();
    }
    std::vector<TrialResult> results;
    std::vector<LayerEffect> effects;
    const bool complete = next.load() >= order.size() && !failed;
    // What was not reached is not recorded: it is done when the campaign goes on.
    std::vector<bool> reached(works.size(), false);
    for (std::size_t i = 0; i < order.size(); ++i) {
        reached[order[i]] = works[order[i]].lane.done;
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
        auto& work = works[i];
        const auto source = work.like != no_step ? work.like : i;
        const bool ran = reached[source] || (work.lane.done && work.like == no_step);
        if (!ran) {
            continue;
        }
        if (work.like != no_step) {
            work.result = works[work.like].result;
            work.effects = works[work.like].effects;
            work.result.trial = work.trial;
        } else if (!reached[i]) {
            work.result = result_of(on, work.trial, work.lane);
        }
        for (auto& effect : work.effects) {
            effect.trial = work.trial;
            effect.input = on.number;
        }
        effects.insert(effects.end(), work.effects.begin(), work.effects.end());
        results.push_back(work.result);
    }
    summary.runs = done_before + results.size();
    observer.results(results, effects);
    observer.progress(summary.runs, total);
    if (failed) {
        std::rethrow_exception(failed);
    }
    summary.stopped = summary.stopped || !complete;
}

CampaignSummary Campaign::run(CampaignObserver& observer) {
    auto& p = *parts_;
    while (p.others.size() + 1 < static_cast<std::size_t>(std::max(1, p.options.workers))) {
        p.others.push_back(std::make_unique<Runner>(p.circuit, p.options.accelerate));
    }
    p.find_ranges();
    CampaignSummary summary;
    summary.golden_seconds = p.golden_seconds;
    const auto trials = p.universe->trials();
    const auto mine = (trials + p.options.shards - 1 - p.options.shard) / p.options.shards;
    const auto inputs_each = p.options.inputs_per_fault == 0
                                 ? p.inputs.count
                                 : std::min(p.options.inputs_per_fault, p.inputs.count);
    const auto total = mine * inputs_each;
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t first = 0; first < mine && !summary.stopped; first += group_size) {
        const auto last = std::min(mine, first + group_size);
        // What a trial does is the same for every input, unless it comes and goes.
        std::unordered_map<std::uint64_t, Trial> drawn;
        std::unordered_map<std::uint64_t, Lane> lanes;
        const auto lane_of = [&](std::uint64_t number, std::uint64_t input) {
            auto [trial, fresh] = drawn.try_emplace(number);
            if (fresh) {
                trial->second = p.universe->trial(number);
            }
            const auto& faults = trial->second.faults;
            const bool always = std::all_of(faults.begin(), faults.end(), [](const auto& f) {
                return f.duration.kind == Duration::Kind::permanent;
            });
            const auto make = [&] {
                return make_lane(p.circuit, p.types, faults, input, p.options.monitoring.effects);
            };
            if (!always) {
                return make();
            }
            const auto known = lanes.find(number);
            return known != lanes.end() ? known->second
                                        : lanes.emplace(number, make()).first->second;
        };
        // By input: the trials of the group that are still to be done.
        std::map<std::uint64_t, std::vector<std::uint64_t>> pending;
        for (auto i = first; i < last; ++i) {
            const auto number = i * p.options.shards + p.options.shard;
            for (const auto input : inputs_of(number)) {
                if (!observer.is_done(number, input)) {
                    pending[input].push_back(number);
                }
            }
        }
        for (const auto& [input, numbers] : pending) {
            auto on = p.ready(input);
            GoldenResult golden{input,          on.input.name,
                                on.input.label, on.decision.tops.empty() ? -1 : on.decision.tops[0],
                                on.left_out,    on.outputs};
            observer.golden(golden);
            if (on.left_out) {
                continue;
            }
            std::vector<Parts::Work> works;
            for (const auto number : numbers) {
                works.push_back({number, lane_of(number, input)});
            }
            p.run_group(on, works, observer, summary, total);
            if (summary.stopped) {
                break;
            }
        }
        summary.stopped = summary.stopped || (last < mine && observer.enough());
    }
    summary.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    Saved saved = p.first_runner.saved();
    for (const auto& other : p.others) {
        saved += other->saved();
    }
    const auto number = [](std::uint64_t n) { return static_cast<double>(n); };
    summary.saving = {
        {"runs", number(saved.lanes)},
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
    return summary;
}

TrialResult Campaign::replay(const Trial& trial, std::uint64_t input,
                             std::vector<LayerEffect>& effects) {
    auto& p = *parts_;
    p.find_ranges();
    auto on = p.ready(input);
    auto lane = make_lane(p.circuit, p.types, trial.faults, input, p.options.monitoring.effects);
    lane.effects = &effects;
    p.first_runner.run_plainly(on.golden, lane, p.watch);
    for (auto& effect : effects) {
        effect.trial = trial.number;
        effect.input = input;
    }
    return p.result_of(on, trial.number, lane);
}

}  // namespace trocar
