#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ops/predict_features.h"
#include "ops/predict_neighbours.h"
#include "trocar/op_predict.h"

namespace trocar {

// Which of `parts` parts of equal size each sample belongs to. It follows from the sample's key
// alone; another salt gives another division.
std::vector<std::size_t> parts_of(const std::vector<OpSample>& samples, std::size_t parts,
                                  std::string_view salt = {});

// What predictions of samples that were withheld teach: when to interpolate, how wide intervals
// have to be, and how much errors go together.
class OpCalibration {
public:
    OpCalibration() = default;
    OpCalibration(const std::vector<OpSample>& samples, const OpPeaks& peaks,
                  const OpNeighbours& neighbours, const RooflinePrior& prior);

    // Neighbours too far around do worse than the model, unless the model went wrong on them.
    bool trusts(const OpNeighbours::Weights& weights) const;
    // How much neighbours count against the model, where they are trusted.
    double mix() const { return mix_; }

    // Log of high / predicted, at 90 %.
    double half_width(const std::string& type, OpPrediction::How how, double distance,
                      bool knows_attributes) const;
    double half_width_unseen() const { return unseen_; }
    // Correlation of the errors of two operators of one type, neither of which was measured.
    double correlation() const { return correlation_; }

    static constexpr double far_distance = 5;

private:
    // The error of one sample that was withheld, as predicted logs less measured ones.
    struct Withheld {
        std::size_t sample = 0;
        std::size_t part = 0;
        bool seen = false;  // others of its type were not withheld
        bool seen_attributes = false;
        bool interpolates = false;  // it has neighbours around
        double model = 0;
        double neighbours = 0;
        OpNeighbours::Weights weights;
        double distance = 0;
    };
    // Mean errors of a type, those with few samples mixed with the mean of all; and their quantile
    // after dividing by these.
    struct Errors {
        struct Mean {
            double sum = 0;
            double count = 0;
        };
        std::map<std::string, Mean> types;
        Mean all;
        double quantile = 0;

        double expected(const std::string& type, double without) const;
    };
    std::vector<Withheld> withheld(const std::vector<OpSample>& samples, const OpPeaks& peaks,
                                   const OpNeighbours& neighbours) const;
    void choose_cutoff(const std::vector<Withheld>& errors);
    double error(const Withheld& one) const;
    double difficulty(double distance, bool knows_attributes) const;
    void learn_novelty(const std::vector<Withheld>& errors);
    bool interpolated(const Withheld& one) const;
    Errors fitted(const std::vector<OpSample>& samples, const std::vector<Withheld>& errors) const;
    void correlate(const std::vector<OpSample>& samples, const std::vector<Withheld>& errors,
                   const OpNeighbours& neighbours);

    double cutoff_ = 1;
    double surprise_ = std::numeric_limits<double>::infinity();
    std::vector<double> model_errors_;  // of the samples when they were withheld
    double mix_ = 1;
    Errors model_;
    Errors interpolated_;
    double unseen_ = 0;
    double novelty_ = 1;  // how much greater errors are where attributes are new
    double correlation_ = 0.5;
};

}  // namespace trocar
