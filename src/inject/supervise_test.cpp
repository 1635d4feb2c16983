#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "inject/test_campaigns.h"
#include "trocar/error.h"
#include "trocar/inject.h"
#include "trocar/inputs.h"

namespace trocar {
namespace {

using testing::misbehave;

using ::testing::HasSubstr;

std::shared_ptr<Engine> test_engine() {
    EngineOptions options;
    options.search = {TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1"};
    options.threads = 1;
    return open_engine(options);
}

class CollectedTrials : public CampaignObserver {
public:
    void results(const std::vector<TrialResult>& some, const std::vector<LayerEffect>&) override {
        for (const auto& result : some) {
            EXPECT_TRUE(found.emplace(std::pair(result.trial, result.input), result).second);
        }
    }
    bool is_done(std::uint64_t trial, std::uint64_t input) override {
        return found.contains({trial, input});
    }
    void progress(std::uint64_t, std::uint64_t) override {}
    void golden(const GoldenResult& golden) override { outputs = golden.outputs.size(); }
    bool stop() override { return found.size() >= stop_after; }

    std::map<std::pair<std::uint64_t, std::uint64_t>, TrialResult> found;
    std::size_t outputs = 0;
    std::size_t stop_after = std::numeric_limits<std::size_t>::max();
};

class Supervised : public ::testing::Test {
protected:
    Supervised() {
        Population population;
        population.target = Population::Target::activations;
        population.ops = parse_selector("type:Relu");
        population.effect.kind = Effect::Kind::custom;
        population.effect.name = "misbehave";
        options.view = View::source;
        options.populations = {population};
        options.sampling.trials = 40;
        options.monitoring.effects = {{"misbehave", misbehave}};
        options.isolate = true;
        options.time_limit = 0.5;
    }
    CampaignInputs inputs(std::uint64_t count) const {
        return {count, [this](std::uint64_t i) {
                    InputSpec spec;
                    spec.fill = "random";
                    spec.seed = i;
                    spec.unknown_dims = 1;
                    return CampaignInput{make_inputs(model, spec).values, 3, ""};
                }};
    }
    CollectedTrials run(CollectedTrials collected = {}) {
        Campaign campaign(model, test_engine(), inputs(2), options);
        stopped = campaign.run(collected).stopped;
        return collected;
    }
    Model model = load(TROCAR_SOURCE_DIR "/models/digits.onnx");
    CampaignOptions options;
    bool stopped = false;
};

TEST_F(Supervised, CrashesAndHangsAreOutcomesWhateverTheWorkers) {
    const auto all = run();
    ASSERT_EQ(all.found.size(), 80U);
    EXPECT_EQ(all.outputs, 1U);
    std::map<Outcome, std::set<std::string>> details;
    Campaign campaign(model, test_engine(), inputs(2), options);
    for (const auto& [which, result] : all.found) {
        const auto trial = campaign.trial(which.first);
        details[result.outcome].insert(result.failure);
        EXPECT_EQ(result.golden_top >= 0, true);
        EXPECT_EQ(result.golden_correct.has_value(), true);
        if (result.outcome <= Outcome::hang) {
            EXPECT_EQ(result.faulty_correct, false);
            EXPECT_EQ(result.faulty_top, -1);
        }
    }
    EXPECT_EQ(details[Outcome::crash], std::set<std::string>{"SIGSEGV"});
    EXPECT_EQ(details[Outcome::hang], std::set<std::string>{"over 0.5 s"});
    options.workers = 3;
    EXPECT_EQ(run().found, all.found);
    options.brute_force = true;
    options.workers = 1;
    EXPECT_EQ(run().found, all.found);
}

TEST_F(Supervised, CampaignsGoOnWhereTheyWereStopped) {
    options.workers = 2;
    const auto all = run();
    CollectedTrials part;
    part.stop_after = 50;
    part = run(std::move(part));
    EXPECT_TRUE(stopped);
    EXPECT_LT(part.found.size(), 80U);
    part.stop_after = 1000;
    EXPECT_EQ(run(std::move(part)).found, all.found);
}

TEST_F(Supervised, ResultsAreThoseOfThisProcess) {
    options.populations[0].effect = {};
    options.sampling.trials = 3000;
    options.workers = 2;
    options.audit = 0.05;
    const auto apart = run();
    options.isolate = false;
    EXPECT_EQ(run().found, apart.found);
}

TEST_F(Supervised, ReplaySaysWhatBecameOfATrial) {
    options.monitoring.ranges = Ranges::observe;
    Campaign campaign(model, test_engine(), inputs(1), options);
    CollectedTrials all;
    campaign.run(all);
    std::map<Outcome, int> seen;
    for (const auto& [which, result] : all.found) {
        if (seen[result.outcome]++ > 0) {
            continue;
        }
        std::vector<LayerEffect> effects;
        EXPECT_EQ(campaign.replay(campaign.trial(which.first), 0, effects), result);
        EXPECT_EQ(effects.empty(), result.outcome <= Outcome::hang);
    }
    EXPECT_GE(seen.size(), 3U);
}

TEST_F(Supervised, ErrorsOfTheChildAreThrownHere) {
    options.sampling.list = {parse_faults("nothing [0] flip 3")};
    try {
        run();
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::usage);
        EXPECT_THAT(e.what(), HasSubstr("there is no tensor 'nothing'"));
    }
}

// A flipped bit in how often a Loop runs.
TEST_F(Supervised, LoopsThatNeverEndAreHangs) {
    model = load(TROCAR_SOURCE_DIR "/build/test-models/trips.onnx");
    options.populations = {};
    options.sampling.list = {parse_faults("count [*] flip 60"), parse_faults("count [*] flip 2")};
    const auto all = run();
    ASSERT_EQ(all.found.size(), 4U);
    EXPECT_EQ(all.found.at({0, 0}).outcome, Outcome::hang);
    EXPECT_GT(all.found.at({1, 0}).outcome, Outcome::failed);
}

}  // namespace
}  // namespace trocar
