#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/predict_synthetic.h"
#include "trocar/error.h"
#include "trocar/op_predict.h"

namespace trocar {
namespace {

using How = OpPrediction::How;
using synthetic::conv;
using synthetic::law;
using synthetic::machine;
using synthetic::measured;
using synthetic::pointwise;
using synthetic::reshape;

double off(double predicted, double truth) {
    return std::abs(predicted / truth - 1);
}

Fault fault_of(const std::vector<OpSample>& samples) {
    try {
        OpPredictor predictor(samples);
    } catch (const Error& error) {
        return error.fault();
    }
    return Fault::internal;
}

TEST(OpPredictor, IsNearOnOperatorsItHasNotSeenAndItsIntervalsHold) {
    constexpr double noise = 0.03;
    OpPredictor predictor(machine(500, noise, 1));
    double error = 0;
    double covered = 0;
    std::vector<OpSample> fresh = machine(600, noise, 2);
    for (const OpSample& sample : fresh) {
        OpPrediction one = predictor.predict(sample.features);
        EXPECT_NE(one.how, How::exact);
        error += off(one.ns, sample.ns) / 600;
        covered += one.low <= sample.ns && sample.ns <= one.high ? 1 : 0;
        EXPECT_LT(one.low, one.ns);
        EXPECT_LT(one.ns, one.high);
    }
    // The noise alone makes 2.4 %.
    EXPECT_LT(error, 0.045);
    EXPECT_GE(covered / 600, 0.85);
    EXPECT_LE(covered / 600, 0.95);
}

TEST(OpPredictor, StaysNearTheRooflineBeyondTheSizesItHasSeen) {
    OpPredictor predictor(machine(400, 0.02, 1));
    for (double size : {224.0, 448.0}) {
        OpFeatures large = conv(512, 512, 3, size);
        OpPrediction one = predictor.predict(large);
        EXPECT_EQ(one.how, How::model);
        EXPECT_LT(std::abs(std::log(one.ns / law(large))), std::log(1.3)) << size;
        EXPECT_TRUE(one.far) << one.distance;
        EXPECT_LE(one.low, law(large));
        EXPECT_GE(one.high, law(large));
    }
    // Ten times the work is ten times the time, whatever the trees say.
    double ratio = predictor.predict(pointwise("Add", 4096, 320)).ns /
                   predictor.predict(pointwise("Add", 4096, 101.19)).ns;
    EXPECT_NEAR(ratio, 10, 1);
}

TEST(OpPredictor, FindsTheMachinesPeaks) {
    OpPredictor predictor(machine(400, 0.02, 1));
    EXPECT_NEAR(predictor.peaks().bytes, synthetic::bytes, 0.1 * synthetic::bytes);
    // No operator of the machine is faster than flops / 1.3.
    EXPECT_NEAR(predictor.peaks().flops, synthetic::flops / 1.3, 0.1 * synthetic::flops);
    EXPECT_NEAR(predictor.peaks().dispatch_ns, synthetic::dispatch_ns,
                0.2 * synthetic::dispatch_ns);
    OpPeaks given{1e12, 1e11, 500};
    OpPredictor told(machine(50, 0.02, 1), given);
    EXPECT_EQ(told.peaks().flops, 1e12);
    EXPECT_EQ(told.peaks().bytes, 1e11);
    EXPECT_EQ(told.peaks().dispatch_ns, 500);
}

TEST(OpPredictor, LearnsTheStairsOfChannels) {
    OpPredictor predictor(machine(1500, 0.01, 1));
    // 17 channels cost as much as 32.
    double at_17 = predictor.predict(conv(100, 17, 3, 28)).ns / law(conv(100, 17, 3, 28));
    double at_32 = predictor.predict(conv(100, 32, 3, 28)).ns / law(conv(100, 32, 3, 28));
    EXPECT_NEAR(at_17, 1, 0.2);
    EXPECT_NEAR(at_32, 1, 0.2);
}

TEST(OpPredictor, TakesTypesItHasNeverSeenFromTheRoofline) {
    OpPredictor predictor(machine(300, 0.02, 1));
    OpFeatures strange = pointwise("Gelu", 64, 56);
    OpPrediction one = predictor.predict(strange);
    EXPECT_EQ(one.how, How::model);
    EXPECT_TRUE(one.far);
    EXPECT_GT(one.distance, 5);
    EXPECT_LT(std::abs(std::log(one.ns / law(strange))), std::log(2));
    EXPECT_GE(one.high / one.ns, 2.9);

    // With one sample of it, no error of it is known: its interval is wider than that of others.
    std::vector<OpSample> samples = machine(300, 0.02, 1);
    samples.push_back(measured(strange, 0));
    OpPrediction once = OpPredictor(samples).predict(pointwise("Gelu", 70, 56));
    OpPrediction often = OpPredictor(samples).predict(pointwise("Relu", 70, 56));
    EXPECT_FALSE(once.far);
    EXPECT_GT(once.high / once.ns, often.high / often.ns);

    OpFeatures half = conv(64, 64, 3, 28);
    half.dtype = "float16";
    EXPECT_TRUE(predictor.predict(half).far);
}

TEST(OpPredictor, AnswersWithWhatWasMeasured) {
    std::vector<OpSample> samples = machine(50, 0.1, 1);
    OpPredictor predictor(samples);
    for (const OpSample& sample : samples) {
        OpPrediction one = predictor.predict(sample.features, sample.key);
        EXPECT_EQ(one.how, How::exact);
        EXPECT_EQ(one.ns, sample.ns);
        EXPECT_EQ(one.watts, sample.watts);
        EXPECT_EQ(one.distance, 0);
        EXPECT_FALSE(one.far);
        EXPECT_NEAR(one.high, sample.ns * (1 + 0.1645), sample.ns * 1e-3);
        EXPECT_NEAR(one.low, sample.ns * (1 - 0.1645), sample.ns * 1e-3);
    }
    EXPECT_NE(predictor.predict(samples[0].features).how, How::exact);
    EXPECT_LT(off(predictor.predict(samples[0].features).ns, samples[0].ns), 0.2);
    EXPECT_NE(predictor.predict(samples[0].features, "another").how, How::exact);
}

TEST(OpPredictor, TakesTheMedianOfSamplesOfOneKey) {
    std::vector<OpSample> samples(3, measured(conv(16, 16, 3, 14), 0));
    samples[0].ns = 100;
    samples[1].ns = 5000;
    samples[2].ns = 120;
    OpPredictor predictor(samples);
    EXPECT_EQ(predictor.size(), 1);
    EXPECT_EQ(predictor.predict(samples[0].features, samples[0].key).ns, 120);
}

TEST(OpPredictor, InterpolatesBetweenNeighboursBetterThanItsModel) {
    // A kernel that is three times slower than its kind, of which two sizes are known.
    std::vector<OpSample> samples = machine(300, 0.01, 1);
    auto odd = [](double channels) {
        OpFeatures f = conv(channels, 64, 3, 28);
        f.attributes = "kernel=3 dilation=2";
        return f;
    };
    for (double channels : {32.0, 128.0}) {
        OpSample sample = measured(odd(channels), 0);
        sample.ns *= 3;
        samples.push_back(sample);
    }
    OpPredictor predictor(samples);
    OpPrediction between = predictor.predict(odd(64));
    EXPECT_EQ(between.how, How::interpolated);
    OpFeatures other = odd(64);
    other.attributes = "kernel=3 dilation=3";
    OpPrediction model = predictor.predict(other);
    EXPECT_EQ(model.how, How::model);
    EXPECT_LT(off(between.ns, 3 * law(odd(64))), off(model.ns, 3 * law(odd(64))));
    // Outside of the two there is nothing to interpolate between.
    EXPECT_EQ(predictor.predict(odd(1024)).how, How::model);
    EXPECT_EQ(predictor.predict(odd(4)).how, How::model);
}

TEST(OpPredictor, ConnectsTwoNeighboursByTheLineInLogs) {
    std::vector<OpSample> samples{measured(conv(32, 64, 3, 28), 0),
                                  measured(conv(128, 64, 3, 28), 0)};
    OpPredictor predictor(samples);
    OpPrediction one = predictor.predict(conv(64, 64, 3, 28));
    EXPECT_EQ(one.how, How::interpolated);
    EXPECT_LT(off(one.ns, law(conv(64, 64, 3, 28))), 0.05);
}

TEST(OpPredictor, WithoutSamplesCannotPredict) {
    OpPredictor predictor({});
    EXPECT_EQ(predictor.size(), 0);
    EXPECT_THROW(predictor.predict(conv(8, 8, 1, 7), "key"), Error);
}

TEST(OpPredictor, OfOneSampleScalesItAndSaysHowLittleItKnows) {
    OpPredictor predictor({measured(conv(64, 64, 3, 28), 0)});
    OpPrediction same = predictor.predict(conv(64, 64, 3, 28));
    EXPECT_LT(off(same.ns, law(conv(64, 64, 3, 28))), 0.05);
    OpPrediction larger = predictor.predict(conv(64, 64, 3, 56));
    EXPECT_LT(std::abs(std::log(larger.ns / law(conv(64, 64, 3, 56)))), std::log(1.3));
    EXPECT_GE(larger.high / larger.ns, 2.9);
}

TEST(OpPredictor, PredictsOperatorsWithoutWork) {
    OpPredictor predictor(machine(300, 0.02, 1));
    OpPrediction one = predictor.predict(reshape(77));
    EXPECT_NEAR(one.ns, synthetic::dispatch_ns, 0.1 * synthetic::dispatch_ns);
    // Nothing but operators without work leaves no rates to estimate.
    OpPredictor only({measured(reshape(8), 0), measured(reshape(16), 0)});
    EXPECT_NEAR(only.predict(reshape(12)).ns, synthetic::dispatch_ns,
                0.05 * synthetic::dispatch_ns);
    EXPECT_TRUE(std::isfinite(only.predict(conv(64, 64, 3, 28)).ns));
}

TEST(OpPredictor, RefusesNumbersThatCannotBe) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (double ns : {0.0, -1.0, nan, infinity}) {
        std::vector<OpSample> samples = machine(5, 0, 1);
        samples[3].ns = ns;
        EXPECT_EQ(fault_of(samples), Fault::usage) << ns;
    }
    for (double bad : {-1.0, nan, infinity}) {
        std::vector<OpSample> samples = machine(5, 0, 1);
        samples[2].features.macs = bad;
        EXPECT_EQ(fault_of(samples), Fault::usage) << bad;
        samples = machine(5, 0, 1);
        samples[2].watts = bad;
        EXPECT_EQ(fault_of(samples), Fault::usage) << bad;
        EXPECT_THROW(OpPredictor(machine(5, 0, 1), OpPeaks{bad, 0, 0}), Error);
        OpFeatures features = conv(8, 8, 1, 7);
        features.output_bytes = bad;
        EXPECT_THROW(OpPredictor(machine(5, 0, 1)).predict(features), Error);
    }
}

TEST(OpPredictor, DoesNotDependOnTheOrderOfSamples) {
    std::vector<OpSample> samples = machine(200, 0.05, 1);
    OpPredictor forward(samples);
    std::reverse(samples.begin(), samples.end());
    std::swap(samples[3], samples[77]);
    for (OpSample& sample : samples)
        std::reverse(sample.features.numbers.begin(), sample.features.numbers.end());
    OpPredictor backward(samples);
    for (const OpSample& sample : machine(100, 0.05, 2)) {
        OpPrediction one = forward.predict(sample.features);
        OpPrediction two = backward.predict(sample.features);
        EXPECT_EQ(one.ns, two.ns);
        EXPECT_EQ(one.low, two.low);
        EXPECT_EQ(one.high, two.high);
        EXPECT_EQ(one.watts, two.watts);
        EXPECT_EQ(one.distance, two.distance);
    }
}

TEST(OpPredictor, PredictsPowerWhereSomeWasMeasured) {
    std::vector<OpSample> samples = machine(200, 0.02, 1);
    OpPredictor predictor(samples);
    OpPrediction heavy = predictor.predict(conv(100, 100, 3, 28));
    EXPECT_NEAR(heavy.watts, 30, 2);
    EXPECT_NEAR(predictor.predict(pointwise("Relu", 100, 28)).watts, 20, 2);
    EXPECT_DOUBLE_EQ(heavy.joules(), heavy.watts * heavy.ns * 1e-9);
    for (OpSample& sample : samples)
        sample.watts = 0;
    EXPECT_EQ(OpPredictor(samples).predict(conv(100, 100, 3, 28)).watts, 0);
}

}  // namespace
}  // namespace trocar
