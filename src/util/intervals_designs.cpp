#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "trocar/error.h"
#include "trocar/intervals.h"
#include "util/distributions.h"
#include "util/score_interval.h"

namespace trocar {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

double count(std::uint64_t number) {
    return static_cast<double>(number);
}

void check(const SampledStratum& stratum) {
    if (stratum.events > stratum.trials || stratum.trials > stratum.population) {
        throw Error(Fault::usage, fmt::format("{} events in {} trials of a population of {} cannot "
                                              "be",
                                              stratum.events, stratum.trials, stratum.population));
    }
}

// What the clusters say of the rate; weights are shares of the weight of all results.
struct Evidence {
    double rate = 0;
    double variance = 0;    // of the rate
    double heaviest = 0;    // weight of the cluster that may stand for most of what was not drawn
    double events = 0;      // share that was seen, and is certain
    double non_events = 0;  // the same
};

// Clopper and Pearson's interval of `trials` that need not be whole numbers.
double upper_end(double rate, double trials, double tail) {
    const double events = rate * trials;
    const double others = trials - events;
    // From the side where the end is small, which keeps more of its digits.
    return others <= 0           ? 1
           : 2 * events < trials ? incomplete_beta_inverse(events + 1, others, 1 - tail)
                                 : 1 - incomplete_beta_inverse(others, events + 1, tail);
}

double trials_of(double rate, const Evidence& evidence, double pseudo) {
    const double unseen = evidence.heaviest * (1 - rate);
    return rate * (1 - rate) / (evidence.variance + pseudo * unseen * unseen);
}

// The upper end, and the trials of a simple sample that give it. Where the heaviest cluster is one
// of n, `pseudo` more of them that are nothing but events are taken as possible, in the rate and in
// the variance: clusters of a kind that was not drawn. Without events that leaves n trials, and
// there is no step to one event.
std::pair<double, double> upper(const Evidence& evidence, double confidence) {
    const double z = two_sided(confidence);
    const double pseudo = z * z / 2;
    const double more = pseudo * evidence.heaviest;
    const double smoothed = (evidence.rate + more) / (1 + more);
    const double trials =
        smoothed < 1 ? trials_of(smoothed, evidence, pseudo) : 1 / evidence.heaviest;
    return {upper_end(evidence.rate, trials, (1 - confidence) / 2), trials};
}

Evidence mirrored(Evidence evidence) {
    evidence.rate = 1 - evidence.rate;
    return evidence;
}

// The part of `heaviest` that is left when `drawn` of `population` clusters are known: without
// events, a sample leaves as many possible as -log(1 - f) says.
double left_over(double drawn, double population) {
    const double f = drawn / population;
    return f < 1 ? -f / std::log1p(-f) : 0;
}

bool limited(const ClusterStratum& stratum) {
    return stratum.population.has_value() && !stratum.replaced;
}

struct Sums {
    double weights = 0;  // of results
    double events = 0;
};

Sums sum_up(std::span<const ClusterStratum> strata) {
    Sums sums;
    for (const auto& stratum : strata) {
        for (const auto& [of, weight] : stratum.clusters) {
            check({of.trials, of.trials, of.events});
            if (!(weight >= 0 && std::isfinite(weight))) {
                throw Error(Fault::usage, fmt::format("a trial cannot weigh {}", weight));
            }
            sums.weights += weight * count(of.trials);
            sums.events += weight * count(of.events);
        }
        if (limited(stratum) && stratum.clusters.size() > *stratum.population) {
            throw Error(Fault::usage, fmt::format("{} clusters of a population of {} cannot be",
                                                  stratum.clusters.size(), *stratum.population));
        }
    }
    return sums;
}

// The variance of clusters within a stratum, as that of what each adds to the rate. Strata of few
// clusters say little of it: two more are added to each, as clusters of all strata are.
void add(Evidence& evidence, const ClusterStratum& stratum, double weights, double spread) {
    constexpr double borrowed = 2;
    const double n = count(stratum.clusters.size());
    double sum = 0;
    double squares = 0;
    double share = 0;
    double heaviest = 0;
    double events = 0;
    for (const auto& [of, weight] : stratum.clusters) {
        const double part = weight * count(of.trials) / weights;
        const double seen = weight * count(of.events) / weights;
        const double residual = seen - evidence.rate * part;
        sum += residual;
        squares += residual * residual;
        share += part;
        events += seen;
        heaviest = std::max(heaviest, part);
    }
    const double drawn = limited(stratum) ? n / count(*stratum.population) : 0;
    const double mean = sum / n;
    const double scale = share / n;
    const double all = squares - n * mean * mean + n * borrowed / (n + borrowed) * mean * mean +
                       borrowed * scale * scale * spread;
    evidence.variance += (1 - drawn) * n * all / (n + borrowed - 1);
    if (limited(stratum)) {
        heaviest *= left_over(n, count(*stratum.population));
        evidence.events += drawn * events;
        evidence.non_events += drawn * (share - events);
    }
    evidence.heaviest = std::max(evidence.heaviest, heaviest);
}

// Strata without clusters, and the share of the population that they are.
void widen(RateEstimate& estimate, std::span<const ClusterStratum> strata) {
    double tried = 0;
    double all = 0;
    std::size_t without = 0;
    for (const auto& stratum : strata) {
        const double population = count(stratum.population.value_or(0));
        all += population;
        tried += stratum.clusters.empty() ? 0 : population;
        without += stratum.clusters.empty() && population > 0 ? 1 : 0;
    }
    if (without == 0) {
        return;
    }
    const double share = tried / all;
    estimate.interval = {estimate.interval.low * share,
                         estimate.interval.high * share + (1 - share)};
    estimate.effective = std::isinf(estimate.effective) ? 0 : estimate.effective;
    estimate.notes.push_back(fmt::format(
        "{} without trials, {:.3g} % of the population, may have any rate: the "
        "interval is that much wider",
        without == 1 ? "1 stratum" : fmt::format("{} strata", without), 100 * (1 - share)));
}

std::vector<WeightedCluster> of_equal_weight(std::span<const Cluster> clusters) {
    std::vector<WeightedCluster> all;
    for (const auto& cluster : clusters) {
        if (cluster.trials > 0 || cluster.events > 0) {
            all.push_back({cluster, 1});
        }
    }
    return all;
}

}  // namespace

