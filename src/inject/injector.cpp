#include "inject/injector.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <numeric>
#include <thread>

#include "inject/command.h"
#include "inject/outputs.h"
#include "trocar/error.h"
#include "trocar/random.h"
#include "trocar/statistics.h"

namespace trocar::inject {

Injector::Injector(const Model& model, std::shared_ptr<Engine> engine, CampaignInputs inputs,
                   CampaignOptions options)
    : options_([&] {
          options.view = campaign_view(options.view, engine->info());
          return std::move(options);
      }()),
      inputs_(std::move(inputs)),
      circuit_(model, std::move(engine), *options_.view),
      first_runner_(circuit_, options_.accelerate) {
    check(model);
    settle();
    universe_ = std::make_unique<Universe>(circuit_, types_, options_);
}

Injector::Ready& Injector::ready(std::uint64_t number) {
    if (ready_ && ready_->number == number) {
        return *ready_;
    }
    ready_.reset();  // before there is another one: they may be large
    Ready made;
    made.number = number;
    made.input = inputs_.get(number);
    made.golden = first_runner_.golden(made.input.values, options_.memory_budget / 2);
    made.raw = outputs_of(circuit_, made.golden, nullptr);
    if (has_nan(made.raw)) {
        throw Error(Fault::input,
                    fmt::format("the golden output of input {} has NaN: nothing can be said of "
                                "what faults do to it",
                                made.input.name.empty() ? std::to_string(number) : made.input.name),
                    "`trocar dump` finds the op where it comes from");
    }
    ready_ = std::move(made);
    return *ready_;
}

// The user's functions, for each worker its own.
void Injector::hire(std::size_t workers) {
    const auto& monitoring = options_.monitoring;
    while (monitoring.metric && metrics_.size() < workers) {
        metrics_.push_back(monitoring.metric());
    }
    while (monitoring.postprocess && postprocesses_.size() < workers) {
        postprocesses_.push_back(monitoring.postprocess());
    }
}

// Ready, with what is decided from the golden outputs.
const Injector::Ready& Injector::decide_on(std::uint64_t number) {
    hire(1);
    auto& on = ready(number);
    if (!on.outputs) {
        on.outputs = postprocesses_.empty() ? on.raw : postprocesses_[0](on.raw, on.input);
        on.choices = choices(rule_, *on.outputs);
        on.left_out = options_.monitoring.only_correct && on.input.label &&
                      !is_correct(rule_, on.choices, on.input).value_or(false);
    }
    return on;
}

// Exact results need an engine that gives the same bits for the same work, cut or whole.
void Injector::check(const Model& model) {
    const auto& first = ready(0);
    const auto again = first_runner_.golden(first.input.values, options_.memory_budget / 2);
    if (!same_bits(first.raw, outputs_of(circuit_, again, nullptr))) {
        throw Error(Fault::unsupported,
                    fmt::format("{} {} does not give the same bits twice for this model: what a "
                                "fault does cannot be told from that",
                                circuit_.engine().info().name, circuit_.engine().info().version),
                    "fix the seeds of random ops, or run with one thread");
    }
    compare_whole(model, first);
    // The first runs wait for memory and caches: the median of some later ones is what a run takes.
    const auto seconds_of = [](const Golden& golden) {
        return std::accumulate(golden.seconds.begin(), golden.seconds.end(), 0.);
    };
    std::vector<double> warm;
    constexpr double patience = 0.5;
    for (double spent = 0; warm.empty() || (warm.size() < 5 && spent < patience);) {
        warm.push_back(
            seconds_of(first_runner_.golden(first.input.values, options_.memory_budget / 2)));
        spent += warm.back();
    }
    std::nth_element(warm.begin(), warm.begin() + static_cast<std::ptrdiff_t>(warm.size() / 2),
                     warm.end());
    golden_seconds_ = warm[warm.size() / 2];
    golden_bytes_ = again.bytes;
    if (again.partial) {
        notes_.emplace_back(
            fmt::format("golden tensors take {} MiB, over half the budget: they are not kept, but "
                        "computed again along with each batch of trials",
                        again.bytes >> 20));
    }
    types_ = again.types;
}

// Which output decides, and how: the first input shows it.
void Injector::settle() {
    const auto& monitoring = options_.monitoring;
    const auto& first = ready(0);
    // Not one of those that work later: this may be another process.
    const auto outputs = monitoring.postprocess && monitoring.decision.kind != Decision::Kind::none
                             ? monitoring.postprocess()(first.raw, first.input)
                             : first.raw;
    rule_ = bound(monitoring.decision, outputs, first.input.values);
    const auto positions = choices(rule_, outputs).positions;
    if (monitoring.only_correct && !(rule_.has_classes() && positions == 1)) {
        throw Error(
            Fault::usage,
            fmt::format("only_correct needs one class for each input, and the decision "
                        "is '{}'{}",
                        text(chosen(rule_).decision),
                        rule_.has_classes() ? fmt::format(" at {} positions", positions) : ""),
            "leave --only-correct out, or choose another --decision");
    }
}

// What runs whole is not always what runs op by op, where faults are.
void Injector::compare_whole(const Model& model, const Ready& first) {
    const std::shared_ptr<Engine> engine(&circuit_.engine(), [](Engine*) {});
    if (circuit_.deployed() != nullptr) {
        Session whole(model, engine);
        const auto found = compare_outputs(whole.run(first.input.values), first.raw);
        if (!found.same) {
            whole_run_ = fmt::format(
                "the model run op by op has other bits than run whole{}: faults are in the former",
                found.output.empty()
                    ? ""
                    : fmt::format(", up to {:.6g} in '{}'", found.largest, found.output));
        }
    } else if (has_half_floats(circuit_.graph())) {
        const auto found = compare_whole_run(circuit_.model(), engine, circuit_.plan(),
                                             first.input.values, first.raw);
        if (!found.same) {
            whole_run_ = text(found);
        }
    }
    if (!whole_run_.empty()) {
        notes_.push_back(whole_run_);
    }
}

bool Injector::rehearse() {
    const auto& first = ready(0);
    const auto again = first_runner_.golden(first.input.values, options_.memory_budget / 2);
    if (!same_bits(first.raw, outputs_of(circuit_, again, nullptr))) {
        return false;
    }
    first_runner_.rehearse(again);
    return true;
}

bool Injector::rehearse_all() {
    const auto& first = ready(0);
    Runner fresh(circuit_, options_.accelerate);
    const auto again = fresh.golden(first.input.values, options_.memory_budget / 2);
    return same_bits(first.raw, outputs_of(circuit_, again, nullptr));
}

// The range that each tensor of numbers has in all golden runs.
void Injector::find_ranges() {
    const auto& monitoring = options_.monitoring;
    watch_.nan_everywhere = monitoring.nan_everywhere;
    watch_.ranges = monitoring.ranges;
    if (ranges_known_ || watch_.ranges == Ranges::off) {
        return;
    }
    watch_.bounds.resize(circuit_.graph().tensor_limit());
    StatisticsOptions how;
    how.spread = StatisticsOptions::Spread::none;
    const auto widen = [&](TensorId id, const Value& value) {
        if (!value.is_tensor() || !is_float(value.dtype()) || value.element_count() == 0) {
            return;
        }
        const auto s = statistics(value, how);
        auto& bounds = watch_.bounds[index(id)];
        if (!std::isnan(s.min)) {
            bounds =
                bounds ? Watch::Bounds{std::min(bounds->low, s.min), std::max(bounds->high, s.max)}
                       : Watch::Bounds{s.min, s.max};
        }
    };
    for (std::uint64_t i = 0; i < inputs_.count; ++i) {
        first_runner_.golden(inputs_.get(i).values, options_.memory_budget / 2, widen);
    }
    for (auto& bounds : watch_.bounds) {
        if (bounds) {
            const auto margin = (bounds->high - bounds->low) * monitoring.margin;
            bounds->low -= margin;
            bounds->high += margin;
        }
    }
    ranges_known_ = true;
}

void Injector::give(const Trial& trial) {
    given_ = trial;
    drawn_.clear();
    lanes_.clear();
    options_.monitoring.layers = true;
}

Saved Injector::saved() const {
    Saved saved = first_runner_.saved();
    for (const auto& other : others_) {
        saved += other->saved();
    }
    return saved;
}

void Injector::forget_saved() {
    first_runner_.forget_saved();
    for (auto& other : others_) {
        other->forget_saved();
    }
}

GoldenResult Injector::told(const Ready& on) const {
    return {on.number,      on.input.name, on.input.label,
            on.choices.top, on.left_out,   is_correct(rule_, on.choices, on.input),
            *on.outputs};
}

TrialResult Injector::result_of(const Ready& on, std::uint64_t trial, const Lane& lane,
                                std::size_t worker) const {
    const auto raw = lane.failure.empty() ? outputs_of(circuit_, on.golden, &lane) : on.raw;
    bool same = true;
    for (const auto id : circuit_.graph().outputs()) {
        same = same && lane.patch(id) == nullptr && circuit_.constant(id) == nullptr;
    }
    same = same || same_bits(on.raw, raw);
    try {
        const auto outputs = same                     ? *on.outputs
                             : postprocesses_.empty() ? raw
                                                      : postprocesses_[worker](raw, on.input);
        if (outputs.size() != on.outputs->size()) {
            throw Error(Fault::input,
                        fmt::format("post-processing makes {} outputs of a run with faults, and {} "
                                    "of the golden one",
                                    outputs.size(), on.outputs->size()));
        }
        auto result = judge(*on.outputs, rule_, on.choices, outputs, same, lane, on.input,
                            metrics_.empty() ? Metric() : metrics_[worker]);
        result.trial = trial;
        result.input = on.number;
        return result;
    } catch (const Overdue& e) {
        if (same) {
            throw;  // of the golden outputs
        }
        auto result = lost(told(on), trial, Outcome::hang, e.how());
        result.detected = lane.detected;
        return result;
    }
}

// A lane may hold a few whole tensors on its way.
std::size_t Injector::lanes_at_once(const Golden& golden) const {
    std::size_t largest = 1;
    for (const auto& g : golden.geometries) {
        largest = std::max(largest, g.bytes());
    }
    const auto workers = static_cast<std::size_t>(std::max(1, options_.workers));
    const auto room = options_.memory_budget / 2 / workers / (4 * largest);
    return std::clamp<std::size_t>(room, 1, std::max<std::size_t>(1, options_.accelerate.batch));
}

bool Injector::is_audited(std::uint64_t trial, std::uint64_t input) const {
    const auto words = philox(options_.sampling.seed ^ 0x6175646974, trial, input);
    return !options_.brute_force && unit_double(words[0], words[1]) < options_.audit;
}

namespace {

// How a result differs from the one that brute force has; empty where it does not.
std::string difference_text(const TrialResult& expected, const TrialResult& found) {
    if (expected == found) {
        return {};
    }
    if (expected.failure != found.failure) {
        const auto told = [](const std::string& failure) {
            return failure.empty() ? std::string("no failure") : fmt::format("'{}'", failure);
        };
        return fmt::format("{} instead of {}", told(found.failure), told(expected.failure));
    }
    if (expected.outcome != found.outcome) {
        return fmt::format("the outcome is {} instead of {}", name(found.outcome),
                           name(expected.outcome));
    }
    if (expected.detected != found.detected) {
        return fmt::format("a range was {}left", found.detected ? "" : "not ");
    }
    return "a number that is measured of the outputs differs";
}

std::string difference_text(const std::vector<LayerEffect>& expected,
                            const std::vector<LayerEffect>& found) {
    for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
        if (i >= expected.size() || i >= found.size()) {
            const auto& only = i < expected.size() ? expected[i] : found[i];
            return fmt::format("the effect on tensor '{}' is {}", only.tensor,
                               i < expected.size() ? "missing" : "too many");
        }
        const auto& a = expected[i];
        const auto& b = found[i];
        if (a.tensor != b.tensor || a.changed != b.changed || a.bad != b.bad ||
            a.max_abs != b.max_abs) {
            return fmt::format("{} elements of tensor '{}' changed instead of {} of '{}'",
                               b.changed, b.tensor, a.changed, a.tensor);
        }
    }
    return {};
}

}  // namespace

