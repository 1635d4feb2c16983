#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/outputs.h"
#include "trocar/compare.h"
#include "trocar/selector.h"

namespace trocar {

namespace {

Tolerance tolerance_for(const TensorComparison& tensor, const Layer& layer,
                        const Judging& judging) {
    auto tolerance = tensor.by_default;
    if (judging.rtol || judging.atol) {
        tolerance = {.rtol = judging.rtol.value_or(0), .atol = judging.atol.value_or(0)};
    }
    for (const auto& rule : judging.rules) {
        const bool matches =
            glob_match(rule.glob, layer.type) || glob_match(rule.glob, layer.name) ||
            glob_match(rule.glob, layer.module) || glob_match(rule.glob, tensor.tensor);
        tolerance = matches ? rule.tolerance : tolerance;
    }
    return tolerance;
}

void judge_tensor(TensorComparison& tensor, const Layer& layer, const Judging& judging) {
    if (!tensor.difference) {
        return;  // said when it was compared
    }
    const auto& d = *tensor.difference;
    tensor.tolerance = tolerance_for(tensor, layer, judging);
    tensor.factor = d.corners.empty() ? 0 : needed_factor(d.corners, tensor.tolerance);
    tensor.reason.clear();
    if (d.nan_mismatches + d.infinity_mismatches > 0) {
        tensor.verdict = Verdict::fail;
        tensor.factor = std::numeric_limits<double>::infinity();
        tensor.reason = fmt::format("{} NaN and {} infinities on one side only", d.nan_mismatches,
                                    d.infinity_mismatches);
    } else if (tensor.factor <= 1) {
        tensor.verdict = Verdict::pass;
    } else {
        tensor.verdict = tensor.factor <= judging.warn ? Verdict::warn : Verdict::fail;
        tensor.reason = fmt::format("off by {:.3g} at most, {:.3g} times the tolerance", d.max_abs,
                                    tensor.factor);
    }
    if (tensor.verdict != Verdict::pass) {
        tensor.reason += lab::further(tensor.layout);
    }
}

// What a layer is worth: the worst that was found, where something was compared at all.
Verdict worst_of(const LayerComparison& result) {
    auto worst = Verdict::pass;
    bool any = false;
    for (const auto& tensor : result.tensors) {
        if (tensor.verdict == Verdict::fail) {
            return Verdict::fail;
        }
        any = any || tensor.verdict != Verdict::incomparable;
        worst = std::max(worst, tensor.verdict);
    }
    return any || worst == Verdict::incomparable ? worst : Verdict::incomparable;
}

}  // namespace

const char* name(Verdict verdict) {
    switch (verdict) {
        case Verdict::pass:
            return "PASS";
        case Verdict::warn:
            return "WARN";
        case Verdict::fail:
            return "FAIL";
        default:
            return "INCOMPARABLE";
    }
}

void judge(LayerComparison& result, const Layer& layer, const Judging& judging) {
    for (auto& tensor : result.tensors) {
        judge_tensor(tensor, layer, judging);
    }
    result.verdict = result.end == RunEnd::done && !result.tensors.empty() ? worst_of(result)
                                                                           : Verdict::incomparable;
}

void judge(Comparison& comparison, const Judging& judging) {
    for (auto& result : comparison.results) {
        judge(result, comparison.layers.at(result.layer), judging);
    }
}

double relative_error(const LayerComparison& result) {
    double worst = std::numeric_limits<double>::quiet_NaN();
    for (const auto& tensor : result.tensors) {
        if (tensor.difference && !std::isnan(tensor.difference->normalized_l2)) {
            worst = std::isnan(worst) ? tensor.difference->normalized_l2
                                      : std::max(worst, tensor.difference->normalized_l2);
        }
    }
    return worst;
}

}  // namespace trocar
