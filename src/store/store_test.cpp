#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "store/test_campaign.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::function<void()>& what) {
    try {
        what();
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

class Stores : public ::testing::Test {
protected:
    std::filesystem::path file(const char* name = "run.db") const { return folder_ / name; }

    CampaignStore filled(const char* name, std::uint64_t first, std::uint64_t last) {
        auto store = CampaignStore::create(file(name), small_header());
        work(store, first, last);
        return store;
    }

    void sql(const char* name, const std::string& statements) {
        sqlite3* connection = nullptr;
        ASSERT_EQ(sqlite3_open(file(name).c_str(), &connection), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(connection, statements.c_str(), nullptr, nullptr, nullptr),
                  SQLITE_OK)
            << sqlite3_errmsg(connection);
        sqlite3_close(connection);
    }

    TestFolder folder_;
};

TEST_F(Stores, GiveBackWhatWasPutIn) {
    filled("run.db", 0, 20);
    const auto store = CampaignStore::read(file());
    EXPECT_EQ(store.header().campaign, small_header().campaign);
    EXPECT_EQ(store.header().hash.size(), 64u);
    EXPECT_EQ(store.header().context, small_header().context);
    EXPECT_EQ(store.header().created.size(), 20u);
    EXPECT_EQ(store.header().finished, "");
    EXPECT_EQ(store.result_count(), 40u);
    EXPECT_EQ(store.trial_count(), 20u);
    EXPECT_EQ(store.strata().at(1).name, "weights / conv2");
    EXPECT_EQ(store.strata().at(1).bit, -1);
    std::uint64_t at = 0;
    store.each_result([&](const TrialResult& result) {
        EXPECT_EQ(result, result_of_trial(at / 2, at % 2));
        ++at;
        return true;
    });
    EXPECT_EQ(at, 40u);
    EXPECT_EQ(store.fault(3), fault_of_trial(3));
    EXPECT_EQ(store.fault(99), std::nullopt);
    EXPECT_EQ(store.results_of(4).at(1), result_of_trial(4, 1));
    EXPECT_EQ(store.effects_of(4).at(3).bad, 1u);
    EXPECT_TRUE(std::isnan(store.effects_of(4).at(3).max_abs));
    EXPECT_EQ(store.golden(1), golden_of(1));
    EXPECT_EQ(store.golden(2), std::nullopt);
}

TEST_F(Stores, TakeTrialsAndValuesApart) {
    Trial trial;
    trial.number = 3;
    trial.faults = parse_faults("a [0] flip 30");
    trial.weight = 0.5;
    trial.layer = "conv1";
    auto record = fault_record(trial);
    EXPECT_EQ(record.text, "a [0] flip 30");
    EXPECT_EQ(record.hash, hash(trial.faults));
    EXPECT_EQ(record.tensor, "a");
    EXPECT_EQ(record.effect, "flip");
    EXPECT_EQ(record.bit, 30);
    EXPECT_EQ(record.weight, 0.5);
    EXPECT_EQ(record.layer, "conv1");
    EXPECT_TRUE(std::isnan(record.rate));
    trial.faults = parse_faults("a [0] flip 3 + b [0] flip 3 + b [1] stuck0 4");
    record = fault_record(trial);
    EXPECT_EQ(record.tensor + record.effect, "");
    EXPECT_EQ(record.bit, -1);
    trial.faults = parse_faults("a [*] rate 1e-6 0-31 key 1 + b [*] rate 1e-6 0-31 key 2");
    EXPECT_EQ(fault_record(trial).rate, 1e-6);
    const std::vector<float> numbers{1, 2, 3};
    const NamedValue value{"y", Value::copy(DType::f32, {3, 1}, std::as_bytes(std::span(numbers)))};
    auto output = golden_output(value);
    EXPECT_THAT(golden_value(output).value.as<float>(), ElementsAre(1, 2, 3));
    output.bytes.pop_back();
    EXPECT_THAT(refusal([&] { golden_value(output); }), HasSubstr("is damaged"));
    const NamedValue words{"s", Value::strings({1}, {"a"})};
    EXPECT_THAT(refusal([&] { golden_output(words); }), HasSubstr("cannot be kept"));
}

TEST_F(Stores, KnowWhatIsDone) {
    auto store = CampaignStore::create(file(), small_header());
    work(store, 5, 8);
    const auto one = result_of_trial(9, 1);
    store.append({&one, 1});
    EXPECT_FALSE(store.done().contains(9, 1)) << "not committed";
    store.commit();
    const auto done = store.done();
    EXPECT_EQ(done.size(), 7u);
    for (std::uint64_t trial = 0; trial < 12; ++trial) {
        for (std::uint64_t input = 0; input < 3; ++input) {
            EXPECT_EQ(done.contains(trial, input),
                      (trial >= 5 && trial < 8 && input < 2) || (trial == 9 && input == 1));
        }
    }
    EXPECT_EQ(store.done(6, 6).size(), 2u);
}

TEST_F(Stores, AreTheSameWhateverTheOrder) {
    const auto straight = filled("a.db", 0, 30).digest();
    auto store = CampaignStore::create(file("b.db"), small_header(), {3, 0});
    work(store, 20, 30);
    work(store, 0, 11);
    work(store, 5, 25);
    EXPECT_EQ(store.digest(), straight);
    EXPECT_NE(filled("c.db", 0, 29).digest(), straight);
}

TEST_F(Stores, AreTheSameFromManyThreads) {
    const auto straight = filled("a.db", 0, 200).digest();
    auto store = CampaignStore::create(file("b.db"), small_header(), {20, 0.001});
    {
        std::vector<std::jthread> threads;
        for (const std::uint64_t part : {3u, 1u, 0u, 2u}) {
            threads.emplace_back([&store, part] { work(store, part * 50, part * 50 + 50); });
        }
    }
    EXPECT_EQ(store.digest(), straight);
}

TEST_F(Stores, AreReadWhileTheyAreWritten) {
    auto store = CampaignStore::create(file(), small_header(), {1u << 20, 1e9});
    work(store, 0, 5);
    const auto one = result_of_trial(7, 0);
    store.append({&one, 1});
    const auto reader = CampaignStore::read(file());
    EXPECT_EQ(reader.result_count(), 10u);
    store.commit();
    EXPECT_EQ(reader.result_count(), 11u);
    EXPECT_THROW(CampaignStore::read(file()).set_strata(small_strata()), Error);
}

TEST_F(Stores, TakeTheSameRowTwiceAndRefuseAnother) {
    auto store = filled("run.db", 0, 3);
    auto result = result_of_trial(2, 1);
    store.append({&result, 1});
    store.commit();
    result.cosine = 0.5;
    EXPECT_THAT(refusal([&] {
                    store.append({&result, 1});
                    store.commit();
                }),
                HasSubstr("another row for trial 2, input 1"));
}

TEST_F(Stores, KeepSessionsAndAudits) {
    {
        auto store = CampaignStore::create(file(), small_header());
        auto run = store.begin_run();
        EXPECT_EQ(run, 1u);
        RunRecord record;
        record.run = run;
        record.trials = 10;
        record.saved = {{"prefix", 0.75}};
        store.update_run(record);
        record.trials = 20;
        record.results = 60;
        record.saved = {{"prefix", 0.5}};
        store.end_run(record);
        const AuditRecord audit{run, 4, 0, false, "max_abs"};
        store.add_audits({&audit, 1});
        EXPECT_EQ(store.begin_run(2, 3), 2u);
        store.finish();
    }
    const auto store = CampaignStore::read(file());
    ASSERT_EQ(store.runs().size(), 2u);
    EXPECT_EQ(store.runs()[0].trials, 20u);
    EXPECT_EQ(store.runs()[0].results, 60u);
    EXPECT_NE(store.runs()[0].ended, "");
    EXPECT_EQ(store.runs()[0].shards, 1u);
    EXPECT_EQ(store.runs()[1].shard, 2u);
    EXPECT_EQ(store.runs()[1].shards, 3u);
    EXPECT_EQ(store.runs()[0].saved.at(0).second, 0.5);
    EXPECT_NE(store.runs()[0].started, "");
    EXPECT_EQ(store.runs()[1].ended, "");
    EXPECT_EQ(store.audits().at(0).difference, "max_abs");
    EXPECT_NE(store.header().finished, "");
}

TEST_F(Stores, SayInWhatAnotherCampaignDiffers) {
    const auto store = CampaignStore::create(file(), small_header());
    EXPECT_NO_THROW(store.require_same(small_header()));
    const auto with = [&](auto change) {
        auto header = small_header();
        change(header);
        return refusal([&] { store.require_same(header); });
    };
    EXPECT_THAT(with([](auto& h) { h.model_sha256 = "bb"; }), HasSubstr("another model: 'aa11'"));
    EXPECT_THAT(with([](auto& h) { h.data_hash = ""; }), HasSubstr("another set of data"));
    EXPECT_THAT(with([](auto& h) { h.engine_version = "1.20.1"; }), HasSubstr("version of the"));
    EXPECT_THAT(with([](auto& h) { h.view = "source"; }), HasSubstr("another view"));
    EXPECT_THAT(with([](auto& h) { h.seed = 8; }), HasSubstr("7 in the store, 8 here"));
    EXPECT_THAT(with([](auto& h) { h.campaign = "model: digits.onnx\nseed: 8\n"; }),
                HasSubstr("another campaign: 'seed: 7' in the store, 'seed: 8' here"));
    EXPECT_EQ(with([](auto& h) { h.model = "elsewhere/digits.onnx"; }), "no error");
}

TEST_F(Stores, OfTheDeployedViewAreOfOneSetOfKernels) {
    const auto on = [](std::string view, std::string kernels) {
        auto header = small_header();
        header.view = std::move(view);
        header.context.push_back({"kernels", std::move(kernels)});
        return header;
    };
    const auto deployed = CampaignStore::create(file(), on("deployed", "avx2 fma"));
    EXPECT_NO_THROW(deployed.require_same(on("deployed", "avx2 fma")));
    EXPECT_THAT(refusal([&] { deployed.require_same(on("deployed", "avx2 avx512f fma")); }),
                HasSubstr("'avx2 fma' in the store, 'avx2 avx512f fma' here"));
    const auto source = CampaignStore::create(file("source.db"), on("source", "avx2 fma"));
    EXPECT_NO_THROW(source.require_same(on("source", "avx2 avx512f fma")));
}

TEST_F(Stores, AreNotMistakenForOtherFiles) {
    EXPECT_THAT(refusal([&] { CampaignStore::open(file("none.db")); }), HasSubstr("no such file"));
    std::ofstream(file("text.db")) << "hello, this is not a database";
    EXPECT_THAT(refusal([&] { CampaignStore::read(file("text.db")); }), HasSubstr("is not the"));
    EXPECT_THAT(refusal([&] { CampaignStore::create(file("text.db"), small_header()); }),
                HasSubstr("is not the store of a campaign"));
    EXPECT_EQ(read_file(file("text.db")), "hello, this is not a database");
    sql("other.db", "CREATE TABLE t (x)");
    EXPECT_THAT(refusal([&] { CampaignStore::open(file("other.db")); }), HasSubstr("is not the"));
    EXPECT_THAT(refusal([&] { CampaignStore::create(file("other.db"), small_header()); }),
                HasSubstr("is not the store of a campaign"));
    filled("run.db", 0, 2);
    EXPECT_THAT(refusal([&] { CampaignStore::create(file(), small_header()); }),
                HasSubstr("holds a campaign already"));
    EXPECT_THAT(refusal([&] { CampaignStore::create("/nowhere/run.db", small_header()); }),
                HasSubstr("cannot open '/nowhere/run.db': No such file"));
    sql("run.db", "PRAGMA user_version = 4");
    EXPECT_THAT(refusal([&] { CampaignStore::open(file()); }), HasSubstr("a newer trocar"));
}

TEST_F(Stores, OfOlderVersionsAreReadButDoNotGoOn) {
    filled("run.db", 0, 2);
    const auto results = CampaignStore::read(file()).results_of(1);
    // As schema 2 had it.
    sql("run.db",
        "ALTER TABLE campaign DROP COLUMN decision; ALTER TABLE campaign DROP COLUMN "
        "decision_meaning; DROP VIEW trials; DROP VIEW rates_by_layer; DROP VIEW rates_by_bit; "
        "DROP VIEW rates_by_target; DROP VIEW rates_by_layer_and_bit; DROP VIEW accuracy; "
        "ALTER TABLE results DROP COLUMN positions; ALTER TABLE results DROP COLUMN "
        "positions_changed; "
        "ALTER TABLE runs DROP COLUMN results; ALTER TABLE runs DROP COLUMN shard; ALTER TABLE "
        "runs "
        "DROP COLUMN shards; "
        "UPDATE campaign SET schema_version = 2; PRAGMA user_version = 2");
    const auto store = CampaignStore::read(file());
    EXPECT_EQ(store.header().decision, "");
    EXPECT_EQ(store.results_of(1), results);
    EXPECT_EQ(store.runs().size(), 0U);
    EXPECT_THAT(refusal([&] { CampaignStore::open(file()); }),
                HasSubstr("an older trocar, whose results are judged otherwise: its schema is 2"));
    const std::vector<std::filesystem::path> shards{file()};
    EXPECT_EQ(merge(shards, file("all.db")).results_of(1), results);
    sql("run.db", "PRAGMA user_version = 4");
    EXPECT_THAT(refusal([&] { CampaignStore::read(file()); }), HasSubstr("its schema is 4"));
}

TEST_F(Stores, KeepTheDecisionAndNoNumbersThatItDoesNotGive) {
    const auto kept = [&](const std::string& decision) {
        auto header = small_header();
        header.decision = decision;
        header.decision_meaning = "so";
        const auto path = file((decision.substr(0, 4) + ".db").c_str());
        auto store = CampaignStore::create(path, header);
        TrialResult result;
        result.positions = decision == "none" ? 0 : 7;
        result.changed = decision == "none" ? 0 : 3;
        result.outcome = decision == "none" ? Outcome::benign : Outcome::sdc;
        result.sdc1 = decision != "none";
        store.append({&result, 1});
        store.commit();
        EXPECT_EQ(CampaignStore::read(path).header().decision_meaning, "so");
        EXPECT_EQ(store.results_of(0).at(0), result);
        EXPECT_THAT(refusal([&] { store.require_same(small_header()); }),
                    HasSubstr("of another decision: '" + decision + "' in the store"));
        store.export_to(file("rates.csv"), "rates_by_layer");
        store.export_to(file("results.csv"), "results");
        return read_file(file("results.csv")) + read_file(file("rates.csv"));
    };
    EXPECT_THAT(kept("scores:y:1"), HasSubstr("sdc,,,1,0,0,0,"));
    const auto equal = kept("equal:y");
    EXPECT_THAT(equal, HasSubstr("sdc,,,1,,,,"));
    EXPECT_THAT(equal, HasSubstr(",7,3\n"));
    EXPECT_THAT(equal, HasSubstr("\n,1,1,1,0.428571"));
    const auto none = kept("none");
    EXPECT_THAT(none, HasSubstr("benign,,,,,,,"));
    EXPECT_THAT(none, HasSubstr("\n,1,1,,,0,"));
}

TEST_F(Stores, SayWhenTheyAreDamaged) {
    filled("run.db", 0, 200);
    auto bytes = read_file(file());
    for (const std::size_t length : {std::size_t{20}, std::size_t{5000}, bytes.size() / 2}) {
        std::ofstream(file("cut.db"), std::ios::binary) << bytes.substr(0, length);
        EXPECT_NE(refusal([&] { CampaignStore::read(file("cut.db")).digest(); }), "no error");
    }
    std::fill(bytes.begin() + 4096, bytes.end(), 'x');
    std::ofstream(file("bad.db"), std::ios::binary) << bytes;
    EXPECT_THAT(refusal([&] { CampaignStore::read(file("bad.db")).digest(); }),
                HasSubstr("is damaged"));
}

TEST_F(Stores, AreMergedFromShards) {
    const auto whole = filled("whole.db", 0, 30).digest();
    filled("a.db", 0, 10).begin_run();
    filled("b.db", 8, 21).begin_run();
    filled("c.db", 20, 30);
    const std::vector<std::filesystem::path> shards{file("c.db"), file("a.db"), file("b.db")};
    const auto all = merge(shards, file("all.db"));
    EXPECT_EQ(all.digest(), whole);
    EXPECT_EQ(all.runs().size(), 2u);
    EXPECT_THAT(refusal([&] { merge(shards, file("all.db")); }), HasSubstr("is there already"));
}

TEST_F(Stores, AreNotMergedWhenTheyDisagree) {
    filled("a.db", 0, 10);
    filled("b.db", 5, 12);
    sql("b.db", "UPDATE results SET max_abs = 17 WHERE trial = 7 AND input = 0");
    const std::vector<std::filesystem::path> shards{file("a.db"), file("b.db")};
    EXPECT_THAT(refusal([&] { merge(shards, file("all.db")); }),
                HasSubstr("b.db' and a shard before it disagree: it has another row for trial 7"));
    auto header = small_header();
    header.campaign += "trials: 3\n";
    CampaignStore::create(file("c.db"), header);
    const std::vector<std::filesystem::path> others{file("a.db"), file("c.db")};
    EXPECT_THAT(refusal([&] { merge(others, file("all.db")); }), HasSubstr("another campaign"));
    EXPECT_FALSE(std::filesystem::exists(file("all.db")));
    EXPECT_FALSE(std::filesystem::exists(file("all.db.merging")));
}

TEST_F(Stores, AreExported) {
    const auto store = filled("run.db", 0, 40);
    store.export_to(file("trials.csv"));
    const auto csv = read_file(file("trials.csv"));
    EXPECT_TRUE(csv.starts_with("trial,input,outcome,golden_top,")) << csv.substr(0, 100);
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 81);
    EXPECT_THAT(csv, HasSubstr(",\"NaN, \"\"after\"\" conv\","));
    EXPECT_THAT(csv, HasSubstr(",inf,"));
    store.export_to(file("layers.json"), "rates_by_layer");
    EXPECT_THAT(read_file(file("layers.json")), HasSubstr("{\"layer\":\"conv1\",\"trials\":14"));
    store.export_to(file("all.json"), "everything");
    EXPECT_THAT(read_file(file("all.json")), HasSubstr("\"sqnr_db\":\"inf\""));
    EXPECT_THAT(refusal([&] { store.export_to(file("x.csv"), "result"); }),
                HasSubstr("no table 'result'"));
    EXPECT_THAT(refusal([&] { store.export_to(file("x.parquet")); }), HasSubstr("cannot tell"));
    for (const auto& table : CampaignStore::tables()) {
        EXPECT_NO_THROW(store.export_to(file("any.csv"), table)) << table;
    }
}

}  // namespace
}  // namespace trocar
