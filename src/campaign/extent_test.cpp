// Which trials of an unfinished campaign count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "campaign/tally.h"
#include "campaign/trial_blocks.h"
#include "store/test_campaign.h"
#include "trocar/campaign_report.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using namespace testing;
using campaign::TrialBlocks;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Stratum> strata_of(const std::vector<std::uint64_t>& planned) {
    std::vector<Stratum> strata;
    for (const auto trials : planned) {
        strata.push_back({fmt::format("layer{}", strata.size()), "weights",
                          fmt::format("layer{}", strata.size()), -1, 100 * trials + 100, trials});
    }
    return strata;
}

TEST(TrialBlocks, HaveEveryTrialOnceAndEveryStratumInProportion) {
    for (const auto& planned :
         std::vector<std::vector<std::uint64_t>>{{3000},
                                                 {1, 1, 1},
                                                 {0, 5, 0, 2000, 17},
                                                 {136, 137, 136, 1000, 2, 900, 1},
                                                 std::vector<std::uint64_t>(704, 4),
                                                 {256}}) {
        const TrialBlocks blocks(strata_of(planned));
        std::vector<std::uint64_t> ends;
        std::uint64_t all = 0;
        for (const auto trials : planned) {
            all += trials;
            ends.push_back(all);
        }
        EXPECT_EQ(blocks.trials(), all);
        std::set<std::uint64_t> seen;
        std::map<std::size_t, std::uint64_t> drawn;
        for (std::uint64_t block = 0; block < blocks.count(); ++block) {
            for (const auto number : blocks.numbers(block)) {
                EXPECT_TRUE(seen.insert(number).second);
                ++drawn[static_cast<std::size_t>(
                    std::upper_bound(ends.begin(), ends.end(), number) - ends.begin())];
            }
            const auto share = static_cast<double>(block + 1) / static_cast<double>(blocks.count());
            for (std::size_t h = 0; h < planned.size(); ++h) {
                const auto wanted = share * static_cast<double>(planned[h]);
                EXPECT_GE(static_cast<double>(drawn[h]), wanted - 1e-9);
                EXPECT_LT(static_cast<double>(drawn[h]), wanted + 1);
            }
        }
        EXPECT_EQ(seen.size(), all);
        EXPECT_EQ(*seen.rbegin(), all - 1);
    }
    EXPECT_EQ(TrialBlocks(std::vector<Stratum>{}).count(), 0u);
}

TEST(TrialBlocks, OfListedFaultsAreDrawnFromAllOfThem) {
    const TrialBlocks blocks(std::vector<Stratum>{{"listed", "listed", "", -1, 10000, 10000}});
    const auto first = blocks.numbers(0);
    EXPECT_NEAR(static_cast<double>(first.size()), 256, 10);
    EXPECT_LT(first.front(), 500u);
    EXPECT_GT(first.back(), 9500u);
}

class Extents : public ::testing::Test {
protected:
    CampaignStore store(const std::string& more = {}, const char* inputs = "2") {
        auto header = small_header();
        header.campaign += more;
        header.context.push_back({"inputs", inputs});
        auto made = CampaignStore::create(folder_ / fmt::format("{}.db", ++count_), header);
        made.set_strata(strata_);
        return made;
    }
    // All inputs of the trials of a block; what the last trials of the last stratum do is SDC.
    void run(CampaignStore& store, std::uint64_t block, std::uint64_t inputs = 2,
             std::uint64_t shard = 0, std::uint64_t shards = 1) {
        for (const auto number : TrialBlocks(strata_).numbers(block)) {
            if (number % shards == shard) {
                add(store, number, inputs);
            }
        }
        store.commit();
    }
    void add(CampaignStore& store, std::uint64_t number, std::uint64_t inputs) {
        FaultRecord fault;
        fault.trial = number;
        fault.stratum = number < 500 ? 0 : number < 900 ? 1 : 2;
        fault.layer = strata_[fault.stratum].layer;
        store.add_faults({&fault, 1});
        for (std::uint64_t input = 0; input < inputs; ++input) {
            TrialResult result;
            result.trial = number;
            result.input = input;
            result.outcome = fault.stratum == 2 ? Outcome::sdc : Outcome::masked;
            store.append({&result, 1});
        }
    }

    TestFolder folder_;
    int count_ = 0;
    std::vector<Stratum> strata_ = strata_of({500, 400, 124});  // 4 blocks
};

