#include "ops/predict_prior.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "trocar/error.h"

namespace trocar {
namespace {

double nearest_quantile(std::vector<double> values, double share) {
    if (values.empty()) {
        return 0;
    }
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

// Solves the 3 x 3 system by elimination; the ridge on its diagonal keeps it regular.
std::array<double, 3> solved(std::array<std::array<double, 4>, 3> rows) {
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t below = i + 1; below < 3; ++below) {
            double factor = rows[below][i] / rows[i][i];
            for (std::size_t column = i; column < 4; ++column) {
                rows[below][column] -= factor * rows[i][column];
            }
        }
    }
    std::array<double, 3> result{};
    for (std::size_t i = 3; i-- > 0;) {
        double rest = rows[i][3];
        for (std::size_t column = i + 1; column < 3; ++column) {
            rest -= rows[i][column] * result[column];
        }
        result[i] = rest / rows[i][i];
    }
    return result;
}

double scaled(const std::array<double, 3>& parts, const std::array<double, 3>& scales) {
    return std::exp(scales[0]) * parts[0] +
           std::max(std::exp(scales[1]) * parts[1], std::exp(scales[2]) * parts[2]);
}

}  // namespace

double op_flops(const OpFeatures& features) {
    return 2 * features.macs + features.other_flops;
}

double op_bytes(const OpFeatures& features) {
    return features.input_bytes + features.weight_bytes + features.output_bytes;
}

OpPeaks estimated_peaks(const std::vector<OpSample>& samples, const OpPeaks& given) {
    for (double peak : {given.flops, given.bytes, given.dispatch_ns}) {
        if (!std::isfinite(peak) || peak < 0) {
            throw Error(Fault::usage, fmt::format("a peak of the machine is {}", peak));
        }
    }
    OpPeaks peaks = given;
    std::vector<double> flops;
    std::vector<double> bytes;
    std::vector<double> times;
    for (const OpSample& sample : samples) {
        times.push_back(sample.ns);
        if (op_flops(sample.features) > 0) {
            flops.push_back(op_flops(sample.features) / sample.ns * 1e9);
        }
        if (op_bytes(sample.features) > 0) {
            bytes.push_back(op_bytes(sample.features) / sample.ns * 1e9);
        }
    }
    // Where nothing was computed or moved, the rate never matters: any will do.
    if (peaks.flops == 0) {
        peaks.flops = flops.empty() ? 1e9 : nearest_quantile(flops, 0.97);
    }
    if (peaks.bytes == 0) {
        peaks.bytes = bytes.empty() ? 1e9 : nearest_quantile(bytes, 0.97);
    }
    if (peaks.dispatch_ns == 0 && !times.empty()) {
        double fast = nearest_quantile(times, 0.1);
        double rest = fast;
        for (const OpSample& sample : samples) {
            if (sample.ns <= fast) {
                rest = std::min(
                    rest, sample.ns - 1e9 * std::max(op_flops(sample.features) / peaks.flops,
                                                     op_bytes(sample.features) / peaks.bytes));
            }
        }
        // The prior must stay positive for operators without work.
        peaks.dispatch_ns = std::max(rest, 0.01 * fast);
    }
    return peaks;
}

RooflinePrior::RooflinePrior(const std::vector<OpSample>& samples,
                             const std::vector<std::size_t>& rows, const OpPeaks& peaks)
    : peaks_(peaks) {
    std::vector<const OpSample*> all;
    std::map<std::pair<std::string, std::string>, std::vector<const OpSample*>> types;
    std::map<std::array<std::string, 3>, std::vector<const OpSample*>> attributes;
    for (std::size_t row : rows) {
        const OpSample& sample = samples[row];
        all.push_back(&sample);
        const OpFeatures& features = sample.features;
        types[{features.type, features.dtype}].push_back(&sample);
        attributes[{features.type, features.dtype, features.attributes}].push_back(&sample);
    }
    all_ = fitted(all, Scales{}, 0.1);
    for (const auto& [type, of_type] : types) {
        types_[type] = fitted(of_type, all_, 0.1);
    }
    // Of one type attributes are many and their samples few: these have to want it more.
    for (const auto& [key, of_key] : attributes) {
        attributes_[key] = fitted(of_key, types_[{key[0], key[1]}], 5.0);
    }
}

std::array<double, 3> RooflinePrior::parts(const OpFeatures& features) const {
    return {peaks_.dispatch_ns, 1e9 * op_flops(features) / peaks_.flops,
            1e9 * op_bytes(features) / peaks_.bytes};
}

// Gauss-Newton on log errors, in which far outliers count less, pulled to where it started.
RooflinePrior::Scales RooflinePrior::fitted(const std::vector<const OpSample*>& samples,
                                            const Scales& start, double pull) const {
    constexpr double outlier = 0.5;
    Scales scales = start;
    for (int round = 0; round < 30; ++round) {
        std::array<std::array<double, 4>, 3> normal{};
        for (std::size_t i = 0; i < 3; ++i) {
            normal[i][i] = pull;
            normal[i][3] = pull * (start[i] - scales[i]);
        }
        for (const OpSample* sample : samples) {
            auto part = parts(sample->features);
            double whole = scaled(part, scales);
            double error = std::log(sample->ns / whole);
            double weight = std::min(1.0, outlier / std::max(std::abs(error), 1e-12));
            bool by_flops = std::exp(scales[1]) * part[1] >= std::exp(scales[2]) * part[2];
            std::array<double, 3> slope{
                std::exp(scales[0]) * part[0] / whole,
                by_flops ? std::exp(scales[1]) * part[1] / whole : 0,
                by_flops ? 0 : std::exp(scales[2]) * part[2] / whole,
            };
            for (std::size_t i = 0; i < 3; ++i) {
                for (std::size_t k = 0; k < 3; ++k) {
                    normal[i][k] += weight * slope[i] * slope[k];
                }
                normal[i][3] += weight * slope[i] * error;
            }
        }
        auto step = solved(normal);
        double greatest = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            scales[i] += std::clamp(step[i], -1.0, 1.0);
            greatest = std::max(greatest, std::abs(step[i]));
        }
        if (greatest < 1e-6) {
            break;
        }
    }
    return scales;
}

double RooflinePrior::log_ns(const OpFeatures& features) const {
    auto same = attributes_.find({features.type, features.dtype, features.attributes});
    if (same != attributes_.end()) {
        return std::log(scaled(parts(features), same->second));
    }
    auto found = types_.find({features.type, features.dtype});
    return std::log(scaled(parts(features), found == types_.end() ? all_ : found->second));
}

double RooflinePrior::log_ns_unseen(const OpFeatures& features) const {
    return std::log(scaled(parts(features), all_));
}

bool RooflinePrior::knows(const OpFeatures& features) const {
    return types_.count({features.type, features.dtype}) != 0;
}

bool RooflinePrior::knows_attributes(const OpFeatures& features) const {
    return attributes_.count({features.type, features.dtype, features.attributes}) != 0;
}

double RooflinePrior::log_work(const OpFeatures& features) const {
    auto part = parts(features);
    return std::log1p(std::max(part[1], part[2]) / part[0]);
}

}  // namespace trocar
