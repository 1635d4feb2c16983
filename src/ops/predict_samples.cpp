#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

#include "ops/predict_learned.h"
#include "trocar/error.h"

namespace trocar {
namespace {

std::string name_of(const OpSample& sample) {
    return sample.key.empty() ? fmt::format("of type {}", sample.features.type) : sample.key;
}

void check(const OpSample& sample) {
    auto refuse = [&](std::string_view what, double value) {
        throw Error(Fault::usage,
                    fmt::format("the operator {} has a {} of {}", name_of(sample), what, value));
    };
    if (!std::isfinite(sample.ns) || sample.ns <= 0) {
        refuse("time", sample.ns);
    }
    auto amount = [&](std::string_view what, double value) {
        if (!std::isfinite(value) || value < 0) {
            refuse(what, value);
        }
    };
    amount("spread", sample.spread);
    amount("power", sample.watts);
    check_op_features(sample.features, name_of(sample));
}

bool before(const OpSample& a, const OpSample& b) {
    auto all = [](const OpSample& sample) {
        const OpFeatures& f = sample.features;
        return std::tie(sample.key, f.type, f.attributes, f.dtype, f.macs, f.other_flops,
                        f.input_bytes, f.weight_bytes, f.output_bytes, f.numbers, sample.ns,
                        sample.spread, sample.watts);
    };
    return all(a) < all(b);
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// One sample for several of the same key.
OpSample merged(const OpSample* first, const OpSample* last) {
    OpSample result = *first;
    if (last - first == 1) {
        return result;
    }
    std::vector<double> times;
    std::vector<double> watts;
    for (const OpSample* one = first; one != last; ++one) {
        times.push_back(one->ns);
        if (one->watts > 0) {
            watts.push_back(one->watts);
        }
        result.spread = std::max(result.spread, one->spread);
    }
    result.ns = median(times);
    result.watts = watts.empty() ? 0 : median(watts);
    return result;
}

}  // namespace

void check_op_features(const OpFeatures& features, const std::string& name) {
    auto check_one = [&](std::string_view what, double value, bool may_be_negative) {
        if (!std::isfinite(value) || (value < 0 && !may_be_negative)) {
            throw Error(Fault::usage,
                        fmt::format("the operator {} has a number {} of {}", name, what, value));
        }
    };
    check_one("of MACs", features.macs, false);
    check_one("of other operations", features.other_flops, false);
    check_one("of input bytes", features.input_bytes, false);
    check_one("of weight bytes", features.weight_bytes, false);
    check_one("of output bytes", features.output_bytes, false);
    for (const auto& [what, value] : features.numbers) {
        check_one(what, value, true);
    }
}

std::vector<OpSample> checked_op_samples(std::vector<OpSample> samples) {
    for (OpSample& sample : samples) {
        check(sample);
        std::sort(sample.features.numbers.begin(), sample.features.numbers.end());
    }
    std::sort(samples.begin(), samples.end(), before);
    std::vector<OpSample> result;
    const OpSample* end = samples.data() + samples.size();
    for (const OpSample* one = samples.data(); one != end;) {
        const OpSample* next = one + 1;
        while (next != end && !one->key.empty() && next->key == one->key) {
            ++next;
        }
        result.push_back(merged(one, next));
        one = next;
    }
    return result;
}

}  // namespace trocar
