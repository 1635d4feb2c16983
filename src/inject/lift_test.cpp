#include "inject/lift.h"

#include <gtest/gtest.h>

#include <map>

#include "trocar/inject.h"
#include "trocar/inputs.h"
#include "trocar/session.h"

namespace trocar::inject {
namespace {

std::shared_ptr<Engine> lift_engine() {
    EngineOptions options;
    options.search = {TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1"};
    options.threads = 1;
    return open_engine(options);
}

Model lift_model(const std::string& name) {
    return load(TROCAR_SOURCE_DIR "/build/test-models/" + name + ".onnx");
}

CampaignInputs inputs(const Model& model) {
    return {2, [&model](std::uint64_t i) {
                InputSpec spec;
                spec.fill = "random";
                spec.seed = i;
                spec.unknown_dims = 3;
                return CampaignInput{make_inputs(model, spec).values};
            }};
}

class CollectedLifts : public CampaignObserver {
public:
    void results(const std::vector<TrialResult>& some, const std::vector<LayerEffect>&) override {
        for (const auto& result : some) {
            found[{result.trial, result.input}] = result;
        }
    }
    bool is_done(std::uint64_t, std::uint64_t) override { return false; }
    void progress(std::uint64_t, std::uint64_t) override {}
    std::map<std::pair<std::uint64_t, std::uint64_t>, TrialResult> found;
};

TEST(Lift, LeavesNoConstantInBodiesAndTheModelTheSame) {
    for (const auto* name : {"if", "trips", "nested", "same_names", "scan", "loop"}) {
        const auto model = lift_model(name);
        auto lifted = clone(model);
        lift_constants(lifted.graph);
        EXPECT_TRUE(lifted.graph.verify().empty()) << name;
        const auto given = inputs(model).get(1).values;
        Session before(model, lift_engine());
        Session after(lifted, lift_engine());
        const auto a = before.run(given);
        const auto b = after.run(given);
        ASSERT_EQ(a.size(), b.size()) << name;
        for (std::size_t i = 0; i < a.size(); ++i) {
            EXPECT_TRUE(std::ranges::equal(a[i].value.bytes(), b[i].value.bytes())) << name;
        }
    }
}

TEST(Lift, NamesConstantsByOpAttributeAndName) {
    auto model = clone(lift_model("trips"));
    lift_constants(model.graph);
    EXPECT_TRUE(model.graph.find_tensor("loop.body.gain"));
    auto other = clone(lift_model("if"));
    lift_constants(other.graph);
    EXPECT_TRUE(other.graph.find_tensor("choose.else_branch.gain"));
}

// Weights in bodies: every bit of all of them, with the bits of brute force, in both views.
TEST(Lift, MakesConstantsOfBodiesFaultSites) {
    for (const auto* name : {"trips", "if", "scan"}) {
        for (const auto view : {View::deployed, View::source}) {
            const auto model = lift_model(name);
            CampaignOptions options;
            options.view = view;
            options.populations.emplace_back();
            options.sampling.exhaustive = true;
            Campaign fast(model, lift_engine(), inputs(model), options);
            CollectedLifts accelerated;
            fast.run(accelerated);
            EXPECT_TRUE(fast.notes().empty()) << name;
            options.brute_force = true;
            CollectedLifts plain;
            Campaign(model, lift_engine(), inputs(model), options).run(plain);
            EXPECT_EQ(accelerated.found, plain.found) << name;
        }
    }
}

TEST(Lift, FaultsInBodiesHaveTheirEffect) {
    const auto model = lift_model("trips");
    CampaignOptions options;
    options.view = View::source;
    options.sampling.list = {parse_faults("loop.body.gain [0] set 1"),
                             parse_faults("loop.body.gain>loop [0] set 0.5")};
    Campaign campaign(model, lift_engine(), inputs(model), options);
    CollectedLifts all;
    campaign.run(all);
    EXPECT_GT((all.found[{0, 0}].max_abs), 0);
    EXPECT_EQ((all.found[{1, 0}].outcome), Outcome::masked);
    EXPECT_EQ(campaign.trial(0).layer, "loop");
    EXPECT_EQ(campaign.trial(0).target, "weights");
}

}  // namespace
}  // namespace trocar::inject
