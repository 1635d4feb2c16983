#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "campaign/trial_blocks.h"
#include "inject/circuit.h"
#include "inject/runner.h"
#include "inject/test_campaigns.h"
#include "inject/universe.h"
#include "trocar/error.h"
#include "trocar/inject.h"
#include "trocar/inputs.h"
#include "trocar/intervals.h"

namespace trocar {
namespace {

using testing::digits;
using testing::engine;

using ::testing::HasSubstr;

// Sanitizers make the engine's callers slow: fewer trials say the same of memory.
constexpr std::uint64_t fewer = TROCAR_SANITIZED != 0 ? 10 : 1;

std::string test_model(const std::string& name) {
    return TROCAR_SOURCE_DIR "/build/test-models/" + name + ".onnx";
}

CampaignInputs random_inputs(const Model& model, std::uint64_t count, const char* fill,
                             std::int64_t unknown_dims = 1) {
    return {count, [&model, fill, unknown_dims](std::uint64_t i) {
                InputSpec spec;
                spec.fill = fill;
                spec.seed = i;
                spec.unknown_dims = unknown_dims;
                return CampaignInput{make_inputs(model, spec).values, std::nullopt, ""};
            }};
}

class Collected : public CampaignObserver {
public:
    void results(const std::vector<TrialResult>& some,
                 const std::vector<LayerEffect>& effects) override {
        for (const auto& result : some) {
            EXPECT_TRUE(found.emplace(std::pair(result.trial, result.input), result).second);
        }
        layers += effects.size();
        for (const auto& effect : effects) {
            seen.insert(effect.trial);
        }
    }
    bool is_done(std::uint64_t trial, std::uint64_t input) override {
        return done.contains({trial, input});
    }
    void progress(std::uint64_t, std::uint64_t) override {}
    bool stop() override { return found.size() >= stop_after; }

    std::map<std::pair<std::uint64_t, std::uint64_t>, TrialResult> found;
    std::set<std::pair<std::uint64_t, std::uint64_t>> done;
    std::size_t layers = 0;
    std::set<std::uint64_t> seen;  // trials that changed a tensor
    std::size_t stop_after = std::numeric_limits<std::size_t>::max();
};

Collected collect(const Model& model, const CampaignInputs& inputs,
                  const CampaignOptions& options) {
    Campaign campaign(model, engine(), inputs, options);
    Collected collected;
    campaign.run(collected);
    return collected;
}

Population population(Population::Target target) {
    Population p;
    p.target = target;
    return p;
}

struct Case {
    const char* name;
    View view;
    Population::Target target;
    std::uint64_t trials;
    const char* fill = "random(-2,2)";
};

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
    constexpr std::array targets = {"weights", "activations", "reads", "inputs", "constants"};
    return std::string(info.param.name) +
           (info.param.view == View::deployed ? "_deployed_" : "_source_") +
           targets[static_cast<std::size_t>(info.param.target)];
}

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.name;
}

class Identity : public ::testing::TestWithParam<Case> {};

// What all accelerations together give is what brute force gives, to the last bit of every metric.
TEST_P(Identity, OfAcceleratedRunsAndBruteForce) {
    const auto& c = GetParam();
    const auto model = load(std::string(c.name) == "digits" ? digits : test_model(c.name));
    const auto inputs = random_inputs(model, 2, c.fill);
    CampaignOptions options;
    options.view = c.view;
    options.populations = {population(c.target)};
    options.sampling.trials = c.trials / fewer;
    options.sampling.seed = 7;
    options.monitoring.nan_everywhere = true;
    options.monitoring.layers = true;
    const auto fast = collect(model, inputs, options);
    options.brute_force = true;
    const auto plain = collect(model, inputs, options);
    const Campaign drawn(model, engine(), inputs, options);
    ASSERT_EQ(plain.found.size(), fast.found.size());
    EXPECT_EQ(plain.layers, fast.layers);
    std::map<Outcome, int> outcomes;
    for (const auto& [key, result] : plain.found) {
        ++outcomes[result.outcome];
        const auto& other = fast.found.at(key);
        EXPECT_TRUE(other == result)
            << "trial " << key.first << ": " << text(drawn.trial(key.first).faults) << ": "
            << name(other.outcome) << " instead of " << name(result.outcome) << ", max_abs "
            << other.max_abs << " instead of " << result.max_abs;
    }
    for (const auto& [outcome, count] : outcomes) {
        RecordProperty(name(outcome), count);
    }
    // Faults that change nothing at all would show nothing.
    EXPECT_LT(outcomes[Outcome::masked], static_cast<int>(plain.found.size()));
}

constexpr auto weights = Population::Target::weights;
constexpr auto activations = Population::Target::activations;
constexpr auto reads = Population::Target::reads;

