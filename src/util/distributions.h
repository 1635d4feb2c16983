#pragma once

#include <cstdint>

namespace trocar {

// Probabilities that stay accurate where factorials of a billion are divided by one another.

// P(X = x) of `n` trials with probability `p` each; `q` = 1 - p. Real `x` and `n`, 0 ≤ x ≤ n.
double binomial_density(double x, double n, double p, double q);

// The regularised incomplete beta function I_x(a, b), a and b > 0.
double incomplete_beta(double a, double b, double x);

// The x with I_x(a, b) = p.
double incomplete_beta_inverse(double a, double b, double p);

// The t below which Student's t with `degrees` of freedom lies with probability `p`.
double student_quantile(double p, double degrees);

// Draws without replacement: `draws` of a population of which `marked` have a mark.
struct Urn {
    std::uint64_t population = 0;
    std::uint64_t marked = 0;
    std::uint64_t draws = 0;
};
// P(at least `x` of those drawn are marked), P(at most `x`).
double hypergeometric_at_least(std::uint64_t x, const Urn& urn);
double hypergeometric_at_most(std::uint64_t x, const Urn& urn);

}  // namespace trocar
