#include <fmt/format.h>

#include <cmath>
#include <map>
#include <vector>

#include "ops/predict_learned.h"
#include "trocar/error.h"

namespace trocar {
namespace {

// Deviations of a sum. Errors of what was measured are independent; those of what was predicted for
// one type go together as far as `correlation` says, and wholly where attributes are new: what is
// not known of them is the same for all that have them.
class SumOfErrors {
public:
    explicit SumOfErrors(double correlation) : correlation_(correlation) {}

    void add(const OpFeatures& of, const OpPrediction& one, bool knows_attributes, double count) {
        constexpr double deviations = 1.6449;  // in half a 90 % interval
        bool exact = one.how == OpPrediction::How::exact;
        double half = exact ? one.high / one.ns - 1 : std::log(one.high / one.ns);
        double deviation = count * one.ns * half / deviations;
        double by_type = exact ? 0 : correlation_;
        double rest = std::sqrt(1 - by_type) * deviation;
        together_[of.type] += std::sqrt(by_type) * deviation;
        if (exact || knows_attributes) {
            alone_ += rest * rest;
        } else {
            together_[of.type + '\n' + of.attributes] += rest;
        }
    }

    // Half of the 90 % interval, as log of high / sum.
    double half_width(double sum) const {
        double variance = alone_;
        for (const auto& [what, deviation] : together_) {
            variance += deviation * deviation;
        }
        return sum > 0 ? 1.6449 * std::sqrt(variance) / sum : 0;
    }

private:
    double correlation_;
    double alone_ = 0;
    std::map<std::string, double> together_;
};

}  // namespace

OpModelPrediction OpPredictor::predict_model(
    const OpModel& model, const std::map<std::string, OpFeatures>& features) const {
    std::map<std::string, double> counts;  // one key called from two places has one error
    for (const auto& [key, count] : model.operators) {
        if (!std::isfinite(count) || count < 0) {
            throw Error(Fault::usage,
                        fmt::format("the model {} calls {} {} times", model.name, key, count));
        }
        counts[key] += count;
    }
    if (!std::isfinite(model.fixed_ns) || model.fixed_ns < 0) {
        throw Error(Fault::usage, fmt::format("the model {} has a fixed time of {} ns", model.name,
                                              model.fixed_ns));
    }
    OpModelPrediction result;
    SumOfErrors errors(learned_->calibration.correlation());
    bool power_known = true;
    for (const auto& [key, count] : counts) {
        auto told = features.find(key);
        auto measured = learned_->by_key.find(key);
        if (told == features.end() && measured == learned_->by_key.end()) {
            throw Error(Fault::usage,
                        fmt::format("the model {} calls {}, which was not measured and of which "
                                    "nothing is known",
                                    model.name, key));
        }
        const OpFeatures& of = measured != learned_->by_key.end()
                                   ? learned_->samples[measured->second].features
                                   : told->second;
        OpPrediction one = predict(of, key);
        double ns = count * one.ns;
        result.ns += ns;
        result.joules += count * one.joules();
        power_known = power_known && one.watts > 0;
        (one.how == OpPrediction::How::exact          ? result.exact
         : one.how == OpPrediction::How::interpolated ? result.interpolated
                                                      : result.model) += ns;
        if (one.far) {
            result.far += ns;
        }
        errors.add(of, one, learned_->model.prior.knows_attributes(of), count);
    }
    if (!power_known) {
        result.joules = 0;
    }
    double half = errors.half_width(result.ns);
    double sum = result.ns;
    result.ns += model.fixed_ns;
    result.low = model.fixed_ns + sum * std::exp(-half);
    result.high = model.fixed_ns + sum * std::exp(half);
    if (result.ns > 0) {
        result.fixed = model.fixed_ns;
        for (double* share :
             {&result.exact, &result.interpolated, &result.model, &result.fixed, &result.far}) {
            *share /= result.ns;
        }
    }
    return result;
}

}  // namespace trocar
