#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "campaign/tally.h"

namespace trocar::campaign {

namespace {

// The trials of one stratum.
struct Part {
    std::uint64_t population = 0;  // 0: not known
    std::uint64_t drawn = 0;       // trials of the stratum, also those outside of the group
    double weight = 1;             // what a trial of it stands for, when `population` is not used
    std::vector<Cluster> clusters;
    std::vector<double> weights;  // of the clusters
    bool whole = true;            // all of its trials are in the group
};

std::vector<Part> parts_of(const Tally& tally, const Group& group, Count what, Count of) {
    std::map<std::uint32_t, Part> parts;
    for (const auto* trial : group) {
        auto& part = parts[trial->stratum];
        part.clusters.push_back({(*trial)[of], (*trial)[what]});
        part.weights.push_back(double{trial->weight});
    }
    std::vector<Part> all;
    for (auto& [stratum, part] : parts) {
        part.drawn = tally.drawn.at(stratum);
        part.whole = part.drawn == part.clusters.size();
        const auto known = stratum < tally.strata.size() ? tally.strata[stratum].population : 0;
        part.population = known >= part.drawn ? known : 0;
        part.weight = part.population > 0
                          ? static_cast<double>(part.population) / static_cast<double>(part.drawn)
                          : 1;
        all.push_back(std::move(part));
    }
    return all;
}

bool equal_weights(const std::vector<Part>& parts) {
    const double first = parts[0].weight * parts[0].weights[0];
    return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
        return std::all_of(part.weights.begin(), part.weights.end(), [&](double weight) {
            return std::abs(part.weight * weight - first) <= 1e-3 * first;
        });
    });
}

bool own_weights(const std::vector<Part>& parts) {
    return std::any_of(parts.begin(), parts.end(), [](const Part& part) {
        return std::any_of(part.weights.begin(), part.weights.end(),
                           [](double weight) { return weight != 1; });
    });
}

bool one_each(const std::vector<Part>& parts) {
    return std::all_of(parts.begin(), parts.end(), [](const Part& part) {
        return std::all_of(part.clusters.begin(), part.clusters.end(),
                           [](const Cluster& cluster) { return cluster.trials <= 1; });
    });
}

Cluster sum(const std::vector<Cluster>& clusters) {
    Cluster total;
    for (const auto& cluster : clusters) {
        total.trials += cluster.trials;
        total.events += cluster.events;
    }
    return total;
}

RateEstimate simple(const Part& part, bool finite, const InjectReportOptions& options) {
    const auto [trials, events] = sum(part.clusters);
    const auto population = finite && part.whole && part.population > 0 && trials == part.drawn
                                ? std::optional(part.population)
                                : std::nullopt;
    RateEstimate estimate;
    estimate.rate = trials > 0 ? static_cast<double>(events) / static_cast<double>(trials)
                               : std::numeric_limits<double>::quiet_NaN();
    estimate.effective = static_cast<double>(trials);
    estimate.interval = options.method == InjectReportOptions::Method::wilson
                            ? wilson(events, trials, options.confidence, population)
                            : clopper_pearson(events, trials, options.confidence, population);
    return estimate;
}

void append(ClusterStratum& stratum, const Part& part) {
    for (std::size_t i = 0; i < part.clusters.size(); ++i) {
        stratum.clusters.push_back({part.clusters[i], part.weight * part.weights[i]});
    }
}

// Strata in which clusters were drawn. `untried`: faults of strata without trials, which may do
// anything.
RateEstimate stratified(const std::vector<Part>& parts, std::uint64_t untried, bool finite,
                        const InjectReportOptions& options) {
    std::vector<ClusterStratum> strata;
    for (const auto& part : parts) {
        auto& stratum = strata.emplace_back();
        append(stratum, part);
        stratum.population = part.population;
        stratum.replaced = !finite || own_weights({part});
    }
    auto& rest = strata.emplace_back();
    rest.population = untried;
    return design_rate(strata, options.confidence);
}

Part joined(const std::vector<Part>& parts) {
    Part all;
    for (const auto& part : parts) {
        all.clusters.insert(all.clusters.end(), part.clusters.begin(), part.clusters.end());
    }
    all.whole = false;
    return all;
}

