#include "campaign/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "campaign/measures.h"
#include "util/text.h"

namespace trocar::campaign {

namespace {

std::uint64_t all_faults(const Tally& tally) {
    std::uint64_t total = 0;
    for (const auto& stratum : tally.strata) {
        total += stratum.population;
    }
    return total;
}

std::string points(double share) {
    return fmt::format("{:.3g} points", 100 * share);
}

// Which of the groups have enough faults for a claim of their own.
std::string claim_by(const Tally& tally, const std::string& what, const std::vector<Named>& groups,
                     const InjectReportOptions& options) {
    std::size_t enough = 0;
    std::uint64_t most_needed = 0;
    const Named* poorest = &groups.front();
    for (const auto& named : groups) {
        const auto needed =
            sample_size(population(tally, named.group), options.margin, options.confidence);
        enough += named.group.size() >= needed ? 1 : 0;
        most_needed = std::max(most_needed, needed);
        if (named.group.size() < poorest->group.size()) {
            poorest = &named;
        }
    }
    const auto all = groups.size();
    auto text = fmt::format(
        "Per {0}: a claim at ± {1} and {2:g} % confidence needs up to {3} faults in each {0}; {4}",
        what, points(options.margin), 100 * options.confidence, most_needed,
        enough == all ? fmt::format("all {} have them", counted(all, what))
        : enough == 0 ? "none has them"
                      : fmt::format("{} of {} have them", enough, all));
    if (enough < all) {
        text += fmt::format(" ('{}' has {}); {} only the printed intervals hold", poorest->name,
                            poorest->group.size(), enough > 0 ? "for the others" : "there");
    }
    return text + ".";
}

}  // namespace

Section sample_section(const CampaignHeader& header, const Tally& tally,
                       const InjectReportOptions& options) {
    Section section{"sample", "Sample", {}};
    const auto faults = all_faults(tally);
    const auto n = std::uint64_t{tally.trials.size()};
    section.scalars.push_back(
        {"population", "Faults there are (N)",
         faults > 0 ? Cell(faults) : Cell::unavailable("the faults were listed, not drawn"),
         Show::count,
         tally.strata.size() > 1 ? fmt::format("in {} strata", tally.strata.size()) : ""});
    section.scalars.push_back({"trials", "Trials (n)", n, Show::count,
                               tally.extent.left_out > 0
                                   ? fmt::format("{} more are left out", tally.extent.left_out)
                                   : ""});
    section.scalars.push_back({"inputs", "Inputs", tally.inputs, Show::count, ""});
    section.scalars.push_back(
        {"results", "Results", tally.total(Count::results), Show::count, "trials × inputs each"});
    section.scalars.push_back(
        {"decision", "Decision",
         tally.decision_meaning.empty()
             ? "first choice along the last axis of the first output (of an older trocar)"
             : tally.decision_meaning,
         Show::plain, ""});
    section.scalars.push_back({"seed", "Seed", header.seed, Show::plain, ""});
    section.scalars.push_back(
        {"interval", "Intervals", method_text(tally, options), Show::plain, ""});
    return section;
}

std::vector<std::string> claims(const Tally& tally, const InjectReportOptions& options) {
    std::vector<std::string> all;
    if (tally.trials.empty()) {
        return {tally.extent.left_out > 0
                    ? "What may be claimed: nothing yet, no block of trials is complete."
                    : "What may be claimed: nothing yet, there are no results."};
    }
    const bool decided = has_sdc(tally);
    const auto which =
        decided ? sdc_title(tally) + " rate" : std::string("rate of changed outputs");
    const auto sdc = rate(tally, everything(tally), decided ? Count::sdc : Count::benign,
                          Count::results, options);
    if (!decided) {
        all.push_back(
            fmt::format("There is no SDC rate: the decision is {}.", tally.decision_meaning));
    }
    if (std::isinf(sdc.effective)) {
        all.push_back(
            fmt::format("What may be claimed: every fault was tried; the {} is {:.4g} %, exactly, "
                        "for these inputs.",
                        which, 100 * sdc.rate));
    } else {
        all.push_back(fmt::format(
            "What may be claimed: the {} of all faults is {:.4g} %, between {:.4g} and {:.4g} % "
            "with {:g} % confidence.",
            which, 100 * sdc.rate, 100 * sdc.interval.low, 100 * sdc.interval.high,
            100 * options.confidence));
    }
    all.push_back(fmt::format(
        "The intervals are about faults that were not drawn, not about other inputs, models or "
        "engines: the {} of the campaign {} as given.",
        counted(tally.inputs, "input"), tally.inputs == 1 ? "is taken" : "are taken"));
    for (const auto& by : options.by) {
        const auto groups = by == "target"  ? by_target(tally)
                            : by == "layer" ? by_layer(tally)
                                            : by_bit(tally);
        if (groups.size() > 1) {
            all.push_back(claim_by(tally, by, groups, options));
            if (groups.size() >= 10 && all.back().find("have them") != std::string::npos) {
                all.back() +=
                    fmt::format(" Of {} intervals, about {:.2g} miss.", groups.size(),
                                static_cast<double>(groups.size()) * (1 - options.confidence));
            }
        }
    }
    return all;
}

}  // namespace trocar::campaign
