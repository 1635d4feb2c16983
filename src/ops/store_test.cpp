#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>

#include "trocar/error.h"
#include "trocar/op_store.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

OpSetting some_setting(const std::string& cpu = "a processor") {
    OpSetting setting;
    setting.host = {"print-" + cpu, cpu, 4, 1 << 20, 1ULL << 34, "Linux x86_64", ""};
    setting.engine = "engine";
    setting.version = "1.0";
    setting.threads = 2;
    setting.build = "0.1.0";
    return setting;
}

OpConfig some_config(const std::string& key) {
    OpConfig config;
    config.key = key;
    config.text = "text of " + key;
    config.inputs = "f32 1x8";
    config.features.type = "Conv";
    config.features.attributes = "group=1";
    config.features.dtype = "f32";
    config.features.macs = 1e6;
    config.features.weight_bytes = 64;
    config.features.numbers = {{"in.0", 1}, {"kernel", 3}};
    return config;
}

OpModelFacts some_model() {
    OpModelFacts model;
    model.name = "m.onnx";
    model.sha256 = "abc";
    model.inputs = "x f32 1x8";
    ModelOp one;
    one.config = some_config("k1");
    one.count = 3;
    one.sites = {"a", "b", "c"};
    ModelOp two;
    two.config = some_config("k2");
    two.count = 1;
    two.sites = {"d"};
    model.ops = {one, two};
    return model;
}

std::vector<OpWindow> some_windows(double ns) {
    std::vector<OpWindow> windows;
    for (std::uint32_t visit = 0; visit < 8; ++visit) {
        windows.push_back({ns + visit, ns, 100, 0, visit});
    }
    return windows;
}

void measured(OpDatabase& database, std::int64_t run, std::int64_t setting, const std::string& key,
              double ns, CacheMode mode = CacheMode::reuse) {
    auto one = database.open_measurement(run, setting, key, "", mode);
    database.add_windows({{one.id, some_windows(ns)}});
    one.time = summarize(some_windows(ns), 10);
    one.state = OpState::measured;
    one.energy.why = "no counter";
    database.finish(one);
}