bool strata_known(const std::vector<Part>& parts) {
    return std::all_of(parts.begin(), parts.end(),
                       [](const Part& part) { return part.whole && part.population > 0; });
}

// Faults in strata of which nothing was tried.
std::uint64_t untried_faults(const Tally& tally) {
    std::uint64_t faults = 0;
    for (std::uint32_t i = 0; i < tally.strata.size(); ++i) {
        faults += tally.drawn.contains(i) ? 0 : tally.strata[i].population;
    }
    return faults;
}

}  // namespace

bool is_exact(const Tally& tally, const Group& group) {
    return tally.finite && !group.empty() &&
           std::all_of(group.begin(), group.end(), [&](const TrialTally* trial) {
               return trial->stratum < tally.strata.size() && trial->weight == 1 &&
                      tally.strata[trial->stratum].population == tally.drawn.at(trial->stratum);
           });
}

RateEstimate rate(const Tally& tally, const Group& group, Count what, Count of,
                  const InjectReportOptions& options) {
    const auto parts = group.empty() ? std::vector<Part>{} : parts_of(tally, group, what, of);
    if (parts.empty()) {
        RateEstimate none;
        none.rate = std::numeric_limits<double>::quiet_NaN();
        return none;
    }
    const auto untried = group.size() == tally.trials.size() ? untried_faults(tally) : 0;
    // Shares of a part of the results (of those that are harmful, say) are known from that many.
    const bool of_all = of == Count::results;
    if (of_all && strata_known(parts) &&
        (parts.size() > 1 || untried > 0 || own_weights(parts) || !one_each(parts))) {
        return stratified(parts, untried, tally.finite, options);
    }
    const auto part = parts.size() == 1 ? parts[0] : joined(parts);
    const bool all_tried = untried == 0 && is_exact(tally, group);
    if (one_each(parts) && equal_weights(parts) && !all_tried) {
        return simple(part, of_all && tally.finite, options);
    }
    ClusterStratum all;
    for (const auto& one : parts) {
        append(all, one);
    }
    auto estimate = design_rate(std::span(&all, 1), options.confidence);
    if (all_tried && !std::isnan(estimate.rate)) {
        estimate.interval = {estimate.rate, estimate.rate};
        estimate.effective = std::numeric_limits<double>::infinity();
    }
    return estimate;
}

std::optional<std::uint64_t> population(const Tally& tally, const Group& group) {
    if (group.empty()) {
        return std::nullopt;
    }
    std::uint64_t total = 0;
    for (const auto& part : parts_of(tally, group, Count::sdc, Count::results)) {
        if (!part.whole || part.population == 0) {
            return std::nullopt;
        }
        total += part.population;
    }
    return total;
}

bool clustered(const Group& group) {
    return std::any_of(group.begin(), group.end(),
                       [](const TrialTally* trial) { return (*trial)[Count::results] > 1; });
}

std::string method_text(const Tally& tally, const InjectReportOptions& options) {
    const auto all = everything(tally);
    if (is_exact(tally, all) && untried_faults(tally) == 0) {
        return "none: every fault was tried, and the rates are exact";
    }
    const bool strata = tally.strata.size() > 1;
    const bool clusters = clustered(all);
    const bool weights = std::any_of(all.begin(), all.end(),
                                     [](const TrialTally* trial) { return trial->weight != 1; });
    const bool wilson =
        options.method == InjectReportOptions::Method::wilson && !strata && !clusters && !weights;
    auto text = fmt::format("{}, {:g} % confidence", wilson ? "Wilson" : "Clopper–Pearson",
                            100 * options.confidence);
    if (strata || clusters || weights) {
        text += ", with the number of trials that the variance is worth (Korn–Graubard)";
    }
    if (strata || clusters) {
        text += fmt::format(
            "; {}{}{}", strata ? "strata weighted by their populations" : "",
            strata && clusters ? ", " : "",
            clusters ? "variance between faults, whose inputs are not independent" : "");
    }
    if (weights) {
        text +=
            "; trials weighted by the inverse of their chances, for they were drawn with unequal "
            "ones (Hansen–Hurwitz, as a ratio)";
    }
    return text;
}

}  // namespace trocar::campaign