INSTANTIATE_TEST_SUITE_P(
    Models, Identity,
    ::testing::Values(Case{"digits", View::deployed, weights, 2000},
                      Case{"digits", View::deployed, activations, 2000},
                      Case{"digits", View::deployed, reads, 500},
                      Case{"digits", View::deployed, Population::Target::inputs, 300},
                      Case{"digits", View::source, weights, 500},
                      Case{"digits", View::source, activations, 500},
                      Case{"resnet18", View::deployed, weights, 60},
                      Case{"resnet18", View::deployed, activations, 60},
                      Case{"resnet18", View::source, activations, 30},
                      Case{"mobilenet_v2", View::deployed, weights, 60},
                      Case{"mobilenet_v2", View::deployed, activations, 60},
                      Case{"mobilenet_v2", View::source, weights, 30},
                      Case{"transformer", View::deployed, weights, 400},
                      Case{"transformer", View::deployed, activations, 400},
                      Case{"transformer", View::source, activations, 200},
                      Case{"lstm", View::deployed, weights, 400},
                      Case{"lstm", View::deployed, activations, 400},
                      Case{"quantized", View::deployed, weights, 400},
                      Case{"quantized", View::deployed, activations, 400},
                      Case{"if", View::source, activations, 200, "random"},
                      Case{"if", View::source, Population::Target::inputs, 100, "random"},
                      Case{"loop", View::source, activations, 100}),
    case_name);

class EveryWeight : public ::testing::TestWithParam<Case> {};

