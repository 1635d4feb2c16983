#include <cmath>

#include "engines/reference/call.h"
#include "engines/reference/softmax.h"

namespace trocar::reference {

namespace {

// The negative of what stands at the target's class, weighted; `x` are logarithms.
void give_loss(Call& call, const Numbers& x) {
    const auto shape = call.shape(0);
    require(shape.size() >= 2, "a tensor with classes is wanted");
    const auto target = call.integers(1);
    const auto lines = lines_along(shape, {1});
    require(target.size() == lines.starts.size(), "one target per sample is wanted");
    const auto classes = shape[1];
    const auto weights = call.has(2) ? call.numbers(2) : Numbers(to_size(classes), 1.0);
    require(weights.size() == to_size(classes), "one weight per class is wanted");
    const auto* ignored = call.attribute("ignore_index");
    const auto ignore = call.integer("ignore_index", 0);
    Numbers losses;
    double total = 0;
    double total_weight = 0;
    for (std::size_t i = 0; i < target.size(); ++i) {
        if (ignored != nullptr && target[i] == ignore) {
            losses.push_back(0);
            continue;
        }
        require(target[i] >= 0 && target[i] < classes, "a target is no class");
        const auto weight = weights[to_size(target[i])];
        losses.push_back(-x[lines.starts[i] + lines.steps[to_size(target[i])]] * weight);
        total += losses.back();
        total_weight += weight;
    }
    const auto reduction = call.text("reduction", "mean");
    require(reduction == "mean" || reduction == "sum" || reduction == "none",
            "there is no such reduction");
    if (reduction == "none") {
        call.give(0, call.dtype(0), without(shape, {1}), losses);
    } else {
        call.give(0, scalar(call.dtype(0), reduction == "sum" ? total : total / total_weight));
    }
}

void negative_log_likelihood(Call& call) {
    give_loss(call, call.numbers(0));
}

void softmax_cross_entropy(Call& call) {
    const auto shape = call.shape(0);
    require(shape.size() >= 2, "a tensor with classes is wanted");
    auto x = call.numbers(0);
    const auto lines = lines_along(shape, {1});
    for (const auto start : lines.starts) {
        softmax_line(x.data() + start, lines.steps, true);
    }
    give_loss(call, x);
    call.give(1, call.dtype(0), shape, x);
}

}  // namespace

std::span<const Entry> loss_ops() {
    static constexpr Entry ops[]{
        {"NegativeLogLikelihoodLoss", negative_log_likelihood},
        {"SoftmaxCrossEntropyLoss", softmax_cross_entropy},
    };
    return ops;
}

}  // namespace trocar::reference
