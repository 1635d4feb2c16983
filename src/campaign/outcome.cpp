#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "trocar/campaign.h"

namespace trocar {

namespace {

constexpr std::array<std::string_view, 7> names{"crash", "hang",   "failed", "due",
                                                "sdc",   "benign", "masked"};

bool same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

bool same(const Metrics& a, const Metrics& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        return x.first == y.first && same(x.second, y.second);
    });
}

}  // namespace

std::string name(Outcome outcome) {
    return std::string(names.at(static_cast<std::size_t>(outcome)));
}

std::optional<Outcome> parse_outcome(std::string_view text) {
    const auto at = std::find(names.begin(), names.end(), text);
    return at == names.end() ? std::nullopt
                             : std::optional(static_cast<Outcome>(at - names.begin()));
}

bool TrialResult::operator==(const TrialResult& other) const {
    return trial == other.trial && input == other.input && outcome == other.outcome &&
           golden_top == other.golden_top && faulty_top == other.faulty_top &&
           positions == other.positions && changed == other.changed && sdc1 == other.sdc1 &&
           sdc5 == other.sdc5 && sdc10 == other.sdc10 && sdc20 == other.sdc20 &&
           golden_correct == other.golden_correct && faulty_correct == other.faulty_correct &&
           detected == other.detected && same(max_abs, other.max_abs) &&
           same(mean_abs, other.mean_abs) && same(max_rel, other.max_rel) &&
           same(sqnr_db, other.sqnr_db) && same(cosine, other.cosine) &&
           same(metric, other.metric) && same(metrics, other.metrics) && failure == other.failure;
}

}  // namespace trocar
