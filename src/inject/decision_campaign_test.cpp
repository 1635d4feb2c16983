#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "inject/test_campaigns.h"
#include "trocar/error.h"
#include "trocar/inject.h"
#include "trocar/inputs.h"

namespace trocar {
namespace {

using testing::engine;

using ::testing::HasSubstr;

// Campaigns of given faults on small models with different outputs.
class Decided : public CampaignObserver {
public:
    Decided(const std::string& model, const std::string& how,
            const std::vector<std::string>& faults, std::uint64_t inputs = 1)
        : model_(load(TROCAR_SOURCE_DIR "/build/test-models/" + model + ".onnx")) {
        options.view = View::source;
        options.monitoring.decision = parse_decision(how);
        options.audit = 1;
        for (const auto& fault : faults) {
            options.sampling.list.push_back(parse_faults(fault));
        }
        inputs_ = {inputs, [this](std::uint64_t i) {
                       InputSpec spec;
                       spec.fill = "random(-2,2)";
                       spec.seed = i;
                       return CampaignInput{make_inputs(model_, spec).values, label, ""};
                   }};
    }
    void run() {
        Campaign campaign(model_, engine(), inputs_, options);
        decision = text(campaign.decision().decision);
        campaign.run(*this);
    }
    void golden(const GoldenResult& result) override { goldens[result.input] = result; }
    void results(const std::vector<TrialResult>& some, const std::vector<LayerEffect>&) override {
        for (const auto& result : some) {
            found[{result.trial, result.input}] = result;
        }
    }
    bool is_done(std::uint64_t, std::uint64_t) override { return false; }
    void progress(std::uint64_t, std::uint64_t) override {}

