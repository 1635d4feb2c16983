#include "campaign/measures.h"

#include <fmt/format.h>

namespace trocar::campaign {

namespace {

using Kind = Decision::Kind;

std::string sdc_meaning(const Tally& tally) {
    const std::string text = "silent data corruption: ";
    const auto& d = tally.decision;
    if (tally.decision_meaning.empty()) {
        return text +
               "the first choice along the last axis of the first output is another than in the "
               "golden run";
    }
    switch (d.kind) {
        case Kind::scores:
            return text + "the first choice is another than in the golden run, at any position";
        case Kind::topk:
            return text + fmt::format(
                              "the golden first choice is not among the first {} of the faulty "
                              "run, at any position",
                              d.k);
        case Kind::equal:
            return text +
                   "an element of the output is another than in the golden run, or the "
                   "shape is";
        default:
            return text + fmt::format("an element of the output is off by more than {}", d.limit);
    }
}

}  // namespace

std::string sdc_title(const Tally& tally) {
    return tally.decision.kind == Kind::scores ? "SDC-1" : "SDC";
}

bool has_sdc(const Tally& tally) {
    return tally.decision.kind != Kind::none;
}

bool has_positions(const Tally& tally) {
    return tally.most_positions > 1;
}

std::vector<Measure> measures_of(const Tally& tally) {
    std::vector<Measure> all{
        {"crash", "Crash", Count::crash, "the process that ran the engine died of a signal"},
        {"hang", "Hang", Count::hang, "the run did not end within the time limit"},
        {"failed", "Failed", Count::failed, "the engine refused to go on"},
        {"due", "DUE", Count::due,
         "detected unrecoverable error: NaN or infinity, where the golden run has a number, in a "
         "monitored tensor"}};
    if (has_sdc(tally)) {
        all.push_back({"sdc", sdc_title(tally), Count::sdc, sdc_meaning(tally)});
        all.push_back({"benign", "Benign", Count::benign,
                       tally.decision.kind == Kind::scores
                           ? "other bits in the output, the same first choice"
                           : "other bits in the output, the same decision"});
    } else {
        all.push_back({"benign", "Changed", Count::benign,
                       "other bits in the output; there is no decision that they could change"});
    }
    all.push_back({"masked", "Masked", Count::masked, "the golden output bit for bit"});
    if (tally.decision.kind == Kind::scores) {
        all.push_back({"sdc5", "SDC-5", Count::sdc5,
                       "the faulty first choice is not among the golden first five"});
        all.push_back({"sdc10", "SDC-10 %", Count::sdc10,
                       "the score of the golden first choice is off by more than 10 %"});
        all.push_back({"sdc20", "SDC-20 %", Count::sdc20, "… by more than 20 %"});
    }
    return all;
}

}  // namespace trocar::campaign
