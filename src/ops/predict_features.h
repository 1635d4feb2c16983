#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ops/predict_prior.h"
#include "ops/trees.h"
#include "trocar/op_predict.h"

namespace trocar {

// Turns operators into the rows that trees learn from.
class OpColumns {
public:
    OpColumns() = default;
    OpColumns(const std::vector<OpSample>& samples, const std::vector<std::size_t>& rows,
              const RooflinePrior& prior);

    std::size_t count() const;
    void append_row(const OpFeatures& features, const RooflinePrior& prior,
                    std::vector<double>& values) const;

private:
    // Texts become the mean error of the prior on their samples, mixed with zeros: trees can then
    // part slow ones from fast ones with one split.
    using Codes = std::map<std::string, double>;
    std::map<std::string, std::size_t> numbers_;  // to their place among the columns
    Codes types_;
    Codes dtypes_;
    Codes attributes_;
};

// Roofline and trees on top of it, learned from some of the samples.
struct OpResidualModel {
    OpResidualModel() = default;
    OpResidualModel(const std::vector<OpSample>& samples, const std::vector<std::size_t>& rows,
                    const OpPeaks& peaks);
    double log_ns(const OpFeatures& features) const;

    RooflinePrior prior;
    OpColumns columns;
    BoostedTrees trees;
};

}  // namespace trocar
