#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "trocar/op_predict.h"

namespace trocar {

double op_flops(const OpFeatures& features);
double op_bytes(const OpFeatures& features);

// What is not given is estimated: rates that the best samples reach, and what the fastest samples
// take beyond their work.
OpPeaks estimated_peaks(const std::vector<OpSample>& samples, const OpPeaks& given);

// dispatch + max(flops / peak, bytes / bandwidth), each of the three scaled as the samples of a
// type and its attributes want it; where there are few of these as the type does, or as all do.
class RooflinePrior {
public:
    RooflinePrior() = default;
    // Of the samples, those at `rows`.
    RooflinePrior(const std::vector<OpSample>& samples, const std::vector<std::size_t>& rows,
                  const OpPeaks& peaks);

    double log_ns(const OpFeatures& features) const;
    double log_ns_unseen(const OpFeatures& features) const;   // as if its type had never been seen
    bool knows(const OpFeatures& features) const;             // its type and dtype
    bool knows_attributes(const OpFeatures& features) const;  // of that type
    // Log of how the work compares to dispatch, before scaling.
    double log_work(const OpFeatures& features) const;

private:
    using Scales = std::array<double, 3>;  // logs, of dispatch, flops and bytes
    std::array<double, 3> parts(const OpFeatures& features) const;
    Scales fitted(const std::vector<const OpSample*>& samples, const Scales& start,
                  double pull) const;

    OpPeaks peaks_;
    Scales all_{};
    std::map<std::pair<std::string, std::string>, Scales> types_;  // by type and dtype
    std::map<std::array<std::string, 3>, Scales> attributes_;      // and by attributes
};

}  // namespace trocar
