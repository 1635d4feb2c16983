#include "util/distributions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace trocar {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

// log(n!) less Stirling's formula for it. C. Loader, "Fast and accurate computation of binomial
// probabilities", 2000.
double stirling_error(double n) {
    if (n <= 15) {
        return std::log(std::tgamma(n + 1)) - (n + 0.5) * std::log(n) + n -
               0.5 * std::log(2 * std::numbers::pi);
    }
    const double s = 1 / (n * n);
    return (1. / 12 - (1. / 360 - (1. / 1260 - (1. / 1680 - s / 1188) * s) * s) * s) / n;
}

// x log(x / m) + m - x without cancellation where x is near m.
double deviance(double x, double m) {
    const double d = x - m;
    if (std::abs(d) >= 0.1 * (x + m)) {
        return x * std::log(x / m) + m - x;
    }
    const double v = d / (x + m);
    double sum = d * v;
    double term = 2 * x * v;
    for (int j = 1; j < 1000; ++j) {
        term *= v * v;
        const double next = sum + term / (2 * j + 1);
        if (next == sum) {
            break;
        }
        sum = next;
    }
    return sum;
}

// The continued fraction of I_x(a, b) by DiDonato and Morris (TOMS 708), for x below the mean
// a / (a + b). `y` is 1 - x: where x is near 1, all that counts is in `y`.
double beta_fraction(double a, double b, double x, double y) {
    const double lambda = a > b ? (a + b) * y - b : a - (a + b) * x;
    const double c = 1 + lambda;
    const double c0 = b / a;
    const double c1 = 1 + 1 / a;
    double p = 1;
    double s = a + 1;
    double numerator = 1;
    double denominator = c / c1;
    double last_numerator = 0;
    double last_denominator = 1;
    double result = c1 / c;
    // Some square root of a and b steps are needed; the limit is for a and b of 1e12.
    for (double n = 1; n < 1e7; ++n) {
        const double t = n / a;
        const double w = n * (b - n) * x;
        const double alpha = p * (p + c0) * (a / s) * (a / s) * (w * x);
        const double beta = n + w / s + (1 + t) / (c1 + 2 * t) * (c + n * (1 + y));
        p = 1 + t;
        s += 2;
        const double next_numerator = alpha * last_numerator + beta * numerator;
        const double next_denominator = alpha * last_denominator + beta * denominator;
        const double before = result;
        result = next_numerator / next_denominator;
        // Scaled, so that nothing runs over.
        last_numerator = numerator / next_denominator;
        last_denominator = denominator / next_denominator;
        numerator = result;
        denominator = 1;
        if (std::abs(result - before) <= epsilon * result) {
            break;
        }
    }
    return result;
}

// I_x(a, b) below the mean. The factor before the fraction is a binomial density.
double beta_below(double a, double b, double x, double y) {
    return binomial_density(a, a + b, x, y) * a * b / (a + b) * beta_fraction(a, b, x, y);
}

// The derivative of I_x(a, b).
double beta_density(double a, double b, double x) {
    return binomial_density(a, a + b, x, 1 - x) * a * b / ((a + b) * x * (1 - x));
}

double hypergeometric_density(double x, double population, double marked, double draws) {
    const double p = draws / population;
    const double q = (population - draws) / population;
    return binomial_density(x, marked, p, q) *
           binomial_density(draws - x, population - marked, p, q) /
           binomial_density(draws, population, p, q);
}

struct Support {
    double low;
    double high;
};
Support support(const Urn& urn) {
    const auto unmarked = urn.population - urn.marked;
    return {urn.draws > unmarked ? static_cast<double>(urn.draws - unmarked) : 0,
            static_cast<double>(std::min(urn.draws, urn.marked))};
}