RateEstimate design_rate(std::span<const ClusterStratum> strata, double confidence) {
    two_sided(confidence);  // checks it
    const auto [weights, events] = sum_up(strata);
    RateEstimate estimate;
    if (weights <= 0) {
        estimate.rate = std::numeric_limits<double>::quiet_NaN();
        estimate.notes.emplace_back("nothing was tried: any rate is possible");
        return estimate;
    }
    Evidence evidence;
    evidence.rate = std::min(1., events / weights);
    double spread = 0;  // of the rates of all clusters
    for (const auto& stratum : strata) {
        for (const auto& [of, weight] : stratum.clusters) {
            if (of.trials > 0) {
                const double off = count(of.events) / count(of.trials) - evidence.rate;
                spread += weight * count(of.trials) / weights * off * off;
            }
        }
    }
    for (const auto& stratum : strata) {
        if (!stratum.clusters.empty()) {
            add(evidence, stratum, weights, spread);
        }
    }
    estimate.rate = evidence.rate;
    if (evidence.heaviest <= 0) {
        // An exact rate must not be moved by rounding.
        estimate.effective = infinite;
        estimate.interval = {evidence.rate, evidence.rate};
    } else {
        const auto [high, up] = upper(evidence, confidence);
        const auto [low, down] = upper(mirrored(evidence), confidence);
        estimate.interval = {std::max(evidence.rate <= 0 ? 0 : 1 - low, evidence.events),
                             std::min(high, 1 - evidence.non_events)};
        estimate.effective = evidence.rate <= 0.5 ? up : down;
    }
    widen(estimate, strata);
    return estimate;
}

RateEstimate stratified_rate(std::span<const SampledStratum> strata, double confidence) {
    std::vector<ClusterStratum> all;
    for (const auto& stratum : strata) {
        check(stratum);
        ClusterStratum made;
        made.population = stratum.population;
        const double weight =
            stratum.trials > 0 ? count(stratum.population) / count(stratum.trials) : 1;
        made.clusters.assign(stratum.events, {{1, 1}, weight});
        made.clusters.resize(stratum.trials, {{1, 0}, weight});
        all.push_back(std::move(made));
    }
    return design_rate(all, confidence);
}

RateEstimate clustered_rate(std::span<const Cluster> clusters, double confidence,
                            std::optional<std::uint64_t> population) {
    const ClusterStratum all{of_equal_weight(clusters), population, false};
    return design_rate(std::span(&all, 1), confidence);
}

WeightedEstimate weighted_rate(std::span<const WeightedTrial> trials, double confidence) {
    ClusterStratum all;
    double weights = 0;
    double squares = 0;
    double events = 0;
    for (const auto& trial : trials) {
        all.clusters.push_back({{1, trial.event ? 1U : 0U}, trial.weight});
        weights += trial.weight;
        squares += trial.weight * trial.weight;
        events += trial.event ? trial.weight : 0;
    }
    WeightedEstimate estimate;
    static_cast<RateEstimate&>(estimate) = design_rate(std::span(&all, 1), confidence);
    if (weights <= 0) {
        estimate.horvitz_thompson = std::numeric_limits<double>::quiet_NaN();
        return estimate;
    }
    estimate.horvitz_thompson = events / static_cast<double>(trials.size());
    estimate.kish = weights * weights / squares;
    return estimate;
}

}  // namespace trocar
