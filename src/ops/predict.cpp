#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "ops/predict_learned.h"
#include "trocar/error.h"

namespace trocar {

OpPredictor::Learned::Learned(std::vector<OpSample> given, const OpPeaks& given_peaks)
    : samples(checked_op_samples(std::move(given))),
      peaks(estimated_peaks(samples, given_peaks)),
      neighbours(samples) {
    std::vector<std::size_t> rows(samples.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    model = OpResidualModel(samples, rows, peaks);
    calibration = OpCalibration(samples, peaks, neighbours, model.prior);
    TreeTable table{model.columns.count(), {}};
    std::vector<double> targets;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const OpSample& sample = samples[i];
        if (!sample.key.empty()) {
            by_key.emplace(sample.key, i);
        }
        missed.push_back(std::log(sample.ns) - model.log_ns(sample.features));
        if (sample.watts > 0) {
            model.columns.append_row(sample.features, model.prior, table.values);
            targets.push_back(std::log(sample.watts));
        }
    }
    has_watts = !targets.empty();
    // Power differs little between operators: a few small trees on its mean are enough.
    TreeOptions small;
    small.trees = 60;
    small.depth = 3;
    log_watts = BoostedTrees(table, targets, small);
}

double OpPredictor::Learned::watts(const OpFeatures& features) const {
    if (!has_watts) {
        return 0;
    }
    std::vector<double> row;
    model.columns.append_row(features, model.prior, row);
    return std::exp(log_watts.predict(row.data()));
}

OpPrediction OpPredictor::Learned::measured(const OpSample& sample) const {
    constexpr double of_95 = 1.6449 / 1.96;  // the 90 % interval of a normal law
    OpPrediction result;
    result.how = OpPrediction::How::exact;
    result.ns = sample.ns;
    double half = of_95 * sample.spread;
    result.low = sample.ns * std::max(0.0, 1 - half);
    result.high = sample.ns * (1 + half);
    result.watts = sample.watts > 0 ? sample.watts : watts(sample.features);
    return result;
}

OpPrediction OpPredictor::Learned::estimated(const OpFeatures& features) const {
    OpPrediction result;
    result.watts = watts(features);
    result.distance = neighbours.distance(features);
    bool seen = model.prior.knows(features);
    result.far = !seen || result.distance > OpCalibration::far_distance;
    double log_ns = model.log_ns(features);
    auto weights = neighbours.around(features);
    if (weights && calibration.trusts(*weights)) {
        result.how = OpPrediction::How::interpolated;
        for (auto [sample, weight] : weights->samples) {
            log_ns += calibration.mix() * weight * missed[sample];
        }
    }
    double half = seen ? calibration.half_width(features.type, result.how, result.distance,
                                                model.prior.knows_attributes(features))
                       : calibration.half_width_unseen();
    result.ns = std::exp(log_ns);
    result.low = result.ns * std::exp(-half);
    result.high = result.ns * std::exp(half);
    return result;
}

OpPredictor::OpPredictor(std::vector<OpSample> samples, const OpPeaks& peaks)
    : learned_(std::make_shared<const Learned>(std::move(samples), peaks)) {}

OpPrediction OpPredictor::predict(const OpFeatures& features, const std::string& key) const {
    if (!key.empty()) {
        auto found = learned_->by_key.find(key);
        if (found != learned_->by_key.end()) {
            return learned_->measured(learned_->samples[found->second]);
        }
    }
    if (learned_->samples.empty()) {
        throw Error(Fault::usage, "there are no measured operators to predict from",
                    "measure some first");
    }
    check_op_features(features, key.empty() ? "of type " + features.type : key);
    return learned_->estimated(features);
}

const OpPeaks& OpPredictor::peaks() const {
    return learned_->peaks;
}

std::size_t OpPredictor::size() const {
    return learned_->samples.size();
}

}  // namespace trocar
