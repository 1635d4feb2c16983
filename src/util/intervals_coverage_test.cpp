// How often the intervals hold the true rate: at least 94 % of the samples for a confidence of
// 95 %, at every rate. Simple samples by enumeration, others by simulation with fixed seeds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "trocar/intervals.h"
#include "util/distributions.h"

namespace trocar {
namespace {

constexpr double least = 0.94;
constexpr std::uint64_t sample_sizes[] = {100, 500, 5000};
constexpr double rates[] = {0.0005, 0.002, 0.01, 0.05, 0.2, 0.5};

using Random = std::mt19937_64;

double unit(Random& random) {
    return static_cast<double>(random() >> 11) * 0x1p-53;
}

// --- Simple samples, exactly
// ----------------------------------------------------------------------

using Method = Interval (*)(std::uint64_t, std::uint64_t, double, std::optional<std::uint64_t>);

double coverage(Method method, std::uint64_t trials, double rate) {
    double held = 0;
    for (std::uint64_t events = 0; events <= trials; ++events) {
        const auto chance = binomial_density(static_cast<double>(events),
                                             static_cast<double>(trials), rate, 1 - rate);
        if (chance > 1e-9) {
            const auto [low, high] = method(events, trials, 0.95, std::nullopt);
            held += low <= rate && rate <= high ? chance : 0;
        }
    }
    return held;
}

TEST(Coverage, OfSimpleSamplesAtEveryRate) {
    for (const auto trials : sample_sizes) {
        double worst = 1;
        for (double rate = 0.0005; rate <= 0.5; rate *= trials > 1000 ? 1.2 : 1.03) {
            worst = std::min(worst, coverage(&clopper_pearson, trials, rate));
        }
        EXPECT_GE(worst, 0.95) << trials;
    }
    // Why Wilson's is not the default.
    EXPECT_LT(coverage(&wilson, 100, 0.0017), 0.85);
}

TEST(Coverage, OfSamplesFromSmallPopulations) {
    for (const std::uint64_t population : {150U, 400U}) {
        for (std::uint64_t marked = 1; marked <= population / 2; marked += 3) {
            double held = 0;
            const Urn urn{population, marked, 100};
            for (std::uint64_t events = 0; events <= std::min<std::uint64_t>(100, marked);
                 ++events) {
                if (events + population < marked + 100) {
                    continue;
                }
                const auto [low, high] = clopper_pearson(events, 100, 0.95, population);
                const auto rate = static_cast<double>(marked) / static_cast<double>(population);
                const auto chance = hypergeometric_at_most(events, urn) -
                                    (events > 0 ? hypergeometric_at_most(events - 1, urn) : 0);
                held += low <= rate && rate <= high ? chance : 0;
            }
            EXPECT_GE(held, 0.95 - 1e-9) << marked << " of " << population;
        }
    }
}

// --- Other designs, by simulation
// -----------------------------------------------------------------

// A way to draw a sample of about `trials` trials: the strata, and the true rate.
struct Sample {
    std::vector<ClusterStratum> strata;
    double truth = 0;
};
using Design = std::function<Sample(Random&, std::uint64_t trials, double rate)>;

void expect_covers(const char* name, const Design& design) {
    for (const auto trials : sample_sizes) {
        const std::uint64_t rounds = trials < 200 ? 2000 : trials < 1000 ? 800 : 200;
        // What a method that holds `least` is below once in 1000 times.
        const double slack = 3.1 * std::sqrt(least * (1 - least) / static_cast<double>(rounds));
        std::string line;
        for (const double rate : rates) {
            std::uint64_t held = 0;
            for (std::uint64_t round = 0; round < rounds; ++round) {
                Random random(round);
                const auto sample = design(random, trials, rate);
                const auto [low, high] = design_rate(sample.strata, 0.95).interval;
                constexpr double rounding = 1e-12;  // what was seen is certain, to the last digit
                held += low <= sample.truth + rounding && sample.truth <= high + rounding ? 1 : 0;
            }
            const auto share = static_cast<double>(held) / static_cast<double>(rounds);
            line += fmt::format(" {:.3f}", share);
            EXPECT_GE(share, least - slack) << name << ", " << trials << " trials, rate " << rate;
        }
        fmt::print("coverage: {:40} {:5}{}\n", name, trials, line);
    }
}

// Events of `inputs` inputs that fail with `rate` each.
class Inputs {
public:
    Inputs(std::uint64_t inputs, double rate) {
        double sum = 0;
        for (std::uint64_t k = 0; k <= inputs; ++k) {
            sum += rate <= 0   ? (k == 0 ? 1 : 0)
                   : rate >= 1 ? (k == inputs ? 1 : 0)
                               : binomial_density(static_cast<double>(k),
                                                  static_cast<double>(inputs), rate, 1 - rate);
            upto_.push_back(sum);
        }
    }
    std::uint64_t draw(Random& random) const {
        const auto at = std::upper_bound(upto_.begin(), upto_.end() - 1, unit(random));
        return static_cast<std::uint64_t>(at - upto_.begin());
    }

private:
    std::vector<double> upto_;
};

// Faults of two kinds, with `inputs` inputs each: a share of them harms `harm` of the inputs, the
// others so few that the rate comes out.
Design clusters(std::uint64_t inputs, double harm,
                const std::function<double(std::uint64_t, double)>& share) {
    return [=](Random& random, std::uint64_t trials, double rate) {
        const double bad = std::min(share(trials, rate), rate / harm);
        const double rest = bad < 1 ? std::max(0., (rate - bad * harm) / (1 - bad)) : 0;
        const Inputs harmful(inputs, harm);
        const Inputs others(inputs, rest);
        Sample sample{{{}}, rate};
        for (std::uint64_t i = 0; i < trials; ++i) {
            const auto& kind = unit(random) < bad ? harmful : others;
            sample.strata[0].clusters.push_back({{inputs, kind.draw(random)}, 1});
        }
        return sample;
    };
}

TEST(Coverage, OfFaultsWithSeveralInputs) {
    const auto all = [](std::uint64_t, double rate) { return rate; };
    const auto half = [](std::uint64_t, double rate) { return rate / 2; };
    expect_covers("faults that harm all inputs", clusters(10, 1, all));
    expect_covers("faults that harm 80 %",
                  clusters(10, 0.8, [](std::uint64_t, double rate) { return rate / 0.8; }));
    expect_covers("all faults alike", clusters(10, 1, [](std::uint64_t, double) { return 0.; }));
    expect_covers("half of it all inputs", clusters(10, 1, half));
    expect_covers("half of it all of 100 inputs", clusters(100, 1, half));
    // Most samples have none of the faults that harm all, or a few.
    for (const double expected : {1, 2, 3}) {
        expect_covers(fmt::format("{} of the faults harm all", expected).c_str(),
                      clusters(100, 1, [expected](std::uint64_t trials, double) {
                          return expected / static_cast<double>(trials);
                      }));
    }
}

// Strata with their shares of the population, of the trials, and relative rates.
struct Layout {
    std::vector<double> sizes;
    std::vector<double> trials;
    std::vector<double> rates;
};

// Without replacement from populations that are `times` the trials, or more.
Design strata(const Layout& layout, double times) {
    return [=](Random& random, std::uint64_t trials, double rate) {
        double sizes = 0;
        double draws = 0;
        double mean = 0;
        for (std::size_t h = 0; h < layout.sizes.size(); ++h) {
            sizes += layout.sizes[h];
            draws += layout.trials[h];
            mean += layout.sizes[h] * layout.rates[h];
        }
        std::vector<std::uint64_t> drawn;
        double scale = 0;
        for (std::size_t h = 0; h < layout.sizes.size(); ++h) {
            drawn.push_back(static_cast<std::uint64_t>(
                std::max(1., std::round(static_cast<double>(trials) * layout.trials[h] / draws))));
            scale = std::max(scale, times * static_cast<double>(drawn[h]) / layout.sizes[h]);
        }
        Sample sample;
        double marks = 0;
        double all = 0;
        for (std::size_t h = 0; h < layout.sizes.size(); ++h) {
            const auto population = static_cast<std::uint64_t>(std::ceil(scale * layout.sizes[h]));
            const auto own = std::min(1., rate * layout.rates[h] * sizes / mean);
            const auto marked =
                static_cast<std::uint64_t>(std::floor(own * static_cast<double>(population) + 0.5));
            auto& stratum = sample.strata.emplace_back();
            stratum.population = population;
            const double weight = static_cast<double>(population) / static_cast<double>(drawn[h]);
            std::uint64_t seen = 0;
            for (std::uint64_t i = 0; i < drawn[h]; ++i) {
                const bool event = unit(random) * static_cast<double>(population - i) <
                                   static_cast<double>(marked - seen);
                seen += event ? 1 : 0;
                stratum.clusters.push_back({{1, event ? 1U : 0U}, weight});
            }
            marks += static_cast<double>(marked);
            all += static_cast<double>(population);
        }
        sample.truth = marks / all;
        return sample;
    };
}

Layout many_strata(std::size_t count, bool proportional, bool one) {
    Layout layout;
    for (std::size_t h = 0; h < count; ++h) {
        layout.sizes.push_back(1 + static_cast<double>(h * h % 7));
        layout.trials.push_back(proportional ? layout.sizes.back() : 1);
        layout.rates.push_back(one ? (h == 3 ? 1 : 0) : std::pow(3, static_cast<double>(h % 4)));
    }
    return layout;
}

TEST(Coverage, OfStrata) {
    expect_covers("2 strata", strata({{9, 1}, {9, 1}, {1, 5}}, 1000));
    expect_covers("2 strata, evenly", strata({{9, 1}, {1, 1}, {1, 5}}, 1000));
    expect_covers("20 strata", strata(many_strata(20, true, false), 1000));
    expect_covers("20 strata, evenly", strata(many_strata(20, false, false), 1000));
    expect_covers("50 strata", strata(many_strata(50, true, false), 1000));
    expect_covers("50 strata, events in one", strata(many_strata(50, true, true), 1000));
    expect_covers("20 strata, half of all tried", strata(many_strata(20, true, false), 2));
    expect_covers("20 strata, evenly, some exhausted", strata(many_strata(20, false, false), 1));
}

// A kind of faults that is drawn more often than it is in the population, by a factor.
Design importance(double share, double factor, double weak, double others) {
    return [=](Random& random, std::uint64_t trials, double rate) {
        const double drawn = share * factor / (share * factor + 1 - share);
        const double mean = share * weak + (1 - share) * others;
        const double own = std::min(1., rate * weak / mean);
        const double rest = std::min(1., rate * others / mean);
        Sample sample{{{}}, share * own + (1 - share) * rest};
        for (std::uint64_t i = 0; i < trials; ++i) {
            const bool is_weak = unit(random) < drawn;
            const double weight = is_weak ? share / drawn : (1 - share) / (1 - drawn);
            const bool event = unit(random) < (is_weak ? own : rest);
            sample.strata[0].clusters.push_back({{1, event ? 1U : 0U}, weight});
        }
        return sample;
    };
}

TEST(Coverage, OfImportanceSampling) {
    expect_covers("drawn 9 times as often, and the only ones", importance(0.1, 9, 1, 0));
    expect_covers("drawn 9 times as often, and no others", importance(0.1, 9, 0, 1));
    expect_covers("drawn 9 times as often, 9 times the rate", importance(0.1, 9, 9, 1));
    expect_covers("drawn 10 times as often, the same rate", importance(0.25, 10, 1, 1));
}

// From no event to one, and on, the ends of the interval move by small steps.
TEST(Coverage, GrowsWithoutSteps) {
    for (const std::uint64_t inputs : {1U, 100U, 1000U}) {
        double before = 0;
        for (std::uint64_t events = 0; events <= 5; ++events) {
            std::vector<Cluster> clusters(10, {inputs, 0});
            clusters[0].events = std::min(events, inputs);
            const auto high = clustered_rate(clusters, 0.95).interval.high;
            EXPECT_GE(high, before - 1e-12) << events << " of 10 faults × " << inputs;
            if (events > 0 && inputs == 1000) {
                EXPECT_LT(high, before * 1.05) << events;
            }
            before = high;
        }
        EXPECT_GT(before, 0.25);
        std::vector<ClusterStratum> two(2);
        for (auto& stratum : two) {
            stratum.population = 10000;
            stratum.clusters.assign(10, {{inputs, 0}, 1000});
        }
        const auto none = design_rate(two, 0.95).interval.high;
        two[0].clusters[0].of.events = 1;
        EXPECT_GE(design_rate(two, 0.95).interval.high, none - 1e-12);
    }
}

}  // namespace
}  // namespace trocar