TEST(OpDatabase, GivesBackWhatItWasGiven) {
    const TestFolder folder;
    {
        OpDatabase database(folder / "ops.db", OpDatabase::Mode::create);
        const auto setting = database.add(some_setting());
        EXPECT_EQ(database.add(some_setting()), setting);
        EXPECT_NE(database.add(some_setting("another")), setting);
        database.add(some_model());
        const auto run = database.begin_run(setting, {2000, 100, 50}, "measure");
        measured(database, run, setting, "k1", 1000);
        auto failed = database.open_measurement(run, setting, "k2", "", CacheMode::cold);
        failed.state = OpState::crashed;
        failed.reason = "SIGSEGV";
        database.finish(failed);
        database.end_run(run, {"hot"}, "load 1");
    }
    const OpDatabase database(folder / "ops.db", OpDatabase::Mode::read);
    const auto setting = database.find(some_setting());
    ASSERT_TRUE(setting);
    EXPECT_EQ(database.setting(*setting).host.cpu, "a processor");
    ASSERT_THAT(database.models(), SizeIs(1));
    const auto model = database.models()[0];
    ASSERT_THAT(model.ops, SizeIs(2));
    EXPECT_EQ(model.ops[0].sites, (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(model.ops[0].config.features.numbers, some_config("k1").features.numbers);
    ASSERT_THAT(database.runs(), SizeIs(1));
    EXPECT_EQ(database.runs()[0].cost.run_ns, 2000);
    const auto newest = database.newest(*setting);
    ASSERT_THAT(newest, SizeIs(2));
    EXPECT_NEAR(newest[0].time.ns, 993.5, 1e-9);
    EXPECT_EQ(newest[0].time.grade, 'A');
    EXPECT_EQ(newest[1].state, OpState::crashed);
    EXPECT_EQ(newest[1].reason, "SIGSEGV");
    EXPECT_THAT(database.verify(), IsEmpty());
    EXPECT_THAT(database.export_csv(), HasSubstr("Conv,f32 1x8,f32"));
    EXPECT_THAT(database.export_jsonl(), HasSubstr(R"("net_j":null)"));
}

TEST(OpDatabase, GoesOnWithWhatWasLeftOpen) {
    const TestFolder folder;
    std::int64_t id = 0;
    {
        OpDatabase database(folder / "ops.db", OpDatabase::Mode::create);
        const auto setting = database.add(some_setting());
        database.add(some_config("k1"));
        const auto run = database.begin_run(setting, {}, "measure");
        id = database.open_measurement(run, setting, "k1", "", CacheMode::reuse).id;
        database.add_windows({{id, some_windows(5)}});
    }
    OpDatabase database(folder / "ops.db", OpDatabase::Mode::create);
    const auto setting = *database.find(some_setting());
    EXPECT_THAT(database.newest(setting), IsEmpty());
    EXPECT_EQ(database.count(OpState::open), 1U);
    const auto run = database.begin_run(setting, {}, "measure");
    const auto again = database.open_measurement(run, setting, "k1", "", CacheMode::reuse);
    EXPECT_EQ(again.id, id);
    EXPECT_THAT(again.time.windows, SizeIs(8));
    // Another mode is another measurement.
    EXPECT_NE(database.open_measurement(run, setting, "k1", "", CacheMode::cold).id, id);
}

TEST(OpDatabase, FinishedMeasurementsAreNeverChanged) {
    const TestFolder folder;
    OpDatabase database(folder / "ops.db", OpDatabase::Mode::create);
    const auto setting = database.add(some_setting());
    database.add(some_config("k1"));
    const auto run = database.begin_run(setting, {}, "measure");
    measured(database, run, setting, "k1", 1000);
    auto old = database.newest(setting)[0];
    old.time.ns = 1;
    database.finish(old);
    EXPECT_NEAR(database.newest(setting)[0].time.ns, 993.5, 1e-9);
    measured(database, run, setting, "k1", 2000);
    ASSERT_THAT(database.newest(setting), SizeIs(1));
    EXPECT_NEAR(database.newest(setting)[0].time.ns, 1993.5, 1e-9);
    EXPECT_THAT(database.all_of("k1"), SizeIs(2));
}

TEST(OpDatabase, MergesOnceAndKeepsMachinesApart) {
    const TestFolder folder;
    OpDatabase a(folder / "a.db", OpDatabase::Mode::create);
    OpDatabase b(folder / "b.db", OpDatabase::Mode::create);
    for (auto* database : {&a, &b}) {
        const auto setting = database->add(some_setting(database == &a ? "one" : "two"));
        database->add(some_model());
        const auto run = database->begin_run(setting, {1, 2, 3}, "measure");
        measured(*database, run, setting, "k1", database == &a ? 100 : 900);
        database->end_run(run, {}, "");
    }
    EXPECT_EQ(a.merge(b), 1U);
    EXPECT_EQ(a.merge(b), 0U);
    EXPECT_THAT(a.models(), SizeIs(1));
    EXPECT_NEAR(a.newest(*a.find(some_setting("one")))[0].time.ns, 93.5, 1e-9);
    EXPECT_NEAR(a.newest(*a.find(some_setting("two")))[0].time.ns, 893.5, 1e-9);
    EXPECT_THAT(a.all_of("k1")[1].time.windows, SizeIs(8));
    EXPECT_THAT(a.verify(), IsEmpty());
    EXPECT_THROW(a.merge(a), Error);
}

TEST(OpDatabase, VerifyFindsTimesThatDoNotFollowFromSamples) {
    const TestFolder folder;
    const auto path = folder / "ops.db";
    {
        OpDatabase database(path, OpDatabase::Mode::create);
        const auto setting = database.add(some_setting());
        database.add(some_config("k1"));
        measured(database, database.begin_run(setting, {}, ""), setting, "k1", 1000);
    }
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
    sqlite3_exec(connection, "UPDATE measurement SET ns = 995", nullptr, nullptr, nullptr);
    sqlite3_close(connection);
    const OpDatabase database(path, OpDatabase::Mode::read);
    ASSERT_THAT(database.verify(), SizeIs(1));
    EXPECT_THAT(database.verify()[0], HasSubstr("its samples 993.5 ns"));
}

TEST(OpDatabase, RefusesWhatIsNone) {
    const TestFolder folder;
    EXPECT_THROW(OpDatabase(folder / "none.db", OpDatabase::Mode::read), Error);
    std::ofstream(folder / "text.db") << "this is not a database, and long enough to tell";
    EXPECT_THROW(OpDatabase(folder / "text.db", OpDatabase::Mode::create), Error);
    const auto other = folder / "other.db";
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(other.c_str(), &connection), SQLITE_OK);
    sqlite3_exec(connection, "CREATE TABLE t (x)", nullptr, nullptr, nullptr);
    sqlite3_close(connection);
    EXPECT_THROW(OpDatabase(other, OpDatabase::Mode::create), Error);
    // Of a version that is not known.
    const auto newer = folder / "newer.db";
    { const OpDatabase made(newer, OpDatabase::Mode::create); }
    ASSERT_EQ(sqlite3_open(newer.c_str(), &connection), SQLITE_OK);
    sqlite3_exec(connection, "PRAGMA user_version = 99", nullptr, nullptr, nullptr);
    sqlite3_close(connection);
    try {
        const OpDatabase database(newer, OpDatabase::Mode::create);
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("version 99"));
    }
    // Cut in the middle.
    const auto whole = folder / "whole.db";
    {
        OpDatabase database(whole, OpDatabase::Mode::create);
        database.add(some_model());
    }
    std::filesystem::resize_file(whole, std::filesystem::file_size(whole) / 2);
    EXPECT_THROW(
        {
            const OpDatabase database(whole, OpDatabase::Mode::read);
            if (!database.verify().empty()) {
                throw Error(Fault::input, "verify tells");
            }
        },
        Error);
}