// A weight that the engine has copied is easily changed in vain: other numbers in all of any weight
// tensor must be seen in what its op gives.
TEST_P(EveryWeight, OfAModelReachesTheKernel) {
    const auto& c = GetParam();
    const std::string name = c.name;
    if (fewer > 1 && name == "mobilenet_v2") {
        GTEST_SKIP() << "too slow with sanitizers";
    }
    const auto model = load(name == "digits" ? digits : test_model(name));
    const bool sequence = name == "transformer" || name == "lstm";
    const auto inputs = random_inputs(model, 1, c.fill, sequence ? 4 : 1);
    CampaignOptions options;
    options.view = c.view;
    auto all = population(c.target);
    all.extent = Population::Extent::tensor;
    all.effect.kind = Effect::Kind::random;
    all.effect.a = -3;
    all.effect.b = 3;
    if (name == "mobilenet_v2" && c.view == View::source) {
        // All kinds of its ops, and little to be run after most of them.
        all.ops = parse_selector("module:features.0, module:features.17, module:features.18, Gemm");
    }
    options.populations = {all};
    options.sampling.exhaustive = true;
    options.monitoring.layers = true;
    Campaign campaign(model, engine(), inputs, options);
    Collected found;
    campaign.run(found);
    ASSERT_EQ(campaign.trial_count(), found.found.size());
    for (const auto& [key, result] : found.found) {
        EXPECT_TRUE(found.seen.contains(key.first) || result.outcome == Outcome::failed)
            << text(campaign.trial(key.first).faults);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryWeight,
                         ::testing::Values(Case{"digits", View::deployed, weights, 0},
                                           Case{"digits", View::source, weights, 0},
                                           Case{"mobilenet_v2", View::deployed, weights, 0},
                                           Case{"mobilenet_v2", View::source, weights, 0},
                                           Case{"transformer", View::deployed, weights, 0},
                                           Case{"transformer", View::source, weights, 0},
                                           Case{"lstm", View::deployed, weights, 0},
                                           Case{"lstm", View::source, weights, 0},
                                           Case{"quantized", View::deployed, weights, 0},
                                           Case{"quantized", View::source, weights, 0}),
                         case_name);

TEST(Campaign, DoesNotDependOnWorkersShardsMemoryOrAccelerations) {
    const auto model = load(digits);
    const auto inputs = random_inputs(model, 2, "random");
    CampaignOptions options;
    options.populations = {population(weights), population(activations)};
    options.sampling.trials = 300;
    options.sampling.by_layer = options.sampling.by_bit = options.sampling.by_target = true;
    const auto expected = collect(model, inputs, options).found;
    ASSERT_EQ(600U, expected.size());
    const auto same = [&](const CampaignOptions& other) {
        const auto found = collect(model, inputs, other).found;
        return found == expected;
    };
    auto workers = options;
    workers.workers = 3;
    EXPECT_TRUE(same(workers));
    auto little = options;
    little.memory_budget = 1000;
    EXPECT_TRUE(same(little));
    for (bool Accelerate::*off : {&Accelerate::prefix, &Accelerate::dead, &Accelerate::region,
                                  &Accelerate::channels, &Accelerate::screen, &Accelerate::twins}) {
        auto without = options;
        without.accelerate.*off = false;
        EXPECT_TRUE(same(without));
    }
    auto alone = options;
    alone.accelerate.batch = 1;
    EXPECT_TRUE(same(alone));
    std::map<std::pair<std::uint64_t, std::uint64_t>, TrialResult> all;
    for (std::uint64_t shard = 0; shard < 3; ++shard) {
        auto part = options;
        part.shards = 3;
        part.shard = shard;
        all.merge(collect(model, inputs, part).found);
    }
    EXPECT_TRUE(all == expected);
}

TEST(Campaign, GoesOnWhereItWasStopped) {
    const auto model = load(digits);
    const auto inputs = random_inputs(model, 2, "random");
    CampaignOptions options;
    options.populations = {population(weights)};
    options.sampling.trials = 200;
    const auto expected = collect(model, inputs, options).found;
    Campaign campaign(model, engine(), inputs, options);
    Collected some;
    some.stop_after = 100;
    EXPECT_TRUE(campaign.run(some).stopped);
    EXPECT_LT(some.found.size(), expected.size());
    Collected rest;
    for (const auto& [key, result] : some.found) {
        rest.done.insert(key);
    }
    EXPECT_FALSE(campaign.run(rest).stopped);
    rest.found.merge(some.found);
    EXPECT_TRUE(rest.found == expected);
}

// What is there when a campaign is interrupted has trials of all strata.
TEST(Campaign, RunsBlocksOfAllStrata) {
    const auto model = load(digits);
    const auto inputs = random_inputs(model, 2, "random");
    CampaignOptions options;
    options.populations = {population(weights)};
    options.sampling.trials = 900;
    options.sampling.by_layer = true;
    for (const std::uint64_t shards : {1U, 2U}) {
        options.shards = shards;
        Campaign campaign(model, engine(), inputs, options);
        Collected some;
        some.stop_after = 1000 / shards;
        EXPECT_TRUE(campaign.run(some).stopped);
        const campaign::TrialBlocks blocks(campaign.strata());
        std::set<std::uint32_t> strata;
        for (const auto number : blocks.numbers(0)) {
            if (number % shards == 0) {
                strata.insert(campaign.trial(number).stratum);
                EXPECT_TRUE(some.found.contains({number, 0})) << number;
                EXPECT_TRUE(some.found.contains({number, 1})) << number;
            }
        }
        EXPECT_EQ(strata.size(), campaign.strata().size());
        EXPECT_GT(strata.size(), 3U);
    }
}

// It is asked in order, with all blocks that were run by then, and again when it goes on.
TEST(Campaign, AsksWhetherBlocksAreEnough) {
    class Asked : public Collected {
    public:
        bool enough(std::uint64_t blocks) override {
            asked.push_back(blocks);
            return blocks >= 2;
        }
        std::vector<std::uint64_t> asked;
    };
    const auto model = load(digits);
    const auto inputs = random_inputs(model, 1, "random");
    CampaignOptions options;
    options.populations = {population(weights)};
    options.sampling.trials = 2000;
    Campaign campaign(model, engine(), inputs, options);
    Asked first;
    EXPECT_TRUE(campaign.run(first).stopped);
    EXPECT_EQ(first.asked, (std::vector<std::uint64_t>{1, 2}));
    const auto ran = first.found.size();
    EXPECT_NEAR(static_cast<double>(ran), 512, 16);
    Asked again;
    for (const auto& [key, result] : first.found) {
        again.done.insert(key);
    }
    EXPECT_TRUE(campaign.run(again).stopped);
    EXPECT_EQ(again.asked, first.asked);
    EXPECT_TRUE(again.found.empty());
}

// --margin and `inject plan` count from the same population.
TEST(Campaign, TakesTheTrialsThatAMarginNeeds) {
    const auto model = load(digits);
    const auto inputs = random_inputs(model, 1, "random");
    CampaignOptions options;
    options.populations = {population(weights)};
    options.sampling.margin = 0.01;
    options.sampling.confidence = 0.99;
    const Campaign campaign(model, engine(), inputs, options);
    EXPECT_EQ(campaign.trial_count(), sample_size(campaign.population(), 0.01, 0.99));
    EXPECT_EQ(campaign.trial_count(), campaign.trials_for(0.01, 0.99));
    EXPECT_LT(campaign.trial_count(), sample_size(std::nullopt, 0.01, 0.99));
    options.sampling.faults_per_trial = 2;  // there are many more pairs
    EXPECT_EQ(Campaign(model, engine(), inputs, options).trial_count(), 16588U);
}

TEST(Campaign, DrawsWithoutReplacement) {
    const auto model = load(digits);
    const auto inputs = random_inputs(model, 1, "random");
    CampaignOptions options;
    options.populations = {population(weights)};
    options.populations[0].tensors = "stem*";
    options.sampling.exhaustive = true;
    options.view = View::source;
    const Campaign campaign(model, engine(), inputs, options);
    std::set<std::string> faults;
    for (std::uint64_t i = 0; i < campaign.trial_count(); ++i) {
        faults.insert(text(campaign.trial(i).faults));
    }
    EXPECT_EQ(campaign.population(), faults.size());
    EXPECT_EQ(32U * (16 * 9 + 16), faults.size());
}

// The rate that every fault gives lies in the intervals of samples as often as they promise.
TEST(Campaign, IntervalsOfSamplesHoldTheRateOfAllFaults) {
    const auto model = load(digits);
    const auto inputs = random_inputs(model, 1, "random");
    CampaignOptions options;
    options.populations = {population(weights)};
    options.populations[0].tensors = "classifier*";
    options.view = View::source;
    options.sampling.exhaustive = true;
    const auto masked = [&](const CampaignOptions& how) {
        const auto found = collect(model, inputs, how).found;
        return std::pair(static_cast<std::uint64_t>(std::count_if(
                             found.begin(), found.end(),
                             [](const auto& e) { return e.second.outcome == Outcome::masked; })),
                         static_cast<std::uint64_t>(found.size()));
    };
    const auto [all_events, all] = masked(options);
    const auto rate = static_cast<double>(all_events) / static_cast<double>(all);
    EXPECT_GT(rate, 0.01);
    options.sampling.exhaustive = false;
    options.sampling.trials = 150;
    int held = 0;
    constexpr int samples = 60;
    for (int sample = 0; sample < samples; ++sample) {
        options.sampling.seed = static_cast<std::uint64_t>(sample);
        const auto [events, trials] = masked(options);
        const auto interval = wilson(events, trials, 0.95, all);
        held += interval.low <= rate && rate <= interval.high ? 1 : 0;
    }
    // 57 of 60 are expected; below 52 it would be one time in 300.
    EXPECT_GE(held, 52);
}

TEST(Campaign, AuditsAgainstBruteForce) {
    const auto model = load(digits);
    const auto inputs = random_inputs(model, 1, "random");
    CampaignOptions options;
    options.populations = {population(weights)};
    options.sampling.trials = 100;
    options.audit = 0.5;
    Campaign campaign(model, engine(), inputs, options);
    Collected collected;
    const auto summary = campaign.run(collected);
    EXPECT_GT(summary.audited, 20U);
    EXPECT_LT(summary.audited, 80U);
}

TEST(Campaign, RangesDetectAndProtect) {
    const auto model = load(digits);
    const auto inputs = random_inputs(model, 1, "random");
    CampaignOptions options;
    auto high = population(weights);
    high.bits = "30";
    options.populations = {high};
    options.sampling.trials = 300;
    options.monitoring.ranges = Ranges::observe;
    const auto harm = [](const Collected& c) {
        return std::count_if(c.found.begin(), c.found.end(), [](const auto& entry) {
            return entry.second.outcome == Outcome::sdc || entry.second.outcome == Outcome::due;
        });
    };
    const auto observed = collect(model, inputs, options);
    const auto detected = std::count_if(observed.found.begin(), observed.found.end(),
                                        [](const auto& entry) { return entry.second.detected; });
    EXPECT_GT(detected, harm(observed) / 2);
    options.monitoring.ranges = Ranges::clip;
    const auto clipped = collect(model, inputs, options);
    EXPECT_LT(harm(clipped), harm(observed));
    options.brute_force = true;
    EXPECT_TRUE(collect(model, inputs, options).found == clipped.found);
}

TEST(Campaign, RefusesWhatItCannotDo) {
    const auto model = load(digits);
    const auto inputs = random_inputs(model, 1, "random");
    const auto message = [&](const CampaignOptions& options) -> std::string {
        try {
            collect(model, inputs, options);
        } catch (const Error& e) {
            return std::string(e.what()) + " / " + e.hint();
        }
        return "";
    };
    CampaignOptions options;
    options.populations = {population(weights)};
    options.populations[0].ops = named("/stem/conv/Cnov");
    EXPECT_THAT(message(options), HasSubstr("no weights to change"));
    EXPECT_THAT(message(options), HasSubstr("/stem/conv/Conv"));
    options.populations[0].ops = every_op();
    options.populations[0].bits = "40";
    EXPECT_THAT(message(options), HasSubstr("no bit 40"));
    options.populations = {};
    options.sampling.list = {parse_faults("nothing [0] flip 3")};
    EXPECT_THAT(message(options), HasSubstr("no tensor 'nothing'"));
    options.sampling.list = {parse_faults("logits [0,10] flip 3")};
    EXPECT_THAT(message(options), HasSubstr("outside of a tensor of shape 1x10"));
    const auto noisy = load(test_model("random_ops"));
    const auto noise = random_inputs(noisy, 1, "random");
    CampaignOptions any;
    any.populations = {population(activations)};
    EXPECT_THROW(collect(noisy, noise, any), Error);
}

}  // namespace
}  // namespace trocar
