// Real operators on real engines: times are never asserted, only what they are times of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ops/conditions.h"
#include "ops/survey.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/inputs.h"
#include "trocar/op_plan.h"
#include "trocar/op_store.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

const std::string digits = TROCAR_SOURCE_DIR "/models/digits.onnx";
const std::string engine_path = TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1";

class Measure : public testing::Test {
protected:
    void SetUp() override {
        if (!fs::exists(engine_path)) {
            GTEST_SKIP() << "ONNX Runtime is not there";
        }
        options.engine.path = engine_path;
        options.engine.threads = 1;
        options.modes = {CacheMode::reuse};
        options.seconds_per_op = 0.02;
        options.window_seconds = 0.0005;
    }
    static std::vector<NamedValue> inputs_of(const Model& model) {
        InputSpec spec;
        spec.fill = "random";
        spec.unknown_dims = 1;
        return make_inputs(model, spec).values;
    }
    TestFolder folder;
    MeasureOptions options;
};

TEST_F(Measure, EveryDistinctOperatorOnceAndOnlyOnce) {
    const auto model = load(digits);
    const auto inputs = inputs_of(model);
    OpDatabase database(folder / "ops.db", OpDatabase::Mode::create);
    const auto first = measure(database, model, inputs, options);
    EXPECT_TRUE(first.complete);
    EXPECT_EQ(first.known, 0U);
    EXPECT_EQ(first.failed, 0U);
    EXPECT_EQ(first.measured, first.configurations + 1);  // and the whole
    const auto second = measure(database, model, inputs, options);
    EXPECT_EQ(second.known, first.configurations);
    EXPECT_EQ(second.measured, 0U);
    const auto settings = database.settings();
    ASSERT_THAT(settings, SizeIs(1));
    for (const auto& one : database.newest(settings[0])) {
        EXPECT_EQ(one.state, OpState::measured);
        EXPECT_GE(one.time.interval.high, one.time.interval.low);
        EXPECT_GT(one.time.mean_ns + one.time.call_ns, 0);
    }
    EXPECT_THAT(database.verify(), IsEmpty());
    const auto explanation =
        explain(database, settings[0], model_id(identify(model, inputs, options.unit)));
    EXPECT_EQ(explanation.unmeasured, 0U);
    EXPECT_GT(explanation.ratio(), 0);
}

TEST_F(Measure, CountsEveryCall) {
    const auto path = std::string(TROCAR_SOURCE_DIR "/build/test-models/transformer.onnx");
    if (!fs::exists(path)) {
        GTEST_SKIP() << "the test models are not there";
    }
    const auto model = load(path);
    const auto facts = survey(model, inputs_of(model), options);
    std::uint64_t calls = 0;
    std::uint64_t most = 0;
    for (const auto& op : facts.ops) {
        EXPECT_EQ(op.failure, "");
        EXPECT_EQ(op.count, op.sites.size());
        calls += op.count;
        most = std::max(most, op.count);
    }
    EXPECT_GT(calls, facts.ops.size());
    EXPECT_GT(most, 1U);
}

TEST_F(Measure, EveryModeThatApplies) {
    const auto model = load(digits);
    options.modes = {CacheMode::stream_inputs, CacheMode::stream_weights, CacheMode::cold,
                     CacheMode::in_situ, CacheMode::chain};
    if (TROCAR_SANITIZED != 0) {  // filling caches takes long there
        options.modes = {CacheMode::stream_weights, CacheMode::in_situ, CacheMode::chain};
    }
    OpDatabase database(folder / "ops.db", OpDatabase::Mode::create);
    const auto summary = measure(database, model, inputs_of(model), options);
    EXPECT_EQ(summary.failed, 0U);
    std::size_t chained = 0;
    for (const auto& one : database.newest(database.settings()[0])) {
        if (one.state == OpState::not_applicable) {
            EXPECT_NE(one.reason, "");
            EXPECT_TRUE(one.mode == CacheMode::stream_weights || one.mode == CacheMode::chain);
        } else {
            EXPECT_EQ(one.state, OpState::measured) << one.reason;
            chained += one.mode == CacheMode::chain ? 1 : 0;
        }
    }
    EXPECT_GT(chained, 0U);  // 16 channels in, 16 out
}

TEST_F(Measure, StoppedItGoesOn) {
    const auto model = load(digits);
    const auto inputs = inputs_of(model);
    OpDatabase database(folder / "ops.db", OpDatabase::Mode::create);
    int asked = 0;
    auto stopped = options;
    stopped.progress = [&](auto, auto, auto) { return ++asked < 25; };
    const auto first = measure(database, model, inputs, stopped);
    EXPECT_FALSE(first.complete);
    EXPECT_GT(database.count(OpState::open), 0U);
    const auto second = measure(database, model, inputs, options);
    EXPECT_TRUE(second.complete);
    EXPECT_EQ(database.count(OpState::open), 0U);
    EXPECT_THAT(database.verify(), IsEmpty());
}

