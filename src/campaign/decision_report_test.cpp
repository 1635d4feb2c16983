#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "store/test_campaign.h"
#include "trocar/campaign_report.h"
#include "trocar/decision.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Campaigns by their decisions: two strata of 9000 and 1000 faults, with two trials each.
class DecisionReports : public ::testing::Test {
protected:
    CampaignStore store(const std::string& decision) {
        auto header = small_header();
        header.decision = decision;
        header.decision_meaning = "as " + decision;
        auto made = CampaignStore::create(folder_ / fmt::format("{}.db", ++count_), header);
        const std::vector<Stratum> strata{{"a", "weights", "layer0", -1, 9000, 2},
                                          {"b", "weights", "layer1", -1, 1000, 2}};
        made.set_strata(strata);
        return made;
    }
    // Trials 0 and 1 are of the first stratum.
    static void add(CampaignStore& store, std::uint64_t trial, Outcome outcome,
                    std::uint64_t positions, std::uint64_t changed) {
        FaultRecord fault;
        fault.trial = trial;
        fault.stratum = trial < 2 ? 0 : 1;
        fault.layer = fmt::format("layer{}", fault.stratum);
        fault.target = "weights";
        fault.bit = 3;
        fault.text = "fault";
        store.add_faults({&fault, 1});
        TrialResult result;
        result.trial = trial;
        result.outcome = outcome;
        result.positions = positions;
        result.changed = changed;
        result.sdc1 = changed > 0;
        store.append({&result, 1});
        store.commit();
    }
    static std::vector<std::string> outcomes(const Report& report) {
        std::vector<std::string> names;
        for (const auto& row : report.tables.at(0).rows) {
            names.push_back(show(row.cells[0], Show::plain));
        }
        return names;
    }
    static std::vector<std::string> columns(const Report& report, const std::string& key) {
        std::vector<std::string> titles;
        for (const auto& table : report.tables) {
            for (const auto& column : table.columns) {
                if (table.key == key) {
                    titles.push_back(column.title);
                }
            }
        }
        return titles;
    }
    static const Scalar* scalar(const Report& report, const std::string& section,
                                const std::string& key) {
        for (const auto& one : report.sections) {
            for (const auto& scalar : one.scalars) {
                if (one.key == section && scalar.key == key) {
                    return &scalar;
                }
            }
        }
        return nullptr;
    }

    TestFolder folder_;
    int count_ = 0;
};

TEST_F(DecisionReports, GiveTheShareOfPositionsOfAllFaults) {
    auto made = store("equal:tokens");
    add(made, 0, Outcome::sdc, 10, 1);
    add(made, 1, Outcome::masked, 10, 0);
    add(made, 2, Outcome::sdc, 10, 10);
    add(made, 3, Outcome::masked, 10, 0);
    const auto report = inject_report(made);
    // 9/10 of 1 in 20, and 1/10 of 10 in 20; 11 of 40 are in the sample.
    EXPECT_EQ(std::get<std::int64_t>(scalar(report, "positions", "changed")->value.value), 11);
    EXPECT_NEAR(std::get<double>(scalar(report, "positions", "changed_rate")->value.value), 0.095,
                1e-9);
    EXPECT_EQ(std::get<std::string>(scalar(report, "sample", "decision")->value.value),
              "as equal:tokens");
    EXPECT_THAT(outcomes(report),
                ElementsAre("Crash", "Hang", "Failed", "DUE", "SDC", "Benign", "Masked"));
    EXPECT_THAT(columns(report, "by_layer"), ::testing::Contains("Positions"));
    EXPECT_THAT(report.notes.at(0), HasSubstr("the SDC rate of all faults is 50 %"));
    EXPECT_EQ(inject_plots(made).size(), 2u);
}

TEST_F(DecisionReports, LeaveOutRunsWithoutOutputs) {
    auto made = store("scores:y:1");
    add(made, 0, Outcome::crash, 0, 0);
    add(made, 1, Outcome::sdc, 4, 3);
    add(made, 2, Outcome::crash, 0, 0);
    add(made, 3, Outcome::crash, 0, 0);
    const auto report = inject_report(made);
    EXPECT_NEAR(std::get<double>(scalar(report, "positions", "changed_rate")->value.value), 0.75,
                1e-9);
    EXPECT_THAT(outcomes(report), ElementsAre("Crash", "Hang", "Failed", "DUE", "SDC-1", "Benign",
                                              "Masked", "SDC-5", "SDC-10 %", "SDC-20 %"));
}

TEST_F(DecisionReports, OfOnePositionHaveNoShare) {
    auto made = store("topk:2:y:1");
    add(made, 0, Outcome::sdc, 1, 1);
    const auto report = inject_report(made);
    EXPECT_EQ(scalar(report, "positions", "changed_rate"), nullptr);
    EXPECT_THAT(columns(report, "by_layer"), ::testing::Not(::testing::Contains("Positions")));
    EXPECT_THAT(std::get<std::string>(scalar(report, "definitions", "sdc")->value.value),
                HasSubstr("not among the first 2"));
}

TEST_F(DecisionReports, HaveNoSdcRateWithoutADecision) {
    auto made = store("none");
    add(made, 0, Outcome::benign, 0, 0);
    add(made, 1, Outcome::masked, 0, 0);
    add(made, 2, Outcome::due, 0, 0);
    add(made, 3, Outcome::masked, 0, 0);
    const auto report = inject_report(made);
    EXPECT_THAT(outcomes(report),
                ElementsAre("Crash", "Hang", "Failed", "DUE", "Changed", "Masked"));
    for (const char* table : {"by_layer", "by_bit", "by_target", "worst"}) {
        const auto titles = columns(report, table);
        EXPECT_FALSE(std::any_of(titles.begin(), titles.end(), [](const auto& title) {
            return title.starts_with("SDC");
        })) << table;
    }
    EXPECT_EQ(report.notes.at(0), "There is no SDC rate: the decision is as none.");
    for (const auto& note : report.notes) {
        EXPECT_THAT(note, ::testing::Not(HasSubstr("the SDC rate")));
    }
    EXPECT_THAT(inject_plots(made), IsEmpty());
}

}  // namespace
}  // namespace trocar