    CampaignOptions options;
    std::optional<std::int64_t> label;
    std::string decision;
    std::map<std::uint64_t, GoldenResult> goldens;
    std::map<std::pair<std::uint64_t, std::uint64_t>, TrialResult> found;

private:
    Model model_;
    CampaignInputs inputs_;
};

std::string outcome(const TrialResult& result) {
    return name(result.outcome) + " " + std::to_string(result.changed) + "/" +
           std::to_string(result.positions);
}

TEST(CampaignDecisions, OnTokensCountTokens) {
    Decided c("token_decoder", "auto",
              {"next [#2] set 100", "next [#2] set 100 + next [#4] set 100", "next [#0] add 0"});
    c.run();
    EXPECT_EQ(c.decision, "equal:next");
    EXPECT_EQ(outcome(c.found.at({0, 0})), "sdc 1/6");
    EXPECT_EQ(outcome(c.found.at({1, 0})), "sdc 2/6");
    EXPECT_EQ(outcome(c.found.at({2, 0})), "masked 0/6");
    EXPECT_EQ(c.found.at({0, 0}).golden_top, c.goldens.at(0).top);
}

TEST(CampaignDecisions, OnBoxesFollowTheirNumber) {
    Decided c("box_detector", "auto", {"labels [#15] set 9", "labels [#0] set 9"}, 8);
    c.run();
    EXPECT_EQ(c.decision, "equal:labels");
    int fewer = 0;
    int more = 0;
    for (std::uint64_t i = 0; i < 8; ++i) {
        const auto count = std::to_string(c.goldens.at(i).outputs.at(1).value.element_count());
        EXPECT_EQ(outcome(c.found.at({1, i})), "sdc 1/" + count);
        // An element that the tensor does not have for this input does not change.
        const bool there = std::stoi(count) > 15;
        EXPECT_EQ(outcome(c.found.at({0, i})), (there ? "sdc 1/" : "masked 0/") + count);
        (there ? more : fewer) += 1;
    }
    EXPECT_GT(fewer, 0);
    EXPECT_GT(more, 0);
}

TEST(CampaignDecisions, OnBoxesHoldWithEveryAcceleration) {
    for (const auto view : {View::source, View::deployed}) {
        for (const int together : {1, 3}) {
            Decided c("box_detector", "auto", {}, 8);
            Population activations;
            activations.target = Population::Target::activations;
            c.options.view = view;
            c.options.populations = {Population(), activations};
            c.options.sampling.trials = 80;
            c.options.sampling.faults_per_trial = together;
            EXPECT_NO_THROW(c.run());  // all audited
            EXPECT_EQ(c.found.size(), 640u);
        }
    }
}

TEST(CampaignDecisions, OnPixelsCountPixels) {
    Decided c("pixel_classes", "auto", {"out [0,3,2,5] set 1000", "out [0,:,0,:] set 0"});
    c.run();
    EXPECT_EQ(c.decision, "scores:out:1");
    const auto& scores = c.goldens.at(0).outputs.at(0).value;
    const auto top = [&](std::size_t pixel) {
        std::size_t best = 0;
        for (std::size_t i = 0; i < 5; ++i) {
            best = scores.as<float>()[i * 64 + pixel] > scores.as<float>()[best * 64 + pixel]
                       ? i
                       : best;
        }
        return best;
    };
    ASSERT_NE(top(2 * 8 + 5), 3u);
    EXPECT_EQ(outcome(c.found.at({0, 0})), "sdc 1/64");
    // Where all are equal the first class is chosen.
    std::uint64_t others = 0;
    for (std::size_t pixel = 0; pixel < 8; ++pixel) {
        others += top(pixel) != 0 ? 1 : 0;
    }
    EXPECT_GT(others, 0u);
    EXPECT_EQ(c.found.at({1, 0}).changed, others);
}

TEST(CampaignDecisions, OnANumberNeedALimit) {
    const std::vector<std::string> faults{"price [0,0] add 0.25", "price [0,0] add 1",
                                          "price [0,0] set nan"};
    Decided none("one_number", "auto", faults);
    none.label = 3;
    none.run();
    EXPECT_EQ(none.decision, "none");
    EXPECT_EQ(outcome(none.found.at({0, 0})), "benign 0/0");
    EXPECT_EQ(outcome(none.found.at({1, 0})), "benign 0/0");
    EXPECT_EQ(none.found.at({2, 0}).outcome, Outcome::due);
    EXPECT_EQ(none.found.at({0, 0}).golden_correct, std::nullopt);
    Decided error("one_number", "error:0.5", faults);
    error.run();
    EXPECT_EQ(outcome(error.found.at({0, 0})), "benign 0/1");
    EXPECT_EQ(outcome(error.found.at({1, 0})), "sdc 1/1");
    EXPECT_EQ(outcome(error.found.at({2, 0})), "due 1/1");
}

TEST(CampaignDecisions, AreTakenAfterPostprocessing) {
    Decided c("one_number", "equal:sign", {"price [0,0] set 1", "price [0,0] set -1"});
    c.options.monitoring.postprocess = [] {
        return [](const std::vector<NamedValue>& outputs, const CampaignInput&) {
            const std::int64_t sign = outputs.at(0).value.as<float>()[0] < 0 ? 1 : 0;
            return std::vector<NamedValue>{
                {"sign", Value::copy(DType::i64, {1}, std::as_bytes(std::span(&sign, 1)))}};
        };
    };
    c.label = 0;
    c.run();
    const auto& positive = c.found.at({0, 0});
    const auto& negative = c.found.at({1, 0});
    EXPECT_NE(positive.outcome == Outcome::sdc, negative.outcome == Outcome::sdc);
    EXPECT_EQ(positive.faulty_correct, true);
    EXPECT_EQ(negative.faulty_correct, false);
    EXPECT_EQ(positive.golden_correct, c.goldens.at(0).top == 0);
}

TEST(CampaignDecisions, RefuseOnlyCorrectWithoutAClassForEachInput) {
    Decided c("token_decoder", "auto", {"next [#2] set 100"});
    c.label = 1;
    c.options.monitoring.only_correct = true;
    try {
        c.run();
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::usage);
        EXPECT_THAT(e.what(), HasSubstr("the decision is 'equal:next' at 6 positions"));
    }
}

}  // namespace
}  // namespace trocar