// --- Explaining, from numbers that are known -------------------------------------------------

// A model whose operators take 100 and 300 ns in one mode, 200 and 400 in another.
struct Known {
    TestFolder folder;
    OpDatabase database{folder / "ops.db", OpDatabase::Mode::create};
    std::int64_t setting = database.add(some_setting());
    std::int64_t run = database.begin_run(setting, {50, 10, 5}, "measure");

    void whole(const OpModelFacts& model, double ns) {
        auto one = database.open_measurement(run, setting, "", model_id(model), CacheMode::reuse);
        database.add_windows({{one.id, some_windows(ns)}});
        one.time = summarize(some_windows(ns), 0);
        one.state = OpState::measured;
        database.finish(one);
    }
};

TEST(Explain, AddsUpCallsAndSaysWhatIsMissing) {
    Known known;
    const auto model = some_model();
    known.database.add(model);
    known.whole(model, 1000);
    measured(known.database, known.run, known.setting, "k1", 106.5);  // 100 net
    auto explanation = explain(known.database, known.setting, model_id(model));
    EXPECT_NEAR(explanation.measured_ns, 300, 1e-9);
    EXPECT_NEAR(explanation.dispatch_ns, 50, 1e-9);
    EXPECT_EQ(explanation.unmeasured, 1U);
    EXPECT_NEAR(explanation.ratio(), 350 / 1003.5, 1e-9);
    measured(known.database, known.run, known.setting, "k2", 406.5);
    explanation = explain(known.database, known.setting, model_id(model));
    EXPECT_EQ(explanation.unmeasured, 0U);
    EXPECT_NEAR(explanation.measured_ns, 700, 1e-9);
    EXPECT_THROW(explain(known.database, known.setting, "nothing"), Error);
}

TEST(Explain, ChoosesTheModeOnOtherModels) {
    Known known;
    auto first = some_model();
    auto second = some_model();
    second.sha256 = "another";
    second.ops.pop_back();
    known.database.add(first);
    known.database.add(second);
    for (const auto& [key, warm, streamed] :
         {std::tuple{"k1", 106.5, 206.5}, {"k2", 306.5, 406.5}}) {
        measured(known.database, known.run, known.setting, key, warm);
        measured(known.database, known.run, known.setting, key, streamed, CacheMode::stream_inputs);
    }
    known.whole(first, 600);   // as if warm: 3 · 100 + 300
    known.whole(second, 646);  // 3 · 200 + 50: as if streamed
    // Each is explained by what represents the other.
    auto explanation = explain(known.database, known.setting, model_id(first));
    EXPECT_EQ(text(explanation.mix), "stream-inputs");
    EXPECT_EQ(explanation.chosen_on, 1U);
    explanation = explain(known.database, known.setting, model_id(second));
    EXPECT_EQ(text(explanation.mix), "reuse");
    // And as asked.
    explanation = explain(known.database, known.setting, model_id(first),
                          parse_mode_mix("0.5 reuse + 0.5 stream-inputs"));
    EXPECT_NEAR(explanation.measured_ns, 3 * 150 + 350, 1e-9);
    ASSERT_THAT(explanation.otherwise, SizeIs(2));
}

