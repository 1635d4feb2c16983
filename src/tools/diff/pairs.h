#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trocar/difference.h"
#include "trocar/dump.h"

namespace trocar::diff {

// What became of one tensor that is in both dumps.
struct Pair {
    enum class Outcome {
        same_bits,
        within,      // by the tolerance
        differs,     // numbers do
        other_type,  // or another kind of value
        other_shape,
        incomparable,  // neither numbers nor hashes to compare
    };
    const DumpRecord* a = nullptr;
    const DumpRecord* b = nullptr;
    Outcome outcome = Outcome::incomparable;
    std::string by;                        // what was compared: "hash", "tensors", "statistics"
    std::optional<Difference> difference;  // when both tensors are there

    bool agrees() const {
        return outcome == Outcome::same_bits || outcome == Outcome::within ||
               outcome == Outcome::incomparable;
    }
};

struct Matched {
    std::vector<Pair> pairs;                 // in the order of the first dump
    std::vector<const DumpRecord*> missing;  // in the first dump only
    std::vector<const DumpRecord*> extra;    // in the second only
};

// By name of the tensor, set of inputs and rounds of loops; where these occur more than once, the
// first goes with the first. Nothing is compared yet.
Matched match(const Dump& a, const Dump& b);

// Compares a pair: hashes, else tensors, else statistics.
void compare(Pair& pair, const Dump& a, const Dump& b, const Tolerance& tolerance);

// How bad a pair is: larger is worse. Types and shapes first, NaN and infinities next, then by the
// share of noise.
double badness(const Pair& pair);

const char* outcome_text(Pair::Outcome outcome);

}  // namespace trocar::diff
