#include "trocar/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "run/test_engines.h"
#include "run/test_values.h"
#include "trocar/error.h"

namespace trocar {
namespace {

using namespace testing;
using ::testing::HasSubstr;

const std::vector<Cannot> cannot{
    {"openvino", "SequencesCrossCutsAsEngineValues", "OpenVINO gives no sequences"},
    {"litert", "SequencesCrossCutsAsEngineValues", "TensorFlow Lite has no sequences"},
    {"litert", "EngineErrorsNameTheOpAndLeaveTheSessionUsable", "its rules need shapes"},
    {"litert", "CapturedValuesAreInputsOfTheOp", "no rule maps If"},
    {"executorch", "SequencesCrossCutsAsEngineValues", "ExecuTorch has no sequences"},
    {"executorch", "CapturedValuesAreInputsOfTheOp", "no rule maps If"},
    {"torch", "SequencesCrossCutsAsEngineValues", "no rule maps SequenceConstruct to aten"},
    {"torch", "CapturedValuesAreInputsOfTheOp", "no rule maps If to aten"},
};

// Every test runs on every engine that is there.
class Sessions : public ::testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
        if (const auto reason = why_not(GetParam(), test->name(), cannot); !reason.empty()) {
            GTEST_SKIP() << reason;
        }
    }
    static std::shared_ptr<Engine> engine() { return open_engine(engine_options(GetParam())); }
};

INSTANTIATE_TEST_SUITE_P(Engines, Sessions, ::testing::ValuesIn(engine_names()),
                         [](const auto& engine) { return engine.param; });

SessionOptions cut(Selector selector, bool streaming = false) {
    SessionOptions options;
    options.cut = std::move(selector);
    options.streaming = streaming;
    return options;
}

std::string message_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

// First: an engine with threads of its own must not have been started before a process is forked.
TEST_P(Sessions, IsolatedGivesTheSame) {
    const auto model = residual_model();
    auto where = engine_options(GetParam());
    auto options = cut(every_op());
    options.isolate = true;
    Session session(model, where, options);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(numbers(session.run({{"x", floats({1})}})[0].value), std::vector<float>{-1});
    }
    EXPECT_THAT(message_of([&] { session.run({}); }), HasSubstr("input 'x' (f32[n]) is missing"));
    where.path = "/nowhere";
    EXPECT_THROW(Session(model, where, options), Error);
}

// Products of packed and of unpacked matrices can differ in their last bits.
TEST_P(Sessions, LowMemoryChangesNoBits) {
    constexpr std::int64_t inner = 512;
    constexpr std::int64_t columns = 1000;
    const auto wave = [](std::int64_t count) {
        std::vector<float> values(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = std::sin(static_cast<float>(i) * 0.37F);
        }
        return values;
    };
    Graph graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32, Shape{1, inner}));
    const auto w =
        graph.add_constant("w", Constant::of(DType::f32, {columns, inner}, wave(columns * inner)));
    const auto y = graph.add_tensor("y", Type::tensor(DType::f32, Shape{1, columns}));
    OpSpec spec{.type = "Gemm", .inputs = {x, w}, .outputs = {y}};
    spec.attributes = {{.name = "transB", .value = std::int64_t{1}, .reference = {}, .source = {}}};
    graph.append(std::move(spec));
    graph.set_outputs({y});
    const auto model = model_of(std::move(graph));
    const auto result = [&](bool low_memory) {
        SessionOptions options;
        options.compile.low_memory = low_memory;
        Session session(model, engine(), options);
        return numbers(session.run({{"x", floats(wave(inner), {1, inner})}})[0].value);
    };
    EXPECT_EQ(result(true), result(false));
}

TEST_P(Sessions, WholeAndCutGiveTheSameBits) {
    const auto model = residual_model();
    const std::vector<NamedValue> inputs{{"x", floats({-1, 2, 3.5F})}};
    const std::vector<float> expected{0, -2, -3.5F};
    for (const auto& options : {cut({}), cut(every_op()), cut(op("Mul")), cut(every_op(), true)}) {
        Session session(model, engine(), options);
        for (int i = 0; i < 2; ++i) {
            const auto outputs = session.run(inputs);
            ASSERT_EQ(outputs.size(), 1u);
            EXPECT_EQ(outputs[0].name, "y");
            EXPECT_EQ(numbers(outputs[0].value), expected) << options.cut.text();
        }
    }
}

TEST_P(Sessions, ShapesMayDifferFromRunToRun) {
    const auto model = residual_model();
    Session session(model, engine(), cut(every_op()));
    EXPECT_EQ(session.run({{"x", floats({1})}})[0].value.shape(), Shape{1});
    EXPECT_EQ(session.run({{"x", floats({1, 2, 3})}})[0].value.shape(), Shape{3});
}