// The sum of the densities from `x` upwards; each is made from the one before. For x above the
// mean, where they fall.
double sum_upwards(double x, const Urn& urn) {
    const auto n = static_cast<double>(urn.draws);
    const auto marked = static_cast<double>(urn.marked);
    const auto unmarked = static_cast<double>(urn.population - urn.marked);
    const double high = support(urn).high;
    double term = hypergeometric_density(x, marked + unmarked, marked, n);
    double sum = 0;
    for (; x <= high && term > sum * epsilon / 16; ++x) {
        sum += term;
        term *= (marked - x) * (n - x) / ((x + 1) * (unmarked - n + x + 1));
    }
    return sum;
}

double sum_downwards(double x, const Urn& urn) {
    // Marked and unmarked change places.
    const Urn other{urn.population, urn.population - urn.marked, urn.draws};
    return sum_upwards(static_cast<double>(urn.draws) - x, other);
}

double mean(const Urn& urn) {
    return static_cast<double>(urn.draws) * static_cast<double>(urn.marked) /
           static_cast<double>(urn.population);
}

}  // namespace

double binomial_density(double x, double n, double p, double q) {
    if (p <= 0) {
        return x == 0 ? 1 : 0;
    }
    if (q <= 0) {
        return x == n ? 1 : 0;
    }
    if (x == 0) {
        return p < 0.1 ? std::exp(n * std::log1p(-p)) : std::pow(q, n);
    }
    if (x == n) {
        return q < 0.1 ? std::exp(n * std::log1p(-q)) : std::pow(p, n);
    }
    const double exponent = stirling_error(n) - stirling_error(x) - stirling_error(n - x) -
                            deviance(x, n * p) - deviance(n - x, n * q);
    return std::exp(exponent) * std::sqrt(n / (2 * std::numbers::pi * x * (n - x)));
}

double incomplete_beta(double a, double b, double x) {
    if (x <= 0 || x >= 1) {
        return x <= 0 ? 0 : 1;
    }
    return x < a / (a + b) ? beta_below(a, b, x, 1 - x) : 1 - beta_below(b, a, 1 - x, x);
}

double incomplete_beta_inverse(double a, double b, double p) {
    if (p <= 0 || p >= 1) {
        return p <= 0 ? 0 : 1;
    }
    // Newton's steps, halving what is left where one would leave it.
    double low = 0;
    double high = 1;
    double x = a / (a + b);
    for (int i = 0; i < 400; ++i) {
        const double miss = incomplete_beta(a, b, x) - p;
        const double step = miss / beta_density(a, b, x);
        if (std::abs(step) <= epsilon / 2 * x) {
            return x;
        }
        (miss > 0 ? high : low) = x;
        double next = x - step;
        if (!(next > low && next < high)) {
            // Where the root may be tiny, halving must not take a step per power of two.
            next = low == 0 && high < 1e-3 ? high / 16 : low + (high - low) / 2;
        }
        if (next <= low || next >= high) {
            return x;
        }
        x = next;
    }
    return x;
}

double student_quantile(double p, double degrees) {
    if (p == 0.5) {
        return 0;
    }
    const double tail = 2 * std::min(p, 1 - p);
    // y = t² / (degrees + t²) has a beta distribution.
    const double y = incomplete_beta_inverse(0.5, degrees / 2, 1 - tail);
    const double t = std::sqrt(degrees * y / (1 - y));
    return p < 0.5 ? -t : t;
}

double hypergeometric_at_least(std::uint64_t x, const Urn& urn) {
    const auto wanted = static_cast<double>(x);
    const auto [low, high] = support(urn);
    if (wanted <= low || wanted > high) {
        return wanted <= low ? 1 : 0;
    }
    return wanted > mean(urn) ? sum_upwards(wanted, urn) : 1 - sum_downwards(wanted - 1, urn);
}

double hypergeometric_at_most(std::uint64_t x, const Urn& urn) {
    const auto wanted = static_cast<double>(x);
    const auto [low, high] = support(urn);
    if (wanted < low || wanted >= high) {
        return wanted < low ? 0 : 1;
    }
    return wanted < mean(urn) ? sum_downwards(wanted, urn) : 1 - sum_upwards(wanted + 1, urn);
}

}  // namespace trocar