TEST_F(Measure, SweepsFromAFile) {
    auto plan = parse_op_plan(R"(
operators:
  - type: Conv
    vary: {c: [4, 8], hw: {from: 8, to: 16, step: 8}}
    inputs: [f32 1x$cx$hwx$hw, weight f32 8x$cx3x3]
    attributes: {pads: [1, 1, 1, 1]}
  - type: Reshape
    inputs: [f32 4x16, i64 = 2 -1]
  - type: NoSuchOp
    inputs: [f32 4]
modes: [reuse]
)",
                              "plan.yaml");
    EXPECT_EQ(plan.swept, 6U);
    ASSERT_TRUE(plan.sweep);
    options.unit = View::source;
    options.whole = false;
    OpDatabase database(folder / "ops.db", OpDatabase::Mode::create);
    const auto summary = measure(database, *plan.sweep, inputs_of(*plan.sweep), options);
    EXPECT_EQ(summary.configurations, 6U);
    EXPECT_EQ(summary.measured, 5U);
    EXPECT_EQ(summary.failed, 1U);
    for (const auto& one : database.newest(database.settings()[0])) {
        if (one.state != OpState::measured) {
            EXPECT_THAT(one.reason, HasSubstr("NoSuchOp"));
        }
    }
}

TEST_F(Measure, AnOperatorThatNeverEndsIsARowWithAReason) {
    const auto path = std::string(TROCAR_SOURCE_DIR "/build/test-models/trips.onnx");
    if (!fs::exists(path)) {
        GTEST_SKIP() << "the test models are not there";
    }
    auto model = load(path);
    model.graph.set_constant(
        model.graph.find_tensor("count").value(),
        Constant::of(DType::i64, {}, std::vector<std::int64_t>{std::int64_t{1} << 60}));
    options.unit = View::source;
    options.whole = false;
    options.time_limit = std::chrono::milliseconds(2500);
    OpDatabase database(folder / "ops.db", OpDatabase::Mode::create);
    const auto summary = measure(database, model, inputs_of(model), options);
    EXPECT_TRUE(summary.complete);
    EXPECT_GT(summary.failed, 0U);
    std::size_t hung = 0;
    for (const auto& one : database.newest(database.settings()[0])) {
        hung += one.state == OpState::hung ? 1 : 0;
        EXPECT_TRUE(one.state == OpState::measured || !one.reason.empty());
    }
    EXPECT_EQ(hung, 1U);
}

TEST(OpPlan, SaysLineAndKey) {
    const auto fails = [](const std::string& text) {
        try {
            parse_op_plan(text, "plan.yaml");
            return std::string("nothing");
        } catch (const Error& error) {
            return std::string(error.what());
        }
    };
    EXPECT_THAT(fails("models: [a.onnx]\nmodess: 1\n"), HasSubstr("modess"));
    EXPECT_THAT(fails("operators:\n  - type: Conv\n    inputs: [f32 1x$c]\n"), HasSubstr("$c"));
    EXPECT_THAT(fails("operators:\n  - type: Conv\n    inputs: [what 1x2]\n"), HasSubstr("what"));
    EXPECT_THAT(fails("operators:\n  - inputs: [f32 1x2]\n"), HasSubstr("type"));
    EXPECT_THAT(fails("operators:\n  - type: A\n    vary: {n: {from: 3, to: 1}}\n    inputs: []\n"),
                HasSubstr("range"));
    EXPECT_THAT(fails("operators:\n  - type: A\n    inputs: [f32 99999999x99999999]\n"),
                HasSubstr("too large"));
    EXPECT_THAT(fails("modes: [warm]\nmodels: [a]\n"), HasSubstr("warm"));
    EXPECT_THAT(fails("{}"), HasSubstr("neither"));
}

TEST(Conditions, AreReadWhereTheyAre) {
    const TestFolder folder;
    const auto root = folder.path();
    fs::create_directories(root / "proc");
    fs::create_directories(root / "sys/class/thermal/thermal_zone0");
    const auto write = [&](const char* path, const char* text) {
        std::ofstream(root / path) << text;
    };
    write("proc/loadavg", "3.50 1.00 0.50 1/100 1\n");
    write("proc/stat", "cpu 100 0 100 700 0 0 0 100 0 0\n");
    write("proc/cpuinfo", "cpu MHz\t\t: 2000.0\ncpu MHz\t\t: 3000.0\n");
    write("sys/class/thermal/thermal_zone0/temp", "55000\n");
    const auto before = ops::conditions(root.string());
    EXPECT_EQ(before.load, 3.5);
    EXPECT_EQ(before.mhz, 2500);
    EXPECT_EQ(before.celsius, 55);
    EXPECT_THAT(ops::preflight(before, 4, ""), SizeIs(1));
    write("proc/stat", "cpu 200 0 200 1400 0 0 0 200 0 0\n");
    write("proc/cpuinfo", "cpu MHz\t\t: 1000.0\n");
    const auto after = ops::conditions(root.string());
    EXPECT_THAT(ops::drift(before, after), SizeIs(2));
    EXPECT_THAT(ops::text(before, after), HasSubstr("steal 10.0 %"));
    const auto nothing = ops::conditions((root / "none").string());
    EXPECT_EQ(nothing.load, -1);
    EXPECT_THAT(ops::preflight(nothing, 4, ""), IsEmpty());
    EXPECT_EQ(ops::text(nothing, nothing), "");
}

}  // namespace
}  // namespace trocar
