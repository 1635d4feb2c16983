#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "base/fork_server.h"
#include "inject/supervise.h"
#include "inject/test_campaigns.h"
#include "run/test_engines.h"
#include "trocar/error.h"
#include "trocar/inject.h"
#include "trocar/inputs.h"

namespace trocar {
namespace {

using testing::digits;
using testing::misbehave;

using ::testing::HasSubstr;

// An engine whose threads are in the process where it was started: there alone it compiles.
class HomeEngine : public Engine {
public:
    explicit HomeEngine(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
    const EngineInfo& info() const override { return engine_->info(); }
    std::unique_ptr<Program> compile(const Model& model, const CompileOptions& options) override {
        home_ = home_ == 0 ? ::getpid() : home_;
        if (home_ != ::getpid() || compiled_ == most) {
            throw Error(Fault::engine, "its threads are not here");
        }
        ++compiled_;
        return engine_->compile(model, options);
    }
    int most = -1;  // programs that it compiles before it fails

private:
    std::shared_ptr<Engine> engine_;
    pid_t home_ = 0;
    int compiled_ = 0;
};

std::shared_ptr<HomeEngine> home_engine() {
    return std::make_shared<HomeEngine>(open_engine(testing::engine_options("onnxruntime")));
}

CampaignInputs inputs_for(const Model& model) {
    return {2, [&model](std::uint64_t i) {
                InputSpec spec;
                spec.fill = "random";
                spec.seed = i;
                spec.unknown_dims = 1;
                return CampaignInput{make_inputs(model, spec).values, 3, ""};
            }};
}

CampaignOptions options_for(const std::string& what) {
    Population population;
    CampaignOptions options;
    options.view = View::source;
    options.isolate = true;
    options.sampling.trials = 60;
    if (what == "misbehave") {
        population.target = Population::Target::activations;
        population.ops = parse_selector("type:Relu");
        population.effect.kind = Effect::Kind::custom;
        population.effect.name = "misbehave";
        options.monitoring.effects = {{"misbehave", misbehave}};
        options.time_limit = 0.5;
        options.sampling.trials = 30;
    } else {
        population.target = Population::Target::weights;
    }
    options.populations = {population};
    return options;
}

void make(const std::string& what, const CampaignTaker& take) {
    const auto model = load(digits);
    if (what == "throw") {
        throw Error(Fault::engine, "the engine is not here");
    }
    if (what == "crash") {
        std::raise(SIGKILL);
    }
    auto options = options_for(what);
    options.sampling.trials -= what == "other" ? 1 : 0;
    take(model, home_engine(), inputs_for(model), options);
}

class FoundTrials : public CampaignObserver {
public:
    void results(const std::vector<TrialResult>& some, const std::vector<LayerEffect>&) override {
        for (const auto& result : some) {
            EXPECT_TRUE(found.emplace(std::pair(result.trial, result.input), result).second);
        }
    }
    bool is_done(std::uint64_t, std::uint64_t) override { return false; }
    void progress(std::uint64_t, std::uint64_t) override {}
    std::map<std::pair<std::uint64_t, std::uint64_t>, TrialResult> found;
};

struct Ran {
    std::map<std::pair<std::uint64_t, std::uint64_t>, TrialResult> found;
    std::vector<std::string> notes;
};

Ran run(std::shared_ptr<Engine> engine, const CampaignOptions& options) {
    const auto model = load(digits);
    Campaign campaign(model, std::move(engine), inputs_for(model), options);
    FoundTrials found;
    campaign.run(found);
    return {std::move(found.found), campaign.notes()};
}

class CampaignWorkers : public ::testing::Test {
protected:
    void SetUp() override {
        try {
            ForkServer::start();
        } catch (const Error& e) {
            GTEST_SKIP() << e.what();  // other tests in this process left threads
        }
    }
};

TEST_F(CampaignWorkers, StartTheEngineThatDoesNotLiveOnInAChild) {
    auto options = options_for("weights");
    options.isolate = false;
    const auto here = run(home_engine(), options);
    options.isolate = true;
    options.recipe = {make, "weights"};
    for (const int workers : {1, 3}) {
        options.workers = workers;
        const auto there = run(home_engine(), options);
        EXPECT_TRUE(there.notes.empty()) << there.notes[0];
        EXPECT_EQ(there.found, here.found);
    }
    for (const auto& [which, result] : here.found) {
        EXPECT_NE(result.outcome, Outcome::failed) << result.failure;
    }
}

TEST_F(CampaignWorkers, CrashAndHangAsForkedChildrenDo) {
    auto options = options_for("misbehave");
    const auto forked = run(open_engine(testing::engine_options("onnxruntime")), options);
    options.recipe = {make, "misbehave"};
    for (const int workers : {1, 2}) {
        options.workers = workers;
        const auto there = run(home_engine(), options);
        EXPECT_TRUE(there.notes.empty()) << there.notes[0];
        EXPECT_EQ(there.found, forked.found);
    }
    std::map<Outcome, int> outcomes;
    for (const auto& [which, result] : forked.found) {
        ++outcomes[result.outcome];
    }
    EXPECT_GT(outcomes[Outcome::crash], 0);
    EXPECT_GT(outcomes[Outcome::hang], 0);
    EXPECT_EQ(outcomes[Outcome::failed], 0);
}

TEST_F(CampaignWorkers, ReplayTrialsThatAreNotDrawn) {
    auto options = options_for("weights");
    const auto model = load(digits);
    Trial trial;
    trial.number = 1234;
    trial.faults = parse_faults("/conv1/Conv/weight [0,0,0,0] flip 30");
    trial.faults[0].tensor =
        Campaign(model, home_engine(), inputs_for(model), options).trial(0).faults.at(0).tensor;
    std::vector<LayerEffect> effects;
    options.isolate = false;
    const auto here =
        Campaign(model, home_engine(), inputs_for(model), options).replay(trial, 1, effects);
    std::vector<LayerEffect> others;
    options.isolate = true;
    options.recipe = {make, "weights"};
    Campaign campaign(model, home_engine(), inputs_for(model), options);
    EXPECT_EQ(campaign.replay(trial, 1, others), here);
    EXPECT_TRUE(campaign.notes().empty());
    EXPECT_EQ(others.size(), effects.size());
    EXPECT_FALSE(effects.empty());
}

TEST_F(CampaignWorkers, ReplayEveryOutcome) {
    auto options = options_for("misbehave");
    options.recipe = {make, "misbehave"};
    const auto ran = run(home_engine(), options);
    const auto model = load(digits);
    std::map<Outcome, int> replayed;
    for (const auto& [which, result] : ran.found) {
        if (replayed[result.outcome]++ == 0) {
            Campaign campaign(model, home_engine(), inputs_for(model), options);
            std::vector<LayerEffect> effects;
            EXPECT_EQ(campaign.replay(campaign.trial(which.first), which.second, effects), result);
        }
    }
    EXPECT_GT(replayed[Outcome::crash], 0);
    EXPECT_GT(replayed[Outcome::hang], 0);
}

TEST_F(CampaignWorkers, ThatCannotBeMadeAreDoneWithout) {
    auto options = options_for("weights");
    options.isolate = false;
    const auto here = run(home_engine(), options);
    options.isolate = true;
    const std::map<std::string, std::string> why{{"throw", "the engine is not here"},
                                                 {"crash", "ended (SIGKILL)"},
                                                 {"other", "same bits in a process of its own"}};
    for (const auto& [what, sentence] : why) {
        options.recipe = {make, what};
        const auto there = run(home_engine(), options);
        EXPECT_EQ(there.found, here.found);
        ASSERT_EQ(there.notes.size(), 1U);
        EXPECT_THAT(there.notes[0], HasSubstr("not isolated"));
        EXPECT_THAT(there.notes[0], HasSubstr(sentence));
    }
}

// Without the server: what was counted as a fault's doing is the process's.
TEST(ForkedEngine, ThatCompilesNothingThereIsNotAnOutcome) {
    auto options = options_for("weights");
    const auto isolated = run(home_engine(), options);
    ASSERT_EQ(isolated.notes.size(), 1U);
    EXPECT_THAT(isolated.notes[0], HasSubstr("its threads are not here"));
    for (const auto& [which, result] : isolated.found) {
        EXPECT_NE(result.outcome, Outcome::failed) << result.failure;
    }
    options.isolate = false;
    EXPECT_EQ(run(home_engine(), options).found, isolated.found);
}

TEST(ForkedEngine, ThatFailsWithoutAFaultStopsTheCampaign) {
    auto options = options_for("weights");
    options.isolate = false;
    options.accelerate.channels = false;  // a program for every trial
    for (const bool brute_force : {false, true}) {
        options.brute_force = brute_force;
        const auto engine = home_engine();
        engine->most = 30;  // the golden runs take fewer, all trials more
        try {
            run(engine, options);
            ADD_FAILURE() << brute_force;
        } catch (const Error& e) {
            EXPECT_EQ(e.fault(), Fault::engine);
            EXPECT_THAT(e.what(), HasSubstr("fails without a fault, too"));
        }
    }
}

// Half floats: the golden run, brute force and a run cut everywhere round alike.
class HalfFloats : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Engines, HalfFloats,
                         ::testing::Values("onnxruntime", "openvino", "reference"),
                         [](const auto& engine) { return engine.param; });

TEST_P(HalfFloats, GoldenRunsAreThoseCutEverywhere) {
    const auto& name = GetParam();
    if (!testing::engine_info(name).available) {
        GTEST_SKIP() << "there is no " << name;
    }
    const auto model = load(TROCAR_SOURCE_DIR "/build/test-models/half_layers.onnx");
    const auto engine = open_engine(testing::engine_options(name));
    CampaignOptions options;
    options.view = View::source;
    options.audit = 1;
    options.sampling.trials = 100;
    for (const auto target : {Population::Target::weights, Population::Target::activations}) {
        Population population;
        population.target = target;
        options.populations.push_back(population);
    }
    const auto inputs = inputs_for(model);
    Campaign campaign(model, engine, inputs, options);
    class Goldens : public FoundTrials {
    public:
        void golden(const GoldenResult& golden) override { all.push_back(golden); }
        std::vector<GoldenResult> all;
    } goldens;
    campaign.run(goldens);  // every one of them by brute force, too
    EXPECT_EQ(goldens.found.size(), 200U);
    SessionOptions cut;
    cut.cut = parse_selector("all");
    Session session(model, engine, cut);
    SessionOptions plain;
    plain.compile.optimize = CompileOptions::Optimize::none;
    Session whole(model, engine, plain);
    bool same = true;
    for (const auto& golden : goldens.all) {
        const auto values = inputs.get(golden.input).values;
        const auto outputs = session.run(values);
        EXPECT_TRUE(std::ranges::equal(outputs[0].value.bytes(), golden.outputs[0].value.bytes()));
        same = same && (golden.input > 0 || std::ranges::equal(whole.run(values)[0].value.bytes(),
                                                               outputs[0].value.bytes()));
    }
    EXPECT_EQ(campaign.whole_run().empty(), same);
    if (!same) {
        EXPECT_THAT(campaign.whole_run(), HasSubstr("in 'y'; run whole, the engine computes"));
        EXPECT_EQ(campaign.notes(), std::vector{campaign.whole_run()});
    }
}

}  // namespace
}  // namespace trocar