TEST(Explain, AloneAModelIsExplainedInSitu) {
    Known known;
    const auto model = some_model();
    known.database.add(model);
    known.whole(model, 1000);
    EXPECT_EQ(text(usual_mix(known.database, known.setting)), "reuse");
    measured(known.database, known.run, known.setting, "k1", 106.5, CacheMode::stream_inputs);
    EXPECT_EQ(text(usual_mix(known.database, known.setting)), "stream-inputs");
    measured(known.database, known.run, known.setting, "k1", 206.5, CacheMode::in_situ);
    const auto explanation = explain(known.database, known.setting, model_id(model));
    EXPECT_EQ(text(explanation.mix), "in-situ");
    EXPECT_NEAR(explanation.measured_ns, 600, 1e-9);
}

TEST(MeasuredModels, LeaveOutWhatIsTooShortToBeTold) {
    Known known;
    const auto model = some_model();
    known.database.add(model);
    known.whole(model, 1000);
    measured(known.database, known.run, known.setting, "k1", 106.5);
    measured(known.database, known.run, known.setting, "k2", 1);  // less than a call costs
    const auto models = measured_models(known.database, known.setting, model.unit);
    ASSERT_THAT(models, SizeIs(1));
    ASSERT_THAT(models[0].operators, SizeIs(1));
    EXPECT_EQ(models[0].operators[0].first, "k1");
}

TEST(Explain, AModeThatDoesNotApplyHasAStandIn) {
    Known known;
    const auto model = some_model();
    known.database.add(model);
    known.whole(model, 1000);
    for (const auto* key : {"k1", "k2"}) {
        measured(known.database, known.run, known.setting, key, 106.5, CacheMode::stream_inputs);
        auto none = known.database.open_measurement(known.run, known.setting, key, "",
                                                    CacheMode::stream_weights);
        none.state = OpState::not_applicable;
        none.reason = "it has no weights";
        known.database.finish(none);
    }
    const auto explanation =
        explain(known.database, known.setting, model_id(model), parse_mode_mix("stream-weights"));
    EXPECT_NEAR(explanation.measured_ns, 400, 1e-9);
    EXPECT_THROW(parse_mode_mix("0.5 reuse + 0.6 cold"), Error);
    EXPECT_THROW(parse_mode_mix("warm"), Error);
}

TEST(Summarize, SaysHowSureItIs) {
    auto time = summarize(some_windows(1000), 100);
    EXPECT_NEAR(time.ns, 903.5, 1e-9);
    EXPECT_EQ(time.grade, 'A');
    EXPECT_FALSE(time.doubtful);
    // Windows in which others had the core do not count, while there are enough others.
    auto windows = some_windows(1000);
    for (std::uint32_t visit = 0; visit < 8; ++visit) {
        windows.push_back({9000, 1000, 100, 3, visit});
    }
    EXPECT_NEAR(summarize(windows, 100).ns, 903.5, 1e-9);
    for (auto& window : windows) {
        window.switches = 1;
    }
    time = summarize(windows, 100);
    EXPECT_GT(time.ns, 1000);
    EXPECT_GE(time.grade, 'C');
    // A few moments are no sample.
    windows = some_windows(1000);
    windows.resize(4);
    EXPECT_EQ(summarize(windows, 0).grade, 'D');
    // Half of them are slow: median and mean tell different things.
    windows = some_windows(1000);
    for (std::size_t i = 0; i < 3; ++i) {
        windows[i].ns = 1500;
    }
    EXPECT_TRUE(summarize(windows, 0).doubtful);
    EXPECT_EQ(summarize({}, 0).grade, 'D');
}

}  // namespace
}  // namespace trocar