void Injector::audit(const Ready& on, const Work& work, std::size_t worker, Sink& sink) {
    sink.begin(worker, {&work.trial, 1});
    const auto trial = universe_->trial(work.trial);
    auto plain = make_lane(circuit_, types_, trial.faults, on.number, options_.monitoring.effects);
    std::vector<LayerEffect> effects;
    plain.effects = options_.monitoring.layers ? &effects : nullptr;
    runner(worker).run_plainly(on.golden, plain, watch_);
    sink.end(worker);
    const auto expected = result_of(on, work.trial, plain, worker);
    std::string how;
    if (work.lane.failure.empty() && plain.failure.empty()) {
        how = difference_text(outputs_of(circuit_, on.golden, &plain),
                              outputs_of(circuit_, on.golden, &work.lane));
    }
    how = how.empty() ? difference_text(expected, work.result) : how;
    how = how.empty() ? difference_text(effects, work.effects) : how;
    if (!how.empty()) {
        throw Error(Fault::internal,
                    fmt::format("trial {} on input {} differs from brute force: {}; its faults: {}",
                                work.trial, on.number, how, text(trial.faults)),
                    "please report it; --brute-force is exact meanwhile");
    }
}

Lane Injector::lane_of(std::uint64_t number, std::uint64_t input) {
    auto [trial, fresh] = drawn_.try_emplace(number);
    if (fresh) {
        trial->second = given_ && given_->number == number ? *given_ : universe_->trial(number);
    }
    const auto& faults = trial->second.faults;
    const bool always = std::all_of(faults.begin(), faults.end(), [](const auto& f) {
        return f.duration.kind == Duration::Kind::permanent;
    });
    const auto make = [&] {
        return make_lane(circuit_, types_, faults, input, options_.monitoring.effects);
    };
    if (!always) {
        return make();
    }
    const auto known = lanes_.find(number);
    return known != lanes_.end() ? known->second : lanes_.emplace(number, make()).first->second;
}