TEST_P(Sessions, ObserverSeesEverySegment) {
    const auto model = residual_model();
    Session session(model, engine(), cut(every_op()));
    std::vector<std::string> seen;
    session.run({{"x", floats({1})}}, [&](const SegmentRun& run) {
        seen.push_back(fmt::format("{}:{}", model.graph.op(run.segment.ops[0]).name,
                                   numbers(run.outputs[0])[0]));
    });
    EXPECT_EQ(seen, (std::vector<std::string>{"A:1", "B:2", "C:-2", "Sum:-1"}));
}

TEST_P(Sessions, AllFaultsOfInputsComeTogether) {
    const auto model = residual_model();
    Session session(model, engine());
    const auto message = message_of([&] {
        session.run({{"z", floats({1})}, {"x", floats({1, 2}, {1, 2})}});
    });
    EXPECT_THAT(message, HasSubstr("no input 'z'"));
    EXPECT_THAT(message, HasSubstr("input 'x' is f32[1,2], but f32[n] is expected"));
    EXPECT_THAT(message_of([&] { session.run({}); }), HasSubstr("input 'x' (f32[n]) is missing"));
    EXPECT_EQ(numbers(session.run({{"x", floats({1})}})[0].value), std::vector<float>{-1});
}

TEST_P(Sessions, EngineErrorsNameTheOpAndLeaveTheSessionUsable) {
    Graph graph;
    const auto x = graph.add_input("x", vector_type());
    const auto shape = graph.add_constant("s", Constant::of<std::int64_t>(DType::i64, {1}, {2}));
    const auto a = new_tensor(graph, "a");
    const auto y = new_tensor(graph, "y");
    graph.append(spec("Relu", {x}, {a}, "first"));
    graph.append(spec("Reshape", {a, shape}, {y}, "reshape"));
    graph.set_outputs({y});
    const auto model = model_of(std::move(graph));
    Session session(model, engine(), cut(every_op()));
    EXPECT_THAT(message_of([&] {
                    session.run({{"x", floats({1, 2, 3})}});
                }),
                HasSubstr("op 1 (Reshape 'reshape')"));
    EXPECT_EQ(numbers(session.run({{"x", floats({1, 2})}})[0].value), (std::vector<float>{1, 2}));
}

TEST_P(Sessions, AnUnknownOpFailsAloneWhenTheRestMayGoOn) {
    Graph graph;
    const auto x = graph.add_input("x", vector_type());
    const auto a = new_tensor(graph, "a");
    const auto b = new_tensor(graph, "b");
    const auto c = new_tensor(graph, "c");
    auto odd = spec("Unheard", {x}, {a}, "odd");
    odd.domain = "some.where";
    graph.append(std::move(odd));
    graph.append(spec("Relu", {a}, {b}, "after"));
    graph.append(spec("Neg", {x}, {c}, "beside"));
    graph.set_outputs({b, c});
    auto model = model_of(std::move(graph));
    model.opsets.push_back({"some.where", 1});
    Session session(model, engine(), cut(every_op(), true));
    std::map<std::string, std::string> failures;
    const auto outputs = session.run_what_can({{"x", floats({1})}}, [&](const SegmentRun& run) {
        failures[model.graph.op(run.segment.ops[0]).name] = run.failure;
    });
    EXPECT_THAT(failures["odd"], HasSubstr("Unheard"));
    EXPECT_EQ(failures["after"], "not run: 'a' has no value");
    EXPECT_EQ(failures["beside"], "");
    EXPECT_EQ(outputs[0].value.kind(), Value::Kind::none);
    EXPECT_EQ(numbers(outputs[1].value), std::vector<float>{-1});
    EXPECT_THROW(Session(model, engine()), Error);
}

TEST_P(Sessions, SequencesCrossCutsAsEngineValues) {
    Graph graph;
    const auto x = graph.add_input("x", vector_type());
    const auto s = graph.add_tensor("s", {});
    const auto n = graph.add_tensor("n", Type::tensor(DType::i64));
    graph.append(spec("SequenceConstruct", {x, x}, {s}, "make"));
    graph.append(spec("SequenceLength", {s}, {n}, "count"));
    graph.set_outputs({n, s});
    graph.set_type(s, {Type::Kind::sequence, DType::undefined, {}, {Type::tensor(DType::f32)}});
    const auto model = model_of(std::move(graph));
    for (const auto& options : {cut({}), cut(every_op())}) {
        Session session(model, engine(), options);
        const auto outputs = session.run({{"x", floats({1, 2})}});
        EXPECT_EQ(outputs[0].value.as<std::int64_t>()[0], 2);
        EXPECT_EQ(outputs[1].value.kind(), Value::Kind::sequence);
        EXPECT_EQ(numbers(outputs[1].value.items().at(1)), (std::vector<float>{1, 2}));
    }
}

