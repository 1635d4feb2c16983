#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "campaign/tally.h"
#include "store/test_campaign.h"
#include "trocar/campaign_report.h"
#include "trocar/error.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using namespace testing;
using campaign::Count;
using ::testing::HasSubstr;

const Table& table(const Report& report, const std::string& key) {
    for (const auto& one : report.tables) {
        if (one.key == key) {
            return one;
        }
    }
    throw std::out_of_range(key);
}

// The cell of a column, in the row whose first cell shows `name`.
Cell cell(const Table& table, const std::string& name, const std::string& key) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].key == key) {
            for (const auto& row : table.rows) {
                if (show(row.cells[0], Show::plain) == name) {
                    return row.cells[i];
                }
            }
        }
    }
    throw std::out_of_range(name + " " + key);
}

double number(const Table& table, const std::string& name, const std::string& key) {
    return std::get<double>(cell(table, name, key).value);
}

std::string all_notes(const Report& report) {
    std::string text;
    for (const auto& note : report.notes) {
        text += note + "\n";
    }
    return text;
}

class Reports : public ::testing::Test {
protected:
    CampaignStore store(const std::vector<Stratum>& strata) {
        auto made = CampaignStore::create(folder_ / fmt::format("{}.db", ++count_), small_header());
        made.set_strata(strata);
        return made;
    }
    // `sdc` of `trials` trials of a stratum are SDC; the numbers of trials go on.
    void add(CampaignStore& store, std::uint32_t stratum, std::uint64_t trials, std::uint64_t sdc,
             std::uint64_t inputs = 1, double weight = 1) {
        for (std::uint64_t i = 0; i < trials; ++i, ++next_) {
            FaultRecord fault;
            fault.trial = next_;
            fault.stratum = stratum;
            fault.weight = weight;
            fault.layer = fmt::format("layer{}", stratum);
            fault.target = "weights";
            fault.bit = static_cast<int>(i % 2);
            fault.text = fmt::format("fault {}", next_);
            store.add_faults({&fault, 1});
            for (std::uint64_t input = 0; input < inputs; ++input) {
                TrialResult result;
                result.trial = next_;
                result.input = input;
                result.outcome = i < sdc ? Outcome::sdc : Outcome::masked;
                store.append({&result, 1});
            }
        }
        store.commit();
    }
    static RateEstimate sdc(const CampaignStore& store, const InjectReportOptions& options = {}) {
        const auto tally = campaign::tally(store);
        return rate(tally, campaign::everything(tally), Count::sdc, Count::results, options);
    }

    TestFolder folder_;
    int count_ = 0;
    std::uint64_t next_ = 0;
};

TEST_F(Reports, SimpleSamplesHaveTheIntervalThatIsAskedFor) {
    auto made = store({{"all", "weights", "", -1, 10000, 100}});
    add(made, 0, 100, 7);
    EXPECT_DOUBLE_EQ(sdc(made).rate, 0.07);
    EXPECT_DOUBLE_EQ(sdc(made).interval.low, clopper_pearson(7, 100, 0.95, 10000).low);
    InjectReportOptions score;
    score.method = InjectReportOptions::Method::wilson;
    score.confidence = 0.99;
    EXPECT_DOUBLE_EQ(sdc(made, score).interval.high, wilson(7, 100, 0.99, 10000).high);
}

TEST_F(Reports, StrataCountByTheirPopulations) {
    auto made = store({{"a", "weights", "layer0", -1, 9000, 50},
                       {"b", "weights", "layer1", -1, 1000, 50},
                       {"c", "weights", "layer2", -1, 0, 0}});
    add(made, 0, 50, 0);
    add(made, 1, 50, 50);
    EXPECT_NEAR(sdc(made).rate, 0.1, 1e-12);
    EXPECT_LT(sdc(made).interval.high, 0.2);
    const auto report = inject_report(made);
    EXPECT_DOUBLE_EQ(number(table(report, "by_layer"), "layer1", "sdc_rate"), 1);
    EXPECT_DOUBLE_EQ(number(table(report, "outcomes"), "SDC-1", "share"), 0.5);
    EXPECT_NEAR(number(table(report, "outcomes"), "SDC-1", "estimated_rate"), 0.1, 1e-12);
    // Half of either stratum: each fault stands for as many as in its stratum.
    EXPECT_NEAR(number(table(report, "by_bit"), "0", "sdc_rate"), 0.1, 1e-12);
}

