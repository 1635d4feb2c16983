#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "trocar/error.h"
#include "trocar/inject.h"
#include "trocar/inputs.h"

namespace trocar {
namespace {

using ::testing::HasSubstr;

class Importances : public ::testing::Test {
protected:
    Importances() {
        options.populations.emplace_back();
        options.sampling.trials = 4000;
        options.sampling.seed = 5;
    }
    Campaign campaign() const {
        EngineOptions engine;
        engine.search = {TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1"};
        engine.threads = 1;
        return {model,
                open_engine(engine),
                {1,
                 [this](std::uint64_t) {
                     InputSpec spec;
                     spec.fill = "random";
                     spec.unknown_dims = 1;
                     return CampaignInput{make_inputs(model, spec).values};
                 }},
                options};
    }
    std::string refusal() const {
        try {
            campaign();
        } catch (const Error& e) {
            return e.what();
        }
        return "no error";
    }
    Model model = load(TROCAR_SOURCE_DIR "/models/digits.onnx");
    CampaignOptions options;
};

bool is_bit(const Trial& trial, int bit) {
    return std::countr_zero(trial.faults.at(0).effect.mask) == bit;
}

TEST_F(Importances, DrawMoreOftenAndWeighLess) {
    options.sampling.importance = {parse_importance("bits:30=31")};
    const auto drawn = campaign();
    double seen = 0;
    double weights = 0;
    double weighted = 0;
    for (std::uint64_t i = 0; i < drawn.trial_count(); ++i) {
        const auto trial = drawn.trial(i);
        // Of 31 + 31 parts, half are bit 30; a uniform draw has it once in 32.
        EXPECT_DOUBLE_EQ(trial.weight, is_bit(trial, 30) ? 62.0 / 32 / 31 : 62.0 / 32);
        seen += is_bit(trial, 30) ? 1 : 0;
        weights += trial.weight;
        weighted += is_bit(trial, 30) ? trial.weight : 0;
    }
    const auto count = static_cast<double>(drawn.trial_count());
    EXPECT_NEAR(seen / count, 0.5, 0.04);
    EXPECT_NEAR(weights / count, 1, 0.05);
    EXPECT_NEAR(weighted / count, 1.0 / 32, 0.003);
    EXPECT_EQ(drawn.trial(17).faults, campaign().trial(17).faults);
}

TEST_F(Importances, OfLayersGoTogetherWithStrata) {
    options.sampling.importance = {parse_importance("layer:*=2"), parse_importance("bits:30=4")};
    options.sampling.by_bit = true;
    const auto drawn = campaign();
    for (std::uint64_t i = 0; i < drawn.trial_count(); i += 7) {
        EXPECT_EQ(drawn.trial(i).weight, 1);  // all of a stratum have the same chance
    }
}

TEST_F(Importances, AreRefusedWhereTheyMeanNothing) {
    EXPECT_THROW(parse_importance("bits:30"), Error);
    EXPECT_THROW(parse_importance("bits:70=2"), Error);
    EXPECT_THROW(parse_importance("weights=2"), Error);
    EXPECT_THROW(parse_importance("layer:x=0"), Error);
    options.sampling.importance = {parse_importance("layer:nothing*=2")};
    EXPECT_THAT(refusal(), HasSubstr("no layer with faults is named 'nothing*'"));
    options.sampling.importance = {parse_importance("bits:30=2")};
    options.sampling.exhaustive = true;
    EXPECT_THAT(refusal(), HasSubstr("all of them are tried"));
}

}  // namespace
}  // namespace trocar