TEST_P(Sessions, CapturedValuesAreInputsOfTheOp) {
    Graph graph;
    const auto x = graph.add_input("x", vector_type());
    auto scalar = Type::tensor(DType::boolean);
    scalar.dims.emplace();
    const auto flag = graph.add_input("flag", scalar);
    const auto a = new_tensor(graph, "a");
    const auto y = new_tensor(graph, "y");
    graph.append(spec("Relu", {x}, {a}, "A"));
    auto op = spec("If", {flag}, {y}, "If");
    op.attributes.push_back({"then_branch", branch("a"), {}, {}});
    op.attributes.push_back({"else_branch", branch("x"), {}, {}});
    graph.append(std::move(op));
    graph.set_outputs({y});
    const auto model = model_of(std::move(graph));
    for (const auto& options : {cut({}), cut(every_op())}) {
        Session session(model, engine(), options);
        for (const bool yes : {true, false}) {
            const auto outputs = session.run(
                {{"x", floats({-4})},
                 {"flag", Value::copy(DType::boolean, {}, std::as_bytes(std::span(&yes, 1)))}});
            EXPECT_EQ(numbers(outputs[0].value), std::vector<float>{yes ? -0.0F : 4.0F});
        }
    }
}

TEST_P(Sessions, OutputsMayBeInputsAndConstants) {
    Graph graph;
    const auto x = graph.add_input("x", vector_type());
    const auto k = graph.add_constant("k", Constant::of<float>(DType::f32, {1}, {5}));
    const auto y = new_tensor(graph, "y");
    graph.append(spec("Neg", {x}, {y}, "N"));
    graph.set_outputs({y, x, k});
    const auto model = model_of(std::move(graph));
    Session session(model, engine(), cut(every_op()));
    const auto outputs = session.run({{"x", floats({1})}});
    EXPECT_EQ(numbers(outputs[0].value), std::vector<float>{-1});
    EXPECT_EQ(numbers(outputs[1].value), std::vector<float>{1});
    EXPECT_EQ(numbers(outputs[2].value), std::vector<float>{5});
}

TEST_P(Sessions, ADefaultCanBeOverridden) {
    Graph graph;
    const auto x = graph.add_input("x", vector_type());
    const auto k = graph.add_input("k", Type::tensor(DType::f32, Shape{1}));
    graph.set_constant(k, Constant::of<float>(DType::f32, {1}, {5}));
    const auto y = new_tensor(graph, "y");
    graph.append(spec("Add", {x, k}, {y}, "Add"));
    graph.set_outputs({y});
    const auto model = model_of(std::move(graph));
    for (const auto& options : {cut({}), cut(every_op())}) {
        Session session(model, engine(), options);
        EXPECT_EQ(numbers(session.run({{"x", floats({1})}})[0].value), std::vector<float>{6});
        EXPECT_EQ(numbers(session.run({{"x", floats({1})}, {"k", floats({7})}})[0].value),
                  std::vector<float>{8});
        EXPECT_EQ(numbers(session.run({{"x", floats({1})}})[0].value), std::vector<float>{6});
    }
}

TEST_P(Sessions, ConstantsNeedNotBeAligned) {
    constexpr std::size_t count = 4096;
    const std::vector<std::byte> data(count * sizeof(float) + 1);
    Graph graph;
    const auto x = graph.add_input("x", vector_type());
    const auto k = graph.add_constant(
        "k", Constant::view(DType::f32, {count}, Bytes(data).subspan(1), nullptr));
    const auto y = new_tensor(graph, "y");
    graph.append(spec("Add", {x, k}, {y}, "Add"));
    graph.set_outputs({y, k});
    const auto model = model_of(std::move(graph));
    for (const auto& options : {cut({}), cut(every_op()), cut(every_op(), true)}) {
        Session session(model, engine(), options);
        const auto outputs = session.run({{"x", floats({3})}});
        EXPECT_EQ(numbers(outputs[0].value), std::vector<float>(count, 3));
        EXPECT_EQ(numbers(outputs[1].value), std::vector<float>(count, 0));
    }
}

TEST_P(Sessions, StaleDeclarationsDoNotStopACutRun) {
    auto graph = residual();
    graph.set_type(graph.inputs()[0], vector_type());
    graph.set_type(*graph.find_tensor("a"), Type::tensor(DType::f32, Shape{7}));
    const auto model = model_of(std::move(graph));
    Session session(model, engine(), cut(every_op()));
    EXPECT_EQ(numbers(session.run({{"x", floats({1})}})[0].value), std::vector<float>{-1});
}

TEST_P(Sessions, TypesAreSeenInARun) {
    const auto model = residual_model();
    const auto types = observe_types(model, engine(), {{"x", floats({1, 2})}},
                                     std::vector{*model.graph.find_tensor("b")});
    ASSERT_EQ(types.size(), 1u);
    EXPECT_EQ(type_text(types[0]), "f32[2]");
}

}  // namespace
}  // namespace trocar
