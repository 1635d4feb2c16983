#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/predict_calibration.h"
#include "ops/predict_features.h"
#include "ops/predict_neighbours.h"
#include "ops/trees.h"
#include "trocar/op_predict.h"

namespace trocar {

// What a predictor holds.
struct OpPredictor::Learned {
    Learned(std::vector<OpSample> given, const OpPeaks& given_peaks);

    OpPrediction measured(const OpSample& sample) const;
    OpPrediction estimated(const OpFeatures& features) const;
    double watts(const OpFeatures& features) const;

    std::vector<OpSample> samples;
    std::map<std::string, std::size_t> by_key;
    OpPeaks peaks;
    OpNeighbours neighbours;
    OpResidualModel model;
    OpCalibration calibration;
    std::vector<double> missed;  // by the model, on the samples: logs of measured / predicted
    bool has_watts = false;
    BoostedTrees log_watts;
};

// Sorted, with those of one key made one. Throws Error(usage) for numbers that cannot be.
// Throws Error(usage) for numbers that cannot be; `name` is what to call the operator.
void check_op_features(const OpFeatures& features, const std::string& name);

std::vector<OpSample> checked_op_samples(std::vector<OpSample> samples);

}  // namespace trocar
