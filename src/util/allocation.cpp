#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trocar/error.h"
#include "trocar/intervals.h"

namespace trocar {

namespace {

using Counts = std::vector<std::uint64_t>;

// The bounds of each stratum, what it asks for relative to the others, and what it gets.
struct Share {
    std::uint64_t least = 0;
    std::uint64_t most = 0;
    double weight = 0;
    std::uint64_t given = 0;

    double at(double factor) const {
        return std::clamp(factor * weight, static_cast<double>(least), static_cast<double>(most));
    }
};

double total_at(const std::vector<Share>& shares, double factor) {
    return std::accumulate(shares.begin(), shares.end(), 0.,
                           [&](double sum, const Share& share) { return sum + share.at(factor); });
}

// The factor at which what all ask for, kept within their bounds, is the budget; the largest that
// makes a difference when it never is.
double fitting_factor(const std::vector<Share>& shares, double budget) {
    double low = 0;
    double high = 0;
    for (const auto& share : shares) {
        if (share.weight > 0) {
            high = std::max(high, static_cast<double>(share.most) / share.weight);
        }
    }
    for (int i = 0; i < 200 && low < high; ++i) {
        const double middle = low + (high - low) / 2;
        (total_at(shares, middle) < budget ? low : high) = middle;
    }
    return high;
}

// Gives whole numbers near what was asked for: rounded down, the rest to the largest remainders,
// as long as there is room.
void round_to(std::vector<Share>& shares, std::uint64_t budget, double factor) {
    std::vector<std::size_t> order(shares.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::uint64_t left = budget;
    for (const auto& share : shares) {
        left -= share.least;
    }
    for (auto& share : shares) {
        const auto floor =
            static_cast<std::uint64_t>(std::floor(std::min(share.at(factor), 0x1p63)));
        const auto more = std::clamp(floor, share.least, share.most) - share.least;
        const auto taken = std::min(more, left);
        share.given = share.least + taken;
        left -= taken;
    }
    const auto remainder = [&](std::size_t i) {
        return shares[i].at(factor) - static_cast<double>(shares[i].given);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return remainder(a) > remainder(b); });
    for (const auto i : order) {
        if (left > 0 && shares[i].weight > 0 && shares[i].given < shares[i].most) {
            ++shares[i].given;
            --left;
        }
    }
    // What rounding of huge numbers leaves.
    for (const auto i : order) {
        const auto taken = shares[i].weight > 0 ? std::min(left, shares[i].most - shares[i].given)
                                                : std::uint64_t{0};
        shares[i].given += taken;
        left -= taken;
    }
}

std::uint64_t given(const std::vector<Share>& shares) {
    return std::accumulate(shares.begin(), shares.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Share& share) { return sum + share.given; });
}

// Spreads the budget by `weight`; what that leaves over, by population.
Counts allocate(std::span<const StratumPlan> strata, std::uint64_t budget, std::uint64_t at_least,
                double (*weight)(const StratumPlan&)) {
    std::vector<Share> shares;
    std::uint64_t needed = 0;
    std::uint64_t population = 0;
    for (const auto& stratum : strata) {
        if (!(stratum.rate >= 0 && stratum.rate <= 1)) {
            throw Error(Fault::usage, fmt::format("{} is not a rate", stratum.rate),
                        "expected rates lie between 0 and 1");
        }
        if (stratum.population > UINT64_MAX - population) {
            throw Error(Fault::usage, "the strata together have more than 2^64 members");
        }
        population += stratum.population;
        const auto least = std::min(at_least, stratum.population);
        needed += least;
        shares.push_back({least, stratum.population, weight(stratum), 0});
    }
    budget = std::min(budget, population);
    if (needed > budget) {
        throw Error(Fault::usage,
                    fmt::format("{} trials do not reach for {} in each of {} strata", budget,
                                at_least, strata.size()),
                    fmt::format("{} would", needed));
    }
    round_to(shares, budget, fitting_factor(shares, static_cast<double>(budget)));
    if (given(shares) < budget) {
        for (std::size_t i = 0; i < shares.size(); ++i) {
            shares[i].least = shares[i].given;
            shares[i].weight = static_cast<double>(strata[i].population);
        }
        round_to(shares, budget, fitting_factor(shares, static_cast<double>(budget)));
    }
    Counts counts;
    for (const auto& share : shares) {
        counts.push_back(share.given);
    }
    return counts;
}

}  // namespace

Counts neyman_allocation(std::span<const StratumPlan> strata, std::uint64_t budget,
                         std::uint64_t at_least) {
    return allocate(strata, budget, at_least, [](const StratumPlan& stratum) {
        return static_cast<double>(stratum.population) *
               std::sqrt(stratum.rate * (1 - stratum.rate));
    });
}

Counts proportional_allocation(std::span<const StratumPlan> strata, std::uint64_t budget,
                               std::uint64_t at_least) {
    return allocate(strata, budget, at_least, [](const StratumPlan& stratum) {
        return static_cast<double>(stratum.population);
    });
}

}  // namespace trocar
