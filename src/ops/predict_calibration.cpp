#include "ops/predict_calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "trocar/random.h"

namespace trocar {
namespace {

constexpr std::size_t most_parts = 5;
constexpr std::size_t enough = 20;    // errors to learn from
constexpr double no_idea = 1.0986;    // log 3: the half width before anything is known
constexpr double least_width = 0.01;  // nothing is predicted to better than 1 %

// The rank that holds 90 % of what comes next, not of what was seen; with few errors there is none,
// and the greatest has to do.
double conformal_quantile(std::vector<double> scores) {
    if (scores.empty()) {
        return 0;
    }
    std::sort(scores.begin(), scores.end());
    double rank = std::ceil(0.9 * (static_cast<double>(scores.size()) + 1));
    std::size_t at = static_cast<std::size_t>(rank) - 1;
    return scores[std::min(at, scores.size() - 1)];
}

}  // namespace

std::vector<std::size_t> parts_of(const std::vector<OpSample>& samples, std::size_t parts,
                                  std::string_view salt) {
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const auto text = std::string(salt) + samples[i].key;
        order.emplace_back(stable_hash(text.data(), text.size()), i);
    }
    std::sort(order.begin(), order.end());
    std::vector<std::size_t> result(samples.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        result[order[i].second] = i % parts;
    }
    return result;
}

double OpCalibration::Errors::expected(const std::string& type, double without) const {
    constexpr double mixed = 5;
    double mean = all.count > 0 ? all.sum / all.count : no_idea;
    auto found = types.find(type);
    if (found == types.end()) {
        return mean;
    }
    double count = found->second.count - (without >= 0 ? 1 : 0);
    double sum = found->second.sum - std::max(without, 0.0);
    return (mixed * mean + sum) / (mixed + count);
}

OpCalibration::OpCalibration(const std::vector<OpSample>& samples, const OpPeaks& peaks,
                             const OpNeighbours& neighbours, const RooflinePrior& prior) {
    std::vector<Withheld> errors = withheld(samples, peaks, neighbours);
    model_errors_.resize(samples.size());
    for (const Withheld& one : errors) {
        model_errors_[one.sample] = one.model;
    }
    choose_cutoff(errors);
    learn_novelty(errors);
    std::vector<Withheld> by_model;
    std::vector<Withheld> by_neighbours;
    std::vector<Withheld> seen;
    for (const Withheld& one : errors) {
        if (interpolated(one)) {
            by_neighbours.push_back(one);
        } else if (one.seen) {
            by_model.push_back(one);
        }
        if (one.seen || interpolated(one)) {
            seen.push_back(one);
        }
    }
    model_ = fitted(samples, by_model.size() < enough ? seen : by_model);
    interpolated_ = fitted(samples, by_neighbours.size() < enough ? seen : by_neighbours);

    std::vector<double> strange;
    for (const OpSample& sample : samples) {
        strange.push_back(std::abs(std::log(sample.ns) - prior.log_ns_unseen(sample.features)));
    }
    unseen_ = std::max(conformal_quantile(strange), no_idea);
    correlate(samples, errors, neighbours);
}

std::vector<OpCalibration::Withheld> OpCalibration::withheld(const std::vector<OpSample>& samples,
                                                             const OpPeaks& peaks,
                                                             const OpNeighbours& neighbours) const {
    std::vector<Withheld> result;
    if (samples.size() < 2) {
        return result;
    }
    std::size_t parts = std::min(most_parts, samples.size());
    std::vector<std::size_t> part_of = parts_of(samples, parts);
    for (std::size_t part = 0; part < parts; ++part) {
        std::vector<std::size_t> rows;
        for (std::size_t i = 0; i < samples.size(); ++i) {
            if (part_of[i] != part) {
                rows.push_back(i);
            }
        }
        OpResidualModel model(samples, rows, peaks);
        std::vector<double> missed;
        for (const OpSample& sample : samples) {
            missed.push_back(std::log(sample.ns) - model.log_ns(sample.features));
        }
        for (std::size_t i = 0; i < samples.size(); ++i) {
            if (part_of[i] != part) {
                continue;
            }
            const OpFeatures& features = samples[i].features;
            double measured = std::log(samples[i].ns);
            Withheld one;
            one.sample = i;
            one.part = part;
            one.seen = model.prior.knows(features);
            one.seen_attributes = model.prior.knows_attributes(features);
            one.model = model.log_ns(features) - measured;
            one.distance = neighbours.distance(features, i);
            if (auto weights = neighbours.around(features, i)) {
                one.interpolates = true;
                one.weights = *weights;
                one.neighbours = one.model;
                for (auto [other, weight] : weights->samples) {
                    one.neighbours += weight * missed[other];
                }
            }
            result.push_back(one);
        }
    }
    return result;
}

bool OpCalibration::interpolated(const Withheld& one) const {
    return one.interpolates && trusts(one.weights);
}

bool OpCalibration::trusts(const OpNeighbours::Weights& weights) const {
    if (weights.width <= cutoff_) {
        return true;
    }
    double error = 0;
    for (auto [sample, weight] : weights.samples) {
        error += weight * (sample < model_errors_.size() ? model_errors_[sample] : 0);
    }
    return std::abs(error) > surprise_;
}

double OpCalibration::error(const Withheld& one) const {
    if (!interpolated(one)) {
        return one.model;
    }
    return one.seen ? mix_ * one.neighbours + (1 - mix_) * one.model : one.neighbours;
}