TEST_F(Extents, OfUnfinishedCampaignsAreWholeBlocks) {
    auto made = store();
    made.begin_run();
    run(made, 0);
    for (const auto number : TrialBlocks(strata_).numbers(1)) {
        if (number < 500) {
            add(made, number, 2);  // one stratum, as they came
        }
    }
    add(made, 1000, 1);  // not with all inputs
    made.commit();
    const auto tally = campaign::tally(made);
    EXPECT_EQ(tally.trials.size(), 256u);
    EXPECT_EQ(tally.extent.left_out, 126u);
    EXPECT_FALSE(tally.extent.complete);
    EXPECT_FALSE(tally.extent.reached);
    EXPECT_EQ(tally.drawn.size(), 3u);
    const auto report = inject_report(made);
    EXPECT_TRUE(report.unfinished);
    EXPECT_FALSE(report.partial);
    EXPECT_THAT(report.warnings,
                ElementsAre(HasSubstr("not finished: rates are those of 256 of 1024 trials"),
                            HasSubstr("126 trials are left out of all rates")));
    EXPECT_NEAR(sdc_rate(made, 0.95).rate, 12500. / 102700, 1e-3);
}

TEST_F(Extents, WithoutAWholeBlockThereAreNoRates) {
    auto made = store();
    made.begin_run();
    for (std::uint64_t number = 0; number < 416; ++number) {
        add(made, number, 2);
    }
    made.commit();
    const auto report = inject_report(made);
    EXPECT_TRUE(report.unfinished);
    EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("no block of its 1024 trials is complete"),
                                             HasSubstr("416 trials are left out")));
    EXPECT_THAT(report.notes.at(0), HasSubstr("nothing yet"));
    EXPECT_TRUE(std::isnan(sdc_rate(made, 0.95).rate));
}

TEST_F(Extents, OfFinishedCampaignsAreAllTrials) {
    auto made = store();
    made.begin_run();
    for (std::uint64_t block = 0; block < 4; ++block) {
        run(made, block);
    }
    const auto report = inject_report(made);
    EXPECT_FALSE(report.unfinished);
    EXPECT_THAT(report.warnings, IsEmpty());
    EXPECT_EQ(campaign::tally(made).trials.size(), 1024u);
    EXPECT_EQ(campaign::tally(made, 2).trials.size(), 512u);  // what is asked when it may stop
}

TEST_F(Extents, OfShardsAreTheirOwnTrials) {
    std::vector<std::filesystem::path> files;
    for (std::uint64_t shard = 0; shard < 3; ++shard) {
        auto made = store();
        made.begin_run(shard, 3);
        for (std::uint64_t block = 0; block < 4; ++block) {
            run(made, block, 2, shard, 3);
        }
        made.finish();
        const auto tally = campaign::tally(made);
        EXPECT_NEAR(static_cast<double>(tally.trials.size()), 1024. / 3, 1);
        EXPECT_EQ(tally.extent.left_out, 0u);
        EXPECT_FALSE(tally.extent.complete);
        EXPECT_FALSE(tally.extent.reached);
        EXPECT_TRUE(inject_report(made).unfinished);
        files.push_back(made.path());
    }
    const auto some = merge(std::span(files).first(2), folder_ / "some.db");
    EXPECT_TRUE(inject_report(some).unfinished);
    EXPECT_EQ(some.header().finished, "");
    EXPECT_EQ(campaign::tally(some).extent.left_out, 0u);
    const auto all = merge(files, folder_ / "all.db");
    EXPECT_FALSE(inject_report(all).unfinished);
    EXPECT_THAT(inject_report(all).warnings, IsEmpty());
    EXPECT_NE(all.header().finished, "");
}

TEST_F(Extents, OfCampaignsThatReachedTheirGoal) {
    auto made = store("stop_at: 0.05\n");
    made.begin_run();
    run(made, 0);
    run(made, 1);
    made.finish();
    const auto report = inject_report(made);
    EXPECT_FALSE(report.unfinished);
    EXPECT_THAT(report.warnings, IsEmpty());
    EXPECT_THAT(report.notes.back(), HasSubstr("after 512 of 1024 trials: it reached its goal, the "
                                               "SDC rate to ± 0.05"));
}

TEST_F(Extents, KnowInputsThatAreLeftOut) {
    auto made = store("only_correct: true\ndata: x\n", "3");
    made.begin_run();
    for (std::uint64_t input = 0; input < 3; ++input) {
        auto golden = golden_of(input);
        golden.correct = input != 2;
        made.add_golden({&golden, 1});
    }
    run(made, 0);
    EXPECT_EQ(campaign::tally(made).trials.size(), 256u);
}

TEST_F(Extents, TheConfidenceOfTheCampaignIsKept) {
    EXPECT_EQ(campaign_confidence(store("confidence: 0.99\n")), 0.99);
    EXPECT_EQ(campaign_confidence(store()), 0.95);
}

}  // namespace
}  // namespace trocar
