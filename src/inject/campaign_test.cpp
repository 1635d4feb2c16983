#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "inject/circuit.h"
#include "inject/runner.h"
#include "inject/universe.h"
#include "trocar/error.h"
#include "trocar/inject.h"
#include "trocar/inputs.h"

namespace trocar {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<Engine> engine() {
    static const auto opened = [] {
        EngineOptions options;
        options.search = {TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1"};
        options.threads = 1;
        return open_engine(options);
    }();
    return opened;
}

const std::string digits = TROCAR_SOURCE_DIR "/models/digits.onnx";

std::string test_model(const std::string& name) {
    return TROCAR_SOURCE_DIR "/build/test-models/" + name + ".onnx";
}

CampaignInputs random_inputs(const Model& model, std::uint64_t count, const char* fill) {
    return {count, [&model, fill](std::uint64_t i) {
                InputSpec spec;
                spec.fill = fill;
                spec.seed = i;
                spec.unknown_dims = 1;
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
    }
    bool is_done(std::uint64_t trial, std::uint64_t input) override {
        return done.contains({trial, input});
    }
    void progress(std::uint64_t, std::uint64_t) override {}
    bool stop() override { return found.size() >= stop_after; }

    std::map<std::pair<std::uint64_t, std::uint64_t>, TrialResult> found;
    std::set<std::pair<std::uint64_t, std::uint64_t>> done;
    std::size_t layers = 0;
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

class Identity : public ::testing::TestWithParam<Case> {};

// What all accelerations together give is what brute force gives, to the last bit of every metric.
TEST_P(Identity, OfAcceleratedRunsAndBruteForce) {
    const auto& c = GetParam();
    const auto model = load(std::string(c.name) == "digits" ? digits : test_model(c.name));
    const auto inputs = random_inputs(model, 2, c.fill);
    CampaignOptions options;
    options.view = c.view;
    options.populations = {population(c.target)};
    options.sampling.trials = c.trials;
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

}  // namespace
}  // namespace trocar