// What is to be run, in order: lanes that begin near one another go together. Those that change
// nothing are done; those that do what another one does are its twins.
std::vector<std::size_t> Injector::ordered(std::vector<Work>& works) const {
    std::vector<std::size_t> order;
    std::unordered_map<std::string, std::size_t> known;
    for (std::size_t i = 0; i < works.size(); ++i) {
        auto& work = works[i];
        const bool nothing = work.lane.constants.empty() && work.lane.tensors.empty();
        const auto key = options_.accelerate.twins && !nothing ? key_of(work.lane) : std::string();
        if (!key.empty()) {
            const auto [found, fresh] = known.emplace(key, i);
            if (!fresh) {
                works[found->second].twins.push_back(i);
                continue;
            }
        }
        if (nothing && options_.accelerate.screen && !options_.brute_force) {
            work.lane.done = true;  // no bit is changed: the golden run it is
            continue;
        }
        order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return works[a].lane.first < works[b].lane.first;
    });
    return order;
}

void Injector::run_lanes(const Ready& on, std::span<Work* const> works, bool plainly,
                         Runner& runner) {
    std::vector<Lane> lanes;
    for (auto* work : works) {
        work->lane.effects = options_.monitoring.layers ? &work->effects : nullptr;
        lanes.push_back(std::move(work->lane));
    }
    if (plainly || options_.brute_force || !options_.accelerate.prefix) {
        for (auto& lane : lanes) {
            runner.run_plainly(on.golden, lane, watch_);
        }
    } else {
        runner.run(on.golden, lanes, watch_);
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
        works[i]->lane = std::move(lanes[i]);
    }
}

