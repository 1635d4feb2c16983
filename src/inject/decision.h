#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trocar/campaign.h"
#include "trocar/decision.h"
#include "trocar/value.h"

namespace trocar::inject {

// A decision that is bound to one output.
struct Rule {
    Decision::Kind kind = Decision::Kind::none;  // never automatic
    std::size_t output = 0;                      // its index
    std::string name = {};
    std::size_t axis = 0;  // of scores and topk
    std::int64_t k = 1;
    double limit = 0;
    bool automatic = false;
    std::string because = {};  // of none, where that was not asked for

    // Is a position decided for a class, which a label may be compared with?
    bool has_classes() const {
        return kind == Decision::Kind::scores || kind == Decision::Kind::topk ||
               kind == Decision::Kind::equal;
    }
};

// From the golden outputs of the first input, post-processed, and the inputs that gave them.
// Throws Error(usage) on an output that is not there, with near matches, an axis out of range, and
// outputs that do not fit the decision.
Rule bound(const Decision& decision, const std::vector<NamedValue>& outputs,
           const std::vector<NamedValue>& inputs);
ChosenDecision chosen(const Rule& rule);

// What `automatic` comes to; none where no output fits.
Rule automatic_rule(const std::vector<NamedValue>& outputs, const std::vector<NamedValue>& inputs);
// The axis along which an output has classes, where nothing else is said.
std::size_t class_axis(const Value& output, const std::vector<NamedValue>& inputs);

// What golden outputs decide.
struct Choices {
    std::uint64_t positions = 0;
    std::int64_t top = -1;           // the class or number at the first position; -1: none
    std::vector<std::int64_t> tops;  // scores, topk: by position; -1: NaN leaves no choice
    std::vector<std::array<std::int64_t, 5>> five = {};  // scores: the first five; -1: no more
    std::vector<double> scores = {};                     // … of the first choices
};
// Throws Error(input) where the output of this input has no such axis.
Choices choices(const Rule& rule, const std::vector<NamedValue>& outputs);

// Fills in what is decided otherwise: sdc1 to sdc20, positions, changed, faulty_top.
void compare(const Rule& rule, const Choices& choices, const std::vector<NamedValue>& golden,
             const std::vector<NamedValue>& faulty, TrialResult& result);

}  // namespace trocar::inject