TEST_F(Reports, MetricsHaveMeansOfAllFaults) {
    auto made =
        store({{"a", "weights", "layer0", -1, 9000, 2}, {"b", "weights", "layer1", -1, 1000, 2}});
    for (std::uint64_t trial = 0; trial < 4; ++trial) {
        FaultRecord fault;
        fault.trial = trial;
        fault.stratum = trial < 2 ? 0 : 1;
        fault.layer = trial < 2 ? "layer0" : "layer1";
        made.add_faults({&fault, 1});
        for (std::uint64_t input = 0; input < 2; ++input) {
            TrialResult result;
            result.trial = trial;
            result.input = input;
            result.metrics = {{"boxes", static_cast<double>(trial)}, {"none", TrialResult::none}};
            made.append({&result, 1});
        }
    }
    made.commit();
    const auto report = inject_report(made);
    EXPECT_DOUBLE_EQ(number(table(report, "metrics"), "boxes", "mean"), 0.9 * 0.5 + 0.1 * 2.5);
    EXPECT_LT(number(table(report, "metrics"), "boxes", "mean_low"), 0.7);
    EXPECT_GT(number(table(report, "metrics"), "boxes", "mean_high"), 0.7);
    EXPECT_DOUBLE_EQ(number(table(report, "metrics_by_layer"), "layer1", "mean"), 2.5);
    EXPECT_EQ(made.results_of(3).at(1).metrics.at(0).second, 3);
}

TEST_F(Reports, StrataThatWereNotTriedMayDoAnything) {
    auto made = store({{"a", "weights", "layer0", -1, 5000, 50},
                       {"b", "weights", "layer1", -1, 5000, 50},
                       {"c", "weights", "layer2", -1, 10000, 0}});
    add(made, 0, 50, 0);
    add(made, 1, 50, 0);
    EXPECT_GT(sdc(made).interval.high, 0.5);
    auto many = store({{"a", "weights", "layer0", -1, 5000, 50},
                       {"b", "weights", "layer1", -1, 5000, 50},
                       {"c", "weights", "layer2", -1, 10000, 0}});
    next_ = 0;
    add(many, 0, 50, 0, 3);
    add(many, 1, 50, 0, 3);
    EXPECT_GT(sdc(many).interval.high, 0.5);
}

TEST_F(Reports, InputsThatShareAFaultAreNotIndependent) {
    auto one = store({{"all", "weights", "", -1, 100000, 100}});
    add(one, 0, 100, 10);
    auto many = store({{"all", "weights", "", -1, 100000, 100}});
    next_ = 0;
    add(many, 0, 100, 10, 20);  // all inputs of a fault agree: 20 say no more than one
    EXPECT_DOUBLE_EQ(sdc(many).rate, 0.1);
    EXPECT_NEAR(sdc(many).interval.low, sdc(one).interval.low, 0.005);
    EXPECT_NEAR(sdc(many).interval.high, sdc(one).interval.high, 0.005);
    auto strata = store({{"a", "weights", "", -1, 50000, 50}, {"b", "weights", "", -1, 50000, 50}});
    next_ = 0;
    add(strata, 0, 50, 5, 20);
    add(strata, 1, 50, 5, 20);
    EXPECT_NEAR(sdc(strata).interval.low, sdc(one).interval.low, 0.01);
    EXPECT_NEAR(sdc(strata).interval.high, sdc(one).interval.high, 0.01);
}