void Injector::give_results(const Ready& on, std::vector<Work>& works, std::span<Work* const> done,
                            Sink& sink) const {
    std::vector<TrialResult> results;
    std::vector<LayerEffect> effects;
    const auto add = [&](const Work& source, std::uint64_t trial) {
        results.push_back(source.result);
        results.back().trial = trial;
        for (const auto& effect : source.effects) {
            effects.push_back(effect);
            effects.back().trial = trial;
            effects.back().input = on.number;
        }
    };
    for (auto* work : done) {
        add(*work, work->trial);
        for (const auto twin : work->twins) {
            add(*work, works[twin].trial);
        }
        work->effects.clear();
    }
    sink.results(results, effects);
}

bool Injector::run(const Ready& on, std::vector<Work>& works, bool plainly, Sink& sink) {
    const auto order = ordered(works);
    std::vector<Work*> unchanged;
    for (auto& work : works) {
        if (work.lane.done) {
            work.result = result_of(on, work.trial, work.lane, 0);
            unchanged.push_back(&work);
        }
    }
    if (!unchanged.empty()) {
        give_results(on, works, unchanged, sink);
    }
    const auto at_once =
        options_.accelerate.prefix && !plainly ? lanes_at_once(on.golden) : std::size_t{1};
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> halt = sink.stop();
    std::mutex lock;
    std::exception_ptr failed;
    const auto work_on = [&](std::size_t worker) {
        try {
            while (!halt) {
                const auto first = next.fetch_add(at_once);
                if (first >= order.size()) {
                    return;
                }
                std::vector<Work*> some;
                std::vector<std::uint64_t> numbers;
                for (auto i = first; i < std::min(order.size(), first + at_once); ++i) {
                    some.push_back(&works[order[i]]);
                    numbers.push_back(some.back()->trial);
                }
                sink.begin(worker, numbers);
                run_lanes(on, some, plainly, runner(worker));
                sink.end(worker);
                std::vector<std::uint64_t> audited;
                for (auto* work : some) {
                    work->result = result_of(on, work->trial, work->lane, worker);
                    if (!plainly && is_audited(work->trial, on.number)) {
                        audit(on, *work, worker, sink);
                        audited.push_back(work->trial);
                    }
                }
                const std::lock_guard guard(lock);
                give_results(on, works, some, sink);
                for (const auto trial : audited) {
                    sink.audited(trial, on.number);
                }
                for (auto* work : some) {
                    work->lane.patches.clear();
                }
                halt = halt || sink.stop();
            }
        } catch (...) {
            const std::lock_guard guard(lock);
            failed = failed ? failed : std::current_exception();
            halt = true;
        }
    };
    std::vector<std::thread> threads;
    for (int w = 1; w < (plainly ? 1 : options_.workers); ++w) {
        threads.emplace_back(work_on, static_cast<std::size_t>(w));
    }
    work_on(0);
    for (auto& thread : threads) {
        thread.join();
    }
    if (failed) {
        std::rethrow_exception(failed);
    }
    return next.load() >= order.size();
}

