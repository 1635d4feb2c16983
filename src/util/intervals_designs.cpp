#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "trocar/error.h"
#include "trocar/intervals.h"
#include "util/distributions.h"
#include "util/score_interval.h"
#include "util/text.h"

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

// What is known of the strata that were sampled; all as shares of the whole population.
struct Sampled {
    double share = 0;     // of the population that they are
    double rate = 0;      // times `share`
    double smoothed = 0;  // the same of the smoothed rates
    double variance = 0;
    double events = 0;      // that were seen
    double non_events = 0;  // that were seen
    std::size_t without_trials = 0;
};

Sampled sum_up(std::span<const SampledStratum> strata, double population) {
    Sampled sum;
    for (const auto& stratum : strata) {
        if (stratum.trials == 0) {
            sum.without_trials += stratum.population > 0 ? 1 : 0;
            continue;
        }
        const double n = count(stratum.trials);
        const double k = count(stratum.events);
        const double weight = count(stratum.population) / population;
        const double trials = corrected_trials(n, n, count(stratum.population));
        const double smoothed = std::isinf(trials) ? k / n : (k + 0.5) / (n + 1);
        sum.share += weight;
        sum.rate += weight * k / n;
        sum.smoothed += weight * smoothed;
        sum.variance += weight * weight * smoothed * (1 - smoothed) / trials;
        sum.events += k / population;
        sum.non_events += (n - k) / population;
    }
    return sum;
}

}  // namespace

RateEstimate stratified_rate(std::span<const SampledStratum> strata, double confidence) {
    const double z = two_sided(confidence);
    double population = 0;
    for (const auto& stratum : strata) {
        check(stratum);
        population += count(stratum.population);
    }
    RateEstimate estimate;
    const auto sum = population > 0 ? sum_up(strata, population) : Sampled{};
    if (sum.share <= 0) {
        estimate.rate = std::numeric_limits<double>::quiet_NaN();
        estimate.notes.emplace_back("nothing was tried: any rate is possible");
        return estimate;
    }
    estimate.rate = sum.rate / sum.share;
    const double smoothed = sum.smoothed / sum.share;
    estimate.effective = sum.variance > 0
                             ? smoothed * (1 - smoothed) * sum.share * sum.share / sum.variance
                             : infinite;
    auto interval = score_interval(estimate.rate, estimate.effective, z);
    interval.low *= sum.share;
    interval.high = interval.high * sum.share;
    if (sum.without_trials > 0) {
        interval.high += 1 - sum.share;
        estimate.notes.push_back(fmt::format(
            "{} without trials, {:.3g} % of the population, may have any rate: the "
            "interval is that much wider",
            sum.without_trials == 1 ? "1 stratum" : fmt::format("{} strata", sum.without_trials),
            100 * (1 - sum.share)));
    }
    // What was seen is certain; an exact rate must not be moved by rounding.
    estimate.interval = {std::max(interval.low, sum.events),
                         std::min(interval.high, 1 - sum.non_events)};
    if (std::isinf(estimate.effective) && sum.without_trials == 0) {
        estimate.interval = {estimate.rate, estimate.rate};
    }
    return estimate;
}

RateEstimate clustered_rate(std::span<const Cluster> clusters, double confidence,
                            std::optional<std::uint64_t> population) {
    const double z = two_sided(confidence);
    double trials = 0;
    double events = 0;
    double drawn = 0;  // clusters with trials
    for (const auto& cluster : clusters) {
        check({cluster.trials, cluster.trials, cluster.events});
        trials += count(cluster.trials);
        events += count(cluster.events);
        drawn += cluster.trials > 0 ? 1 : 0;
    }
    if (population && drawn > count(*population)) {
        throw Error(Fault::usage,
                    fmt::format("{} clusters of a population of {} cannot be", drawn, *population));
    }
    RateEstimate estimate;
    if (trials <= 0) {
        estimate.rate = std::numeric_limits<double>::quiet_NaN();
        estimate.notes.emplace_back("nothing was tried: any rate is possible");
        return estimate;
    }
    const double rate = events / trials;
    double squares = 0;
    for (const auto& cluster : clusters) {
        const double residual = count(cluster.events) - rate * count(cluster.trials);
        squares += residual * residual;
    }
    estimate.rate = rate;
    double quantile = z;
    if (drawn < 2 || events <= 0 || events >= trials) {
        estimate.effective = drawn;
        estimate.notes.push_back(
            fmt::format("{}: how clusters differ is not known, and each counts as one trial",
                        drawn < 2     ? "one cluster"
                        : events <= 0 ? "no events"
                                      : "nothing but events"));
    } else {
        const double variance = drawn / (drawn - 1) * squares / (trials * trials);
        estimate.effective = std::min(trials, rate * (1 - rate) / variance);
        quantile = student_quantile(0.5 + confidence / 2, drawn - 1);
    }
    if (population) {
        estimate.effective = corrected_trials(estimate.effective, drawn, count(*population));
    }
    estimate.interval = score_interval(rate, estimate.effective, quantile);
    return estimate;
}