// Campaigns of three strata, sampled as often as one another, whose inputs agree about a fault in
// most cases: the interval of the whole, and of a part that is no stratum, must hold the true rate
// as often as it says.
TEST_F(Reports, IntervalsOfStrataAndClustersCover) {
    constexpr std::array<double, 3> harm{0.02, 0.1, 0.4};  // share of faults that harm
    constexpr double agreement = 0.8;                      // share of inputs that such one harms
    constexpr std::array<std::uint64_t, 3> populations{60'000, 30'000, 10'000};
    const double truth = agreement * (0.6 * harm[0] + 0.3 * harm[1] + 0.1 * harm[2]);
    std::mt19937_64 random(3);
    const auto chance = [&](double p) { return std::bernoulli_distribution(p)(random); };
    int whole = 0;
    int part = 0;
    constexpr int rounds = 400;
    for (int round = 0; round < rounds; ++round) {
        campaign::Tally tally;
        for (std::uint32_t h = 0; h < 3; ++h) {
            tally.strata.push_back({"", "", "", -1, populations[h], 150});
            for (int i = 0; i < 150; ++i) {
                auto& trial = tally.trials.emplace_back();
                trial.stratum = h;
                trial.bit = i % 2;
                const bool harmful = chance(harm[h]);
                trial.counts[static_cast<std::size_t>(Count::results)] = 5;
                for (int input = 0; input < 5; ++input) {
                    trial.counts[static_cast<std::size_t>(Count::sdc)] +=
                        harmful && chance(agreement) ? 1 : 0;
                }
            }
            tally.drawn[h] = 150;
        }
        const auto covers = [&](const campaign::Group& group) {
            const auto [low, high] = rate(tally, group, Count::sdc, Count::results, {}).interval;
            return low <= truth && truth <= high ? 1 : 0;
        };
        whole += covers(campaign::everything(tally));
        part += covers(campaign::by_bit(tally)[0].group);
    }
    EXPECT_GE(whole, rounds * 0.94);
    EXPECT_GE(part, rounds * 0.94);
}

TEST_F(Reports, WeightsOfTheSamplingCount) {
    auto made = store({});
    add(made, 0, 90, 0, 1, 1);
    add(made, 0, 10, 10, 1, 0.1);
    EXPECT_NEAR(sdc(made).rate, 1.0 / 91, 1e-6);
}

TEST_F(Reports, ExhaustiveCampaignsAreExact) {
    auto made = store({{"a", "weights", "layer0", -1, 40, 40}, {"b", "weights", "x", -1, 10, 10}});
    add(made, 0, 40, 4);
    add(made, 1, 10, 1);
    EXPECT_DOUBLE_EQ(sdc(made).interval.low, 0.1);
    EXPECT_DOUBLE_EQ(sdc(made).interval.high, 0.1);
    made.finish();
    const auto report = inject_report(made);
    EXPECT_THAT(all_notes(report), HasSubstr("every fault was tried; the SDC-1 rate is 10 %"));
    EXPECT_TRUE(report.warnings.empty());
}

// Also of parts that are no strata, and where several inputs were run with each fault.
TEST_F(Reports, ExhaustiveCampaignsHaveNoIntervals) {
    for (const std::uint64_t inputs : {1U, 3U}) {
        auto made = store({{"all", "weights", "", -1, 40, 40}});
        next_ = 0;
        add(made, 0, 40, 4, inputs);
        const auto report = inject_report(made);
        for (const auto& [where, name] :
             {std::pair{"outcomes", "SDC-1"}, std::pair{"by_bit", "0"}}) {
            const std::string prefix = where == std::string("outcomes") ? "estimated" : "sdc";
            EXPECT_DOUBLE_EQ(number(table(report, where), name, prefix + "_rate"), 0.1);
            EXPECT_TRUE(cell(table(report, where), name, prefix + "_low").missing());
            EXPECT_TRUE(cell(table(report, where), name, prefix + "_high").missing());
        }
        EXPECT_THAT(std::get<std::string>(report.sections.at(0).scalars.back().value.value),
                    HasSubstr("every fault was tried"));
    }
}

// Several faults in a trial are not exhausted by as many trials as there are faults, nor are inputs
// that were drawn.
TEST_F(Reports, SamplesAreNotTakenForExhaustive) {
    for (const char* more : {"faults_per_trial: 2\n", "inputs_per_fault: 2\n"}) {
        auto header = small_header();
        header.campaign += more;
        header.context.push_back({"inputs", "9"});
        auto made = CampaignStore::create(folder_ / fmt::format("{}.db", ++count_), header);
        made.set_strata(std::vector<Stratum>{{"all", "weights", "", -1, 40, 40}});
        next_ = 0;
        add(made, 0, 40, 4, *more == 'i' ? 2 : 9);
        const auto [low, high] = sdc(made).interval;
        EXPECT_LT(low, 0.09) << more;
        EXPECT_GT(high, 0.11) << more;
    }
}

TEST_F(Reports, SayWhatMayBeClaimed) {
    auto made = store(
        {{"a", "weights", "layer0", -1, 90000, 400}, {"b", "weights", "layer1", -1, 10000, 30}});
    add(made, 0, 400, 20);
    add(made, 1, 30, 1);
    const auto report = inject_report(made);
    EXPECT_THAT(all_notes(report), HasSubstr("1 of 2 have them ('layer1' has 30)"));
    EXPECT_THAT(all_notes(report), HasSubstr("needs up to 383 faults in each layer"));
    EXPECT_EQ(report.sections.at(0).scalars.at(5).key, "seed");
}

TEST_F(Reports, KnowAccuracyDetectionAndTheWorst) {
    auto made = CampaignStore::create(folder_ / "x.db", small_header());
    work(made, 0, 200, 8);
    const auto report = inject_report(made, {.worst = 3});
    const auto& worst = table(report, "worst");
    ASSERT_EQ(worst.rows.size(), 3u);
    EXPECT_THAT(std::get<std::string>(worst.rows[0].cells[1].value), HasSubstr("flip"));
    for (const auto& section : report.sections) {
        if (section.key == "accuracy") {
            EXPECT_NEAR(std::get<double>(section.scalars[0].value.value), 0.875, 1e-9);
            EXPECT_LT(std::get<double>(section.scalars[1].value.value), 0.875);
            EXPECT_NEAR(std::get<double>(section.scalars[3].value.value), 0.5, 0.1);
        }
        if (section.key == "definitions") {
            EXPECT_EQ(section.scalars.size(), 10u);
        }
    }
}

TEST_F(Reports, AnAuditThatDiffersIsANo) {
    auto made = store({});
    add(made, 0, 3, 1);
    EXPECT_TRUE(inject_report(made).verdict);
    const AuditRecord audit{1, 2, 0, false, "max_abs 1 and 2"};
    made.add_audits({&audit, 1});
    made.commit();
    EXPECT_FALSE(inject_report(made).verdict);
}

TEST_F(Reports, NothingIsSaidOfNothing) {
    auto made = store({});
    const auto report = inject_report(made);
    EXPECT_THAT(all_notes(report), HasSubstr("nothing yet"));
    EXPECT_TRUE(cell(table(report, "outcomes"), "SDC-1", "estimated_rate").missing());
    EXPECT_TRUE(inject_plots(made).empty());
    EXPECT_THROW(inject_report(made, {.by = {"lyer"}}), Error);
    EXPECT_THROW(inject_report(made, {.confidence = 1}), Error);
}

TEST_F(Reports, PlotsAreWholeAndStandAlone) {
    auto made = CampaignStore::create(folder_ / "x.db", small_header());
    work(made, 0, 180);
    FaultRecord fault;
    fault.trial = 1000;
    fault.layer = "<a & b>\x01\xff";
    fault.rate = 1e-5;
    made.add_faults({&fault, 1});
    auto result = result_of_trial(1000, 0);
    made.append({&result, 1});
    made.commit();
    const auto plots = inject_plots(made);
    ASSERT_EQ(plots.size(), 3u);
    EXPECT_EQ(plots[0].name, "layers_and_bits");
    EXPECT_EQ(plots[2].name, "accuracy");
    for (const auto& plot : plots) {
        EXPECT_TRUE(plot.svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width="));
        EXPECT_TRUE(plot.svg.ends_with("</svg>\n"));
        EXPECT_EQ(plot.svg.find("nan"), std::string::npos) << plot.name;
        EXPECT_EQ(plot.svg.find("href"), std::string::npos);
        EXPECT_EQ(plot.svg.find('\x01'), std::string::npos);
    }
    EXPECT_THAT(plots[1].svg, HasSubstr("&lt;a &amp; b&gt;"));
}

}  // namespace
}  // namespace trocar