bool Injector::work(const Share& share, Sink& sink) {
    if (group_ != share.group) {
        drawn_.clear();
        lanes_.clear();
        group_ = share.group;
    }
    while (others_.size() + 1 < static_cast<std::size_t>(std::max(1, options_.workers)) &&
           !share.plainly) {
        others_.push_back(std::make_unique<Runner>(circuit_, options_.accelerate));
    }
    hire(share.plainly ? 1 : static_cast<std::size_t>(std::max(1, options_.workers)));
    const auto& on = decide_on(share.input);
    sink.golden(told(on));
    if (on.left_out) {
        return true;
    }
    std::vector<Work> works;
    for (const auto& number : share.trials) {
        sink.begin(0, {&number, 1});  // effects of the user's own may end badly, too
        works.push_back({number, lane_of(number, share.input)});
    }
    sink.end(0);
    return run(on, works, share.plainly, sink);
}

TrialResult Injector::replay(const Trial& trial, std::uint64_t input,
                             std::vector<LayerEffect>& effects) {
    find_ranges();
    const auto& on = decide_on(input);
    auto lane = make_lane(circuit_, types_, trial.faults, input, options_.monitoring.effects);
    lane.effects = &effects;
    first_runner_.run_plainly(on.golden, lane, watch_);
    for (auto& effect : effects) {
        effect.trial = trial.number;
        effect.input = input;
    }
    return result_of(on, trial.number, lane, 0);
}

TrialResult lost(const GoldenResult& golden, std::uint64_t trial, Outcome outcome,
                 std::string how) {
    TrialResult result;
    result.trial = trial;
    result.input = golden.input;
    result.outcome = outcome;
    result.golden_top = golden.top;
    if (golden.correct) {
        result.golden_correct = golden.correct;
        result.faulty_correct = false;
    }
    result.failure = std::move(how);
    return result;
}

}  // namespace trocar::inject