WeightedEstimate weighted_rate(std::span<const WeightedTrial> trials, double confidence) {
    const double z = two_sided(confidence);
    double weights = 0;
    double squares = 0;
    double events = 0;
    for (const auto& trial : trials) {
        if (!(trial.weight >= 0 && std::isfinite(trial.weight))) {
            throw Error(Fault::usage, fmt::format("a trial cannot weigh {}", trial.weight));
        }
        weights += trial.weight;
        squares += trial.weight * trial.weight;
        events += trial.event ? trial.weight : 0;
    }
    WeightedEstimate estimate;
    if (weights <= 0) {
        estimate.rate = estimate.horvitz_thompson = std::numeric_limits<double>::quiet_NaN();
        estimate.notes.emplace_back("nothing that weighs was tried: any rate is possible");
        return estimate;
    }
    const double n = static_cast<double>(trials.size());
    estimate.rate = events / weights;
    estimate.horvitz_thompson = events / n;
    estimate.kish = weights * weights / squares;
    double residuals = 0;
    for (const auto& trial : trials) {
        const double residual = trial.weight * ((trial.event ? 1 : 0) - estimate.rate);
        residuals += residual * residual;
    }
    if (residuals <= 0 || trials.size() < 2) {
        estimate.effective = estimate.kish;
        estimate.notes.push_back(
            fmt::format("{}: the interval counts the {:.4g} trials that unequal weights leave",
                        estimate.rate <= 0 ? "no events" : "nothing but events", estimate.kish));
    } else {
        const double variance = n / (n - 1) * residuals / (weights * weights);
        estimate.effective = estimate.rate * (1 - estimate.rate) / variance;
    }
    estimate.interval = score_interval(estimate.rate, estimate.effective, z);
    return estimate;
}

RateEstimate weighted_clustered_rate(std::span<const WeightedCluster> clusters, double confidence) {
    double trials = 0;
    double events = 0;
    double weights = 0;
    double squares = 0;
    double result_squares = 0;
    double drawn = 0;
    for (const auto& [of, w] : clusters) {
        const auto n = static_cast<double>(of.trials);
        trials += w * n;
        events += w * static_cast<double>(of.events);
        weights += n > 0 ? w : 0;
        squares += n > 0 ? w * w : 0;
        result_squares += w * w * n;
        drawn += n > 0 ? 1 : 0;
    }
    RateEstimate estimate;
    if (trials <= 0) {
        estimate.rate = std::numeric_limits<double>::quiet_NaN();
        return estimate;
    }
    estimate.rate = events / trials;
    double residuals = 0;
    for (const auto& [of, w] : clusters) {
        const double residual =
            w * (static_cast<double>(of.events) - estimate.rate * static_cast<double>(of.trials));
        residuals += residual * residual;
    }
    estimate.effective = residuals > 0 && drawn > 1 ? estimate.rate * (1 - estimate.rate) * trials *
                                                          trials / (drawn / (drawn - 1) * residuals)
                                                    : weights * weights / squares;
    estimate.effective = std::min(estimate.effective, trials * trials / result_squares);
    estimate.interval = score_interval(estimate.rate, estimate.effective, two_sided(confidence));
    return estimate;
}

}  // namespace trocar
