#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "ops/predict_calibration.h"
#include "ops/predict_learned.h"
#include "trocar/random.h"

namespace trocar {
namespace {

struct Outcome {
    double measured = 0;
    double predicted = 0;
    double low = 0;
    double high = 0;
};

OpAccuracy accuracy(const std::vector<Outcome>& outcomes) {
    OpAccuracy result;
    result.count = outcomes.size();
    if (outcomes.empty()) {
        return result;
    }
    std::vector<double> errors;
    double count = static_cast<double>(outcomes.size());
    for (const Outcome& one : outcomes) {
        double error = std::abs(one.predicted / one.measured - 1);
        errors.push_back(error);
        result.mean_error += error / count;
        result.within_5 += (error <= 0.05 ? 1 : 0) / count;
        result.within_10 += (error <= 0.10 ? 1 : 0) / count;
        result.coverage += (one.low <= one.measured && one.measured <= one.high ? 1 : 0) / count;
    }
    std::sort(errors.begin(), errors.end());
    std::size_t half = errors.size() / 2;
    result.median_error =
        errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
    return result;
}

std::vector<OpSample> without(const std::vector<OpSample>& samples,
                              const std::vector<bool>& withheld) {
    std::vector<OpSample> result;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (!withheld[i]) {
            result.push_back(samples[i]);
        }
    }
    return result;
}

// Which part each operator is withheld with. Not the parts that the predictor itself withholds:
// these come from the order of hashes, and would empty one of its parts.
class Evaluation {
public:
    Evaluation(std::vector<OpSample> samples, const OpPeaks& peaks)
        : samples_(std::move(samples)), peaks_(peaks) {
        for (const OpSample& sample : samples_) {
            features_[sample.key] = sample.features;
            times_[sample.key] = sample.ns;
        }
    }

    void operators() {
        constexpr std::size_t few = 40;
        constexpr std::size_t many_parts = 20;
        std::size_t count = samples_.size();
        if (count < 2) {
            return;
        }
        std::size_t parts = count < few ? count : many_parts;
        std::vector<std::size_t> part_of = parts_of(samples_, parts, "withheld ");
        result.operators.resize(count);
        std::vector<Outcome> outcomes;
        for (std::size_t part = 0; part < parts; ++part) {
            std::vector<bool> withheld(count);
            for (std::size_t i = 0; i < count; ++i) {
                withheld[i] = part_of[i] == part;
            }
            OpPredictor predictor(without(samples_, withheld), peaks_);
            for (std::size_t i = 0; i < count; ++i) {
                if (!withheld[i]) {
                    continue;
                }
                const OpSample& sample = samples_[i];
                OpPrediction one = predictor.predict(sample.features, sample.key);
                result.operators[i] = {sample.key, sample.features.type, sample.ns, one};
                outcomes.push_back({sample.ns, one.ns, one.low, one.high});
            }
        }
        result.leave_one_operator_out = accuracy(outcomes);
    }

    void models(const std::vector<OpModel>& models) {
        std::map<std::string, std::size_t> in_models;
        for (const OpModel& model : models) {
            for (const std::string& key : keys_of(model)) {
                ++in_models[key];
            }
        }
        std::vector<Outcome> outcomes;
        std::vector<Outcome> outcomes_without_hits;
        for (const OpModel& model : models) {
            std::set<std::string> all = keys_of(model);
            std::set<std::string> only_here;
            for (const std::string& key : all) {
                if (in_models[key] == 1) {
                    only_here.insert(key);
                }
            }
            bool known = model.whole_ns > 0 && std::isfinite(model.whole_ns);
            for (const std::string& key : all) {
                known = known && times_.count(key) != 0;
            }
            if (!known || all.size() >= samples_.size()) {
                result.left_aside.push_back(model.name);
                continue;
            }
            add(model, only_here, result.models, outcomes);
            add(model, all, result.models_without_hits, outcomes_without_hits);
        }
        result.leave_one_model_out = accuracy(outcomes);
        result.leave_all_of_model_out = accuracy(outcomes_without_hits);
    }

    OpEvaluation result;

private:
    static std::set<std::string> keys_of(const OpModel& model) {
        std::set<std::string> keys;
        for (const auto& [key, count] : model.operators) {
            keys.insert(key);
        }
        return keys;
    }

    void add(const OpModel& model, const std::set<std::string>& withhold,
             std::vector<OpEvaluation::Model>& rows, std::vector<Outcome>& outcomes) const {
        std::vector<bool> withheld(samples_.size());
        for (std::size_t i = 0; i < samples_.size(); ++i) {
            withheld[i] = withhold.count(samples_[i].key) != 0;
        }
        OpPredictor predictor(without(samples_, withheld), peaks_);
        OpEvaluation::Model row;
        row.name = model.name;
        row.measured_ns = model.whole_ns;
        row.summed_ns = model.fixed_ns;
        for (const auto& [key, count] : model.operators) {
            row.summed_ns += count * times_.at(key);
        }
        row.withheld = withhold.size();
        row.predicted = predictor.predict_model(model, features_);
        outcomes.push_back(
            {row.measured_ns, row.predicted.ns, row.predicted.low, row.predicted.high});
        rows.push_back(std::move(row));
    }

    std::vector<OpSample> samples_;
    OpPeaks peaks_;
    std::map<std::string, OpFeatures> features_;
    std::map<std::string, double> times_;
};

}  // namespace

OpEvaluation evaluate(const std::vector<OpSample>& samples, const std::vector<OpModel>& models,
                      const OpPeaks& peaks) {
    Evaluation evaluation(checked_op_samples(samples), peaks);
    evaluation.operators();
    evaluation.models(models);
    return std::move(evaluation.result);
}

}  // namespace trocar