// The cut and the mix that would have made the sum of errors least.
void OpCalibration::choose_cutoff(const std::vector<Withheld>& errors) {
    std::vector<const Withheld*> order;
    for (const Withheld& one : errors) {
        if (one.interpolates) {
            order.push_back(&one);
        }
    }
    if (order.size() < enough) {
        return;
    }
    std::stable_sort(order.begin(), order.end(), [](const Withheld* a, const Withheld* b) {
        return a->weights.width < b->weights.width;
    });
    double least = std::numeric_limits<double>::infinity();
    for (double mix : {1.0, 0.75, 0.5, 0.25}) {
        double gained = 0;
        for (std::size_t i = 0; i < order.size(); ++i) {
            const Withheld& one = *order[i];
            gained += std::abs(mix * one.neighbours + (1 - mix) * one.model) - std::abs(one.model);
            bool last_of_width =
                i + 1 == order.size() || order[i + 1]->weights.width > one.weights.width;
            if (last_of_width && gained < least) {
                least = gained;
                cutoff_ = one.weights.width;
                mix_ = mix;
            }
        }
    }
    if (least >= 0) {
        cutoff_ = 0;
        mix_ = 1;
    }
    // What most samples never see is more than noise.
    std::vector<double> usual;
    for (const Withheld& one : errors) {
        usual.push_back(std::abs(one.model));
    }
    auto middle = usual.begin() + static_cast<std::ptrdiff_t>(usual.size() / 2);
    std::nth_element(usual.begin(), middle, usual.end());
    surprise_ = 3 * *middle;
}

// Farther from the samples errors grow; how fast was seen on single operators of ONNX Runtime.
double OpCalibration::difficulty(double distance, bool knows_attributes) const {
    return (1 + 0.25 * std::min(distance, 20.0)) * (knows_attributes ? 1 : novelty_);
}

void OpCalibration::learn_novelty(const std::vector<Withheld>& errors) {
    constexpr double before = 5;  // errors with new attributes that are as great as others
    Errors::Mean seen;
    Errors::Mean fresh;
    for (const Withheld& one : errors) {
        if (!one.seen) {
            continue;
        }
        Errors::Mean& mean = one.seen_attributes ? seen : fresh;
        mean.sum += std::abs(error(one)) / difficulty(one.distance, true);
        mean.count += 1;
    }
    if (seen.sum <= 0) {
        return;
    }
    double usual = seen.sum / seen.count;
    novelty_ = std::max(1.0, (before * usual + fresh.sum) / (before + fresh.count) / usual);
}

OpCalibration::Errors OpCalibration::fitted(const std::vector<OpSample>& samples,
                                            const std::vector<Withheld>& errors) const {
    Errors result;
    auto scaled = [&](const Withheld& one) {
        return std::abs(error(one)) / difficulty(one.distance, one.seen_attributes);
    };
    for (const Withheld& one : errors) {
        auto& type = result.types[samples[one.sample].features.type];
        type.sum += scaled(one);
        type.count += 1;
        result.all.sum += scaled(one);
        result.all.count += 1;
    }
    std::vector<double> scores;
    for (const Withheld& one : errors) {
        double expected = result.expected(samples[one.sample].features.type, scaled(one));
        scores.push_back(scaled(one) / std::max(expected, 1e-9));
    }
    result.quantile = conformal_quantile(scores);
    return result;
}

double OpCalibration::half_width(const std::string& type, OpPrediction::How how, double distance,
                                 bool knows_attributes) const {
    const Errors& errors = how == OpPrediction::How::interpolated ? interpolated_ : model_;
    double width =
        errors.quantile * errors.expected(type, -1) * difficulty(distance, knows_attributes);
    // Of a type with one sample no error is known: it could not be withheld.
    if (errors.types.count(type) == 0 && model_.types.count(type) == 0) {
        width *= 2;
    }
    return std::max(width, errors.all.count < 9 ? no_idea : least_width);
}

// Over each sample and the nearest of its type that was withheld with it: neither could tell of the
// other, as with operators of one new model.
void OpCalibration::correlate(const std::vector<OpSample>& samples,
                              const std::vector<Withheld>& errors, const OpNeighbours& neighbours) {
    constexpr double pairs_before = 10;  // that correlate by a half
    std::vector<const Withheld*> of(samples.size(), nullptr);
    for (const Withheld& one : errors) {
        of[one.sample] = &one;
    }
    auto score = [&](const Withheld& one) {
        const std::string& type = samples[one.sample].features.type;
        auto how = interpolated(one) ? OpPrediction::How::interpolated : OpPrediction::How::model;
        double limit = half_width(type, how, one.distance, one.seen_attributes);
        return std::clamp(error(one) / limit, -2.0, 2.0);
    };
    double together = 0.5 * pairs_before * 0.37;  // 0.37: the square of a score at one deviation
    double alone = pairs_before * 0.37;
    for (const Withheld& one : errors) {
        const auto* others = neighbours.of_type(samples[one.sample].features);
        const Withheld* nearest = nullptr;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t i : *others) {
            if (i == one.sample || of[i]->part != one.part || !of[i]->seen) {
                continue;
            }
            double gap = neighbours.gap(one.sample, i);
            if (gap < least) {
                least = gap;
                nearest = of[i];
            }
        }
        if (nearest == nullptr || !one.seen) {
            continue;
        }
        together += score(one) * score(*nearest);
        alone += (score(one) * score(one) + score(*nearest) * score(*nearest)) / 2;
    }
    correlation_ = std::clamp(together / alone, 0.1, 1.0);
}

}  // namespace trocar
