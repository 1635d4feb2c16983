#include "trocar/intervals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "trocar/error.h"
#include "util/distributions.h"
#include "util/score_interval.h"

namespace trocar {

namespace {

void check_counts(std::uint64_t events, std::uint64_t trials,
                  std::optional<std::uint64_t> population) {
    if (events > trials) {
        throw Error(Fault::usage, fmt::format("{} events in {} trials cannot be", events, trials));
    }
    if (population && trials > *population) {
        throw Error(Fault::usage,
                    fmt::format("{} trials of a population of {} cannot be", trials, *population));
    }
}

void check_expected(double p) {
    if (!(p > 0 && p < 1)) {
        throw Error(Fault::usage, fmt::format("an expected rate of {} needs no sample", p),
                    "give a rate between 0 and 1; 0.5 is the worst case");
    }
}

// What a sample without replacement leaves possible, whatever the confidence.
Interval within_possible(Interval interval, std::uint64_t events, std::uint64_t trials,
                         std::uint64_t population) {
    const auto all = static_cast<double>(population);
    const double least = static_cast<double>(events) / all;
    const double most = static_cast<double>(population - (trials - events)) / all;
    return {std::clamp(interval.low, least, most), std::clamp(interval.high, least, most)};
}

// The smallest number in [low, high] for which `holds`, given that it holds for all above it and
// for `high`.
std::uint64_t first_that(std::uint64_t low, std::uint64_t high,
                         const std::function<bool(std::uint64_t)>& holds) {
    while (low < high) {
        const auto middle = low + (high - low) / 2;
        if (holds(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return high;
}

// The marked members of the population that make neither tail of the sample too unlikely.
Interval hypergeometric_interval(std::uint64_t events, std::uint64_t trials, double tail,
                                 std::uint64_t population) {
    const auto least = events;
    const auto most = population - (trials - events);
    const auto low = first_that(least, most, [&](std::uint64_t marked) {
        return hypergeometric_at_least(events, {population, marked, trials}) > tail;
    });
    // One below the first that makes so few events too unlikely.
    const auto beyond = first_that(low, most + 1, [&](std::uint64_t marked) {
        return marked > most ||
               hypergeometric_at_most(events, {population, marked, trials}) <= tail;
    });
    const auto all = static_cast<double>(population);
    const auto high = std::max(beyond, low + 1) - 1;
    return {static_cast<double>(low) / all, static_cast<double>(high) / all};
}

}  // namespace

double two_sided(double confidence) {
    if (!(confidence > 0 && confidence < 1)) {
        throw Error(Fault::usage, fmt::format("{} is not a confidence", confidence),
                    "give a share between 0 and 1, such as 0.95");
    }
    return -normal_quantile((1 - confidence) / 2);
}

Interval score_interval(double rate, double trials, double z) {
    if (trials <= 0) {
        return {0, 1};
    }
    if (std::isinf(trials)) {
        return {rate, rate};
    }
    const double z2 = z * z;
    const double centre = (rate * trials + z2 / 2) / (trials + z2);
    const double half =
        z / (trials + z2) * std::sqrt(std::max(0., trials * rate * (1 - rate)) + z2 / 4);
    return {rate <= 0 ? 0 : std::max(0., centre - half),
            rate >= 1 ? 1 : std::min(1., centre + half)};
}

double corrected_trials(double trials, double sampled, double population) {
    if (sampled >= population) {
        return std::numeric_limits<double>::infinity();
    }
    return trials * (population - 1) / (population - sampled);
}

double normal_quantile(double p) {
    if (!(p > 0 && p < 1)) {
        throw Error(Fault::usage, fmt::format("{} is not a probability between 0 and 1", p));
    }
    if (p > 0.5) {
        return -normal_quantile(1 - p);
    }
    // Abramowitz and Stegun 26.2.23 to three digits, Halley's steps for the rest.
    const double t = std::sqrt(-2 * std::log(p));
    double x = (2.515517 + t * (0.802853 + t * 0.010328)) /
                   (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
               t;
    for (int step = 0; step < 3; ++step) {
        const double miss = 0.5 * std::erfc(-x / std::numbers::sqrt2) - p;
        const double u = miss * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
        x -= u / (1 + x * u / 2);
    }
    return x;
}

Interval wilson(std::uint64_t events, std::uint64_t trials, double confidence,
                std::optional<std::uint64_t> population) {
    check_counts(events, trials, population);
    const double z = two_sided(confidence);
    if (trials == 0) {
        return {0, 1};
    }
    const auto count = static_cast<double>(trials);
    const double rate = static_cast<double>(events) / count;
    if (!population) {
        return score_interval(rate, count, z);
    }
    const double corrected = corrected_trials(count, count, static_cast<double>(*population));
    return within_possible(score_interval(rate, corrected, z), events, trials, *population);
}

Interval clopper_pearson(std::uint64_t events, std::uint64_t trials, double confidence,
                         std::optional<std::uint64_t> population) {
    check_counts(events, trials, population);
    two_sided(confidence);  // checks it
    const double tail = (1 - confidence) / 2;
    if (trials == 0) {
        return {0, 1};
    }
    if (population) {
        return hypergeometric_interval(events, trials, tail, *population);
    }
    const auto k = static_cast<double>(events);
    const auto n = static_cast<double>(trials);
    const double low = events == 0 ? 0 : incomplete_beta_inverse(k, n - k + 1, tail);
    if (events == trials) {
        return {low, 1};
    }
    // From the side where the end is small, which keeps more of its digits.
    return {low, 2 * k < n ? incomplete_beta_inverse(k + 1, n - k, 1 - tail)
                           : 1 - incomplete_beta_inverse(n - k, k + 1, tail)};
}

std::uint64_t sample_size(std::optional<std::uint64_t> population, double margin, double confidence,
                          double p) {
    const double t = two_sided(confidence);
    check_expected(p);
    if (!(margin > 0 && margin < 1)) {
        throw Error(Fault::usage, fmt::format("{} is not a margin of error", margin),
                    "give a share between 0 and 1, such as 0.01");
    }
    const double unlimited = t * t * p * (1 - p) / (margin * margin);
    if (!population) {
        return static_cast<std::uint64_t>(std::ceil(std::min(unlimited, 0x1p63)));
    }
    if (*population == 0) {
        return 0;
    }
    const auto all = static_cast<double>(*population);
    const double needed = std::ceil(all / (1 + (all - 1) / unlimited));
    return needed >= all ? *population : static_cast<std::uint64_t>(needed);
}

double margin_of(std::uint64_t trials, std::optional<std::uint64_t> population, double confidence,
                 double p) {
    check_counts(0, trials, population);
    check_expected(p);
    const double t = two_sided(confidence);
    if (trials == 0) {
        return 1;
    }
    auto count = static_cast<double>(trials);
    if (population) {
        count = corrected_trials(count, count, static_cast<double>(*population));
    }
    return t * std::sqrt(p * (1 - p) / count);
}

}  // namespace trocar
