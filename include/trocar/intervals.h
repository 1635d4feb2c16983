#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace trocar {

// What the events seen in a sample say of the rate in the population it was drawn from. A
// confidence is a share: 0.95. Everything here throws Error(usage) on numbers that cannot be: more
// events than trials, more trials than the population has, a confidence outside (0, 1)…

struct Interval {
    double low = 0;
    double high = 0;
};

// The x below which a standard normal number lies with probability `p`, 0 < p < 1.
double normal_quantile(double p);

// --- `events` of `trials`, drawn at random
// --------------------------------------------------------
//
// With a population they were drawn from it without replacement: the interval narrows as the sample
// exhausts it, and ends at the exact rate. Without trials the interval is [0, 1].

// Wilson's score interval: covers with the confidence on average over rates.
Interval wilson(std::uint64_t events, std::uint64_t trials, double confidence,
                std::optional<std::uint64_t> population = {});

// Clopper and Pearson's interval: covers with at least the confidence at every rate. With a
// population it inverts the hypergeometric distribution in place of the binomial one.
Interval clopper_pearson(std::uint64_t events, std::uint64_t trials, double confidence,
                         std::optional<std::uint64_t> population = {});

// --- How many trials
// ------------------------------------------------------------------------------

// Trials after which a rate near `p` is known to ± `margin` (Leveugle and others, DATE 2009):
// N / (1 + e² (N - 1) / (t² p (1 - p))), rounded up. Without a population: its limit.
std::uint64_t sample_size(std::optional<std::uint64_t> population, double margin, double confidence,
                          double p = 0.5);

// The other way: the ± that `trials` give. 0 when they are the whole population.
double margin_of(std::uint64_t trials, std::optional<std::uint64_t> population, double confidence,
                 double p = 0.5);

// --- Samples that are not simple
// ------------------------------------------------------------------

struct RateEstimate {
    double rate = 0;
    Interval interval{0, 1};
    double effective = 0;            // trials of a simple random sample that would say as much
    std::vector<std::string> notes;  // what the reader must know to trust the interval
};

// A part of the population that was sampled by itself.
struct SampledStratum {
    std::uint64_t population = 0;
    std::uint64_t trials = 0;
    std::uint64_t events = 0;
};

// Trials that belong together: the inputs that were run with one fault.
struct Cluster {
    std::uint64_t trials = 0;
    std::uint64_t events = 0;
};

// A cluster that stands for others.
struct WeightedCluster {
    Cluster of;
    double weight = 1;  // how many clusters of the population, or any multiple of that; ≥ 0
};

// A part of the population that was sampled by itself.
struct ClusterStratum {
    std::vector<WeightedCluster> clusters;
    std::optional<std::uint64_t> population =
        {};                 // clusters there are to draw from; none: no limit
    bool replaced = false;  // they were drawn with replacement
};

// The rate of the whole population: weighted events by weighted trials. The variance is that
// between the clusters of each stratum, with its finite population. The interval is Clopper and
// Pearson's with as many trials as give that variance (Korn and Graubard), where clusters of a kind
// that was not drawn count as possible: with n equal clusters it is never narrower on that side
// than what n trials without such an event leave. It covers with about the confidence or more at
// every rate; intervals_coverage_test.cpp has the designs. A stratum that was tried as a whole adds
// no uncertainty; where all were, the interval is the rate, and `effective` infinite. A stratum
// without clusters may have any rate: it does not count for `rate`, and widens the interval by all
// of its share.
RateEstimate design_rate(std::span<const ClusterStratum> strata, double confidence);

// The same of strata of single trials.
RateEstimate stratified_rate(std::span<const SampledStratum> strata, double confidence);

// The same of one stratum.
RateEstimate clustered_rate(std::span<const Cluster> clusters, double confidence,
                            std::optional<std::uint64_t> population = {});

// A trial that was drawn with another probability than it has in the population.
struct WeightedTrial {
    double weight = 1;  // its probability in the population by that with which it was drawn; ≥ 0
    bool event = false;
};

struct WeightedEstimate : RateEstimate {  // `rate` is Hájek's: weights of events by all weights
    double horvitz_thompson = 0;  // weights of events by trials: unbiased; may lie outside [0, 1]
    double kish = 0;  // (Σ w)² / Σ w²: trials left by unequal weights, whatever is asked
};

// The rate in the population from trials with likelihood weights (importance sampling).
WeightedEstimate weighted_rate(std::span<const WeightedTrial> trials, double confidence);

// --- Which trials
// ---------------------------------------------------------------------------------

// A stratum before it is sampled.
struct StratumPlan {
    std::uint64_t population = 0;
    double rate = 0.5;  // what is expected; 0.5 when nothing is known. Not used proportionally
};

// Trials per stratum, which add up to `budget`, or to the population where the budget is larger.
// Each stratum has at least `at_least` and at most its population. Neyman's allocation makes the
// variance of `stratified_rate` least: by N_h sqrt(p_h (1 - p_h)). Where the rates expected leave
// some of the budget over (rates of 0 or 1 ask for nothing), it is spread in proportion. Throws
// Error(usage) when the budget does not reach for `at_least` everywhere.
std::vector<std::uint64_t> neyman_allocation(std::span<const StratumPlan> strata,
                                             std::uint64_t budget, std::uint64_t at_least = 1);
std::vector<std::uint64_t> proportional_allocation(std::span<const StratumPlan> strata,
                                                   std::uint64_t budget,
                                                   std::uint64_t at_least = 0);

}  // namespace trocar
#pragma GCC visibility pop
