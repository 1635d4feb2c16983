#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "campaign/tally.h"
#include "util/score_interval.h"

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

RateEstimate simple(const Part& part, const InjectReportOptions& options) {
    const auto [trials, events] = sum(part.clusters);
    const auto population = part.whole && part.population > 0 && trials == part.drawn
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

// Strata in which clusters were drawn: their variances, each from between its clusters, add up.
// `untried`: faults of strata without trials, which may do anything.
RateEstimate stratified_clusters(const std::vector<Part>& parts, std::uint64_t untried,
                                 const InjectReportOptions& options) {
    double population = 0;
    for (const auto& part : parts) {
        population += static_cast<double>(part.population);
    }
    double variance = 0;
    double smoothed = 0;
    RateEstimate estimate;
    for (const auto& part : parts) {
        const auto one = clustered_rate(part.clusters, options.confidence, part.population);
        const double share = static_cast<double>(part.population) / population;
        // A stratum without events is not known to have none.
        const double likely = std::isinf(one.effective)
                                  ? one.rate
                                  : (one.rate * one.effective + 0.5) / (one.effective + 1);
        estimate.rate += share * one.rate;
        smoothed += share * likely;
        variance += share * share * likely * (1 - likely) / one.effective;
    }
    estimate.effective = variance > 0 ? smoothed * (1 - smoothed) / variance
                                      : std::numeric_limits<double>::infinity();
    const double tried = population / (population + static_cast<double>(untried));
    const auto interval =
        score_interval(estimate.rate, estimate.effective, two_sided(options.confidence));
    estimate.interval = {interval.low * tried, interval.high * tried + (1 - tried)};
    return estimate;
}

// Trials that stand for different numbers of faults.
RateEstimate weighted(const std::vector<Part>& parts, const InjectReportOptions& options) {
    std::vector<WeightedCluster> clusters;
    for (const auto& part : parts) {
        for (std::size_t i = 0; i < part.clusters.size(); ++i) {
            clusters.push_back({part.clusters[i], part.weight * part.weights[i]});
        }
    }
    return weighted_clustered_rate(clusters, options.confidence);
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

RateEstimate rate(const Tally& tally, const Group& group, Count what, Count of,
                  const InjectReportOptions& options) {
    const auto parts = group.empty() ? std::vector<Part>{} : parts_of(tally, group, what, of);
    if (parts.empty()) {
        RateEstimate none;
        none.rate = std::numeric_limits<double>::quiet_NaN();
        return none;
    }
    // Shares of a part of the results (of those that are harmful, say) are known from that many.
    const bool of_all = of == Count::results;
    if (of_all && parts.size() > 1 && strata_known(parts) && !own_weights(parts)) {
        const auto untried = group.size() == tally.trials.size() ? untried_faults(tally) : 0;
        if (!one_each(parts)) {
            return stratified_clusters(parts, untried, options);
        }
        std::vector<SampledStratum> strata;
        for (const auto& part : parts) {
            const auto [trials, events] = sum(part.clusters);
            strata.push_back({part.population, trials, events});
        }
        strata.push_back({untried, 0, 0});
        return stratified_rate(strata, options.confidence);
    }
    if (!equal_weights(parts)) {
        return weighted(parts, options);
    }
    const auto part = parts.size() == 1 ? parts[0] : joined(parts);
    if (one_each(parts)) {
        return simple(part, options);
    }
    const bool finite = of_all && part.whole && part.population > 0;
    return clustered_rate(part.clusters, options.confidence,
                          finite ? std::optional(part.population) : std::nullopt);
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
    const bool wilson = options.method == InjectReportOptions::Method::wilson;
    auto text = fmt::format("{}, {:g} % confidence", wilson ? "Wilson" : "Clopper–Pearson",
                            100 * options.confidence);
    const bool strata = tally.strata.size() > 1;
    const bool clusters = clustered(all);
    if (strata || clusters) {
        text +=
            fmt::format("; {}{}{}{}", strata ? "strata weighted by their populations" : "",
                        strata && clusters ? ", " : "",
                        clusters ? "variance between faults, whose inputs are not independent" : "",
                        wilson ? "" : " (there Wilson with as many trials as say the same)");
    }
    const bool weights = std::any_of(all.begin(), all.end(),
                                     [](const TrialTally* trial) { return trial->weight != 1; });
    if (weights) {
        text +=
            "; trials weighted by the inverse of their chances, for they were drawn with unequal "
            "ones (Hansen–Hurwitz, as a ratio)";
    }
    return text;
}

}  // namespace trocar::campaign
