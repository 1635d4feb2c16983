#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace trocar {

// How the outputs of a run are judged, after post-processing: what counts as silent data
// corruption. docs/inject.md explains the kinds.
struct Decision {
    enum class Kind {
        automatic,  // derived from the golden outputs of the first input
        scores,     // another first choice along an axis, at any position
        equal,      // another element
        topk,       // the golden first choice is not among the first `k` of the faulty run
        error,      // an element whose absolute error exceeds `limit`
        none,       // nothing counts
    };
    Kind kind = Kind::automatic;
    // Name or index of the output, of scores and topk with ":AXIS" after it where that is given;
    // empty: the first output that fits.
    std::string output = {};
    std::int64_t k = 1;
    double limit = 0;
    bool operator==(const Decision&) const = default;
};
// "auto", "scores:logits:1", "equal:tokens", "topk:5", "error:0.01:depth", "none". Throws
// Error(usage).
Decision parse_decision(std::string_view text);
std::string text(const Decision& decision);  // reads back

// The decision of a campaign, complete.
struct ChosenDecision {
    Decision decision = {};    // never automatic; with the name of its output, and the axis
    std::string meaning = {};  // "scores of 'logits' along axis 1 (chosen automatically; …)"
};

}  // namespace trocar
#pragma GCC visibility pop
