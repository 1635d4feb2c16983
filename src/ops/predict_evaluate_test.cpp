#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/predict_synthetic.h"
#include "trocar/error.h"
#include "trocar/op_predict.h"

namespace trocar {
namespace {

using synthetic::machine;

// Models of 20 operators each; neighbours share ten of them.
std::vector<OpModel> models_of(const std::vector<OpSample>& samples, std::size_t count) {
    std::vector<OpModel> models;
    for (std::size_t m = 0; m < count; ++m) {
        OpModel model{"model " + std::to_string(m), {}, 0, 1000};
        for (std::size_t i = 0; i < 20; ++i) {
            const OpSample& sample = samples[10 * m + i];
            model.operators.emplace_back(sample.key, 1 + static_cast<double>(i % 3));
            model.whole_ns += model.operators.back().second * sample.ns;
        }
        model.whole_ns += model.fixed_ns;
        models.push_back(model);
    }
    return models;
}

TEST(OpEvaluation, ReportsOperatorsAndModels) {
    std::vector<OpSample> samples = machine(220, 0.03, 1);
    OpEvaluation evaluation = evaluate(samples, models_of(samples, 5));
    ASSERT_EQ(evaluation.operators.size(), samples.size());
    EXPECT_TRUE(std::is_sorted(evaluation.operators.begin(), evaluation.operators.end(),
                               [](const auto& a, const auto& b) { return a.key < b.key; }));
    for (const auto& row : evaluation.operators)
        EXPECT_NE(row.predicted.how, OpPrediction::How::exact) << row.key;
    const OpAccuracy& operators = evaluation.leave_one_operator_out;
    EXPECT_EQ(operators.count, samples.size());
    EXPECT_LT(operators.mean_error, 0.06);
    EXPECT_LE(operators.median_error, operators.mean_error);
    EXPECT_LE(operators.within_5, operators.within_10);
    EXPECT_GE(operators.coverage, 0.85);
    EXPECT_LE(operators.coverage, 0.95);

    ASSERT_EQ(evaluation.models.size(), 5);
    ASSERT_EQ(evaluation.models_without_hits.size(), 5);
    EXPECT_EQ(evaluation.models[0].withheld, 10);
    EXPECT_EQ(evaluation.models[2].withheld, 0);
    EXPECT_NEAR(evaluation.models[2].predicted.exact + evaluation.models[2].predicted.fixed, 1,
                1e-12);
    EXPECT_NEAR(evaluation.models[1].summed_ns, evaluation.models[1].measured_ns, 1e-3);
    for (const auto& row : evaluation.models_without_hits) {
        EXPECT_EQ(row.withheld, 20);
        EXPECT_EQ(row.predicted.exact, 0);
    }
    EXPECT_LT(evaluation.leave_all_of_model_out.mean_error, 0.08);
    EXPECT_LE(evaluation.leave_one_model_out.mean_error,
              evaluation.leave_all_of_model_out.mean_error + 1e-12);
    EXPECT_TRUE(evaluation.left_aside.empty());
}

// A value that only one sample has must not show in predictions of it: with and without the plant,
// the operator is predicted the same to the last bit.
TEST(OpEvaluation, NeverSeesWhatItWithholds) {
    std::vector<OpSample> samples = machine(60, 0.03, 1);
    std::vector<OpModel> models = models_of(samples, 2);
    OpEvaluation before = evaluate(samples, models);
    constexpr double unique = 123456789;
    const std::string planted = samples[5].key;  // in the first model only
    samples[5].ns = unique;
    samples[5].watts = 4321;
    OpEvaluation after = evaluate(samples, models);

    bool found = false;
    for (std::size_t i = 0; i < before.operators.size(); ++i) {
        if (before.operators[i].key != planted)
            continue;
        found = true;
        EXPECT_EQ(after.operators[i].measured_ns, unique);
        EXPECT_EQ(after.operators[i].predicted.ns, before.operators[i].predicted.ns);
        EXPECT_EQ(after.operators[i].predicted.low, before.operators[i].predicted.low);
        EXPECT_EQ(after.operators[i].predicted.high, before.operators[i].predicted.high);
        EXPECT_EQ(after.operators[i].predicted.watts, before.operators[i].predicted.watts);
    }
    EXPECT_TRUE(found);
    for (auto rows : {&OpEvaluation::models, &OpEvaluation::models_without_hits}) {
        EXPECT_EQ((after.*rows)[0].predicted.ns, (before.*rows)[0].predicted.ns);
        EXPECT_EQ((after.*rows)[0].predicted.high, (before.*rows)[0].predicted.high);
        EXPECT_EQ((after.*rows)[0].predicted.joules, (before.*rows)[0].predicted.joules);
    }
    EXPECT_NE(after.models[1].predicted.ns, before.models[1].predicted.ns);
}

TEST(OpEvaluation, SetsModelsAsideThatItCannotJudge) {
    std::vector<OpSample> samples = machine(45, 0.03, 1);
    std::vector<OpModel> models = models_of(samples, 2);
    models[0].whole_ns = 0;
    models[1].operators.emplace_back("never measured", 1);
    OpModel all{"all", {}, 1e6, 0};
    for (const OpSample& sample : samples)
        all.operators.emplace_back(sample.key, 1);
    models.push_back(all);
    OpEvaluation evaluation = evaluate(samples, models);
    EXPECT_EQ(evaluation.left_aside, (std::vector<std::string>{"model 0", "model 1", "all"}));
    EXPECT_EQ(evaluation.leave_one_model_out.count, 0);
}

TEST(OpEvaluation, OfFewSamples) {
    EXPECT_EQ(evaluate({}).leave_one_operator_out.count, 0);
    EXPECT_EQ(evaluate(machine(1, 0.03, 1)).leave_one_operator_out.count, 0);
    EXPECT_EQ(evaluate(machine(2, 0.03, 1)).leave_one_operator_out.count, 2);
    EXPECT_EQ(evaluate(machine(7, 0.03, 1)).operators.size(), 7);
}

}  // namespace
}  // namespace trocar
