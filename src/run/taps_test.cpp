#include "run/taps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "graph/test_graphs.h"
#include "run/test_engines.h"
#include "trocar/session.h"

namespace trocar {
namespace {

using namespace testing;

// y = transpose(reshape(x, shape)): that the reshaped tensor has two dimensions shows in a run
// only.
Model unknown_rank_model() {
    Graph graph;
    auto vector = Type::tensor(DType::f32);
    vector.dims = {{-1, "n"}};
    auto shape_type = Type::tensor(DType::i64);
    shape_type.dims = {{-1, "rank"}};
    const auto x = graph.add_input("x", vector);
    const auto shape = graph.add_input("shape", shape_type);
    const auto reshaped = graph.add_tensor("reshaped", {});
    const auto y = graph.add_tensor("y", Type::tensor(DType::f32));
    graph.append(spec("Reshape", {x, shape}, {reshaped}, "r"));
    auto transpose = spec("Transpose", {reshaped}, {y}, "t");
    transpose.attributes.push_back({"perm", std::vector<std::int64_t>{1, 0}, {}, {}});
    graph.append(std::move(transpose));
    graph.set_outputs({y});
    Model model;
    model.format = "onnx";
    model.dialect = "onnx";
    model.ir_version = 10;
    model.opsets = {{"", 17}};
    graph.name = "test";
    model.graph = std::move(graph);
    return model;
}

template <class T>
Value list(DType dtype, const std::vector<T>& elements) {
    return Value::copy(dtype, {static_cast<std::int64_t>(elements.size())},
                       std::as_bytes(std::span(elements)));
}

// Every test runs on every engine that is there and takes ops of ours.
class Taps : public ::testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        if (!engine_info(GetParam()).can.host_calls) {
            GTEST_SKIP() << GetParam() << " takes no ops of ours";
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Engines, Taps, ::testing::ValuesIn(engine_names()),
                         [](const auto& engine) { return engine.param; });

TEST_P(Taps, WatchTensorsWhoseRankIsNotDeclared) {
    const auto model = unknown_rank_model();
    auto engine = engine_options(GetParam());
    engine.threads = 0;
    Tool tool;
    std::map<std::string, Shape> seen;
    tool.after(every_op(), [&](const Port& p) { seen[p.op().name] = p.output(0).shape(); });
    SessionOptions options;
    options.tools = {&tool};
    options.lowering = Lowering::tap;
    Session session(model, engine, options);
    const auto outputs = session.run({{"x", list<float>(DType::f32, {1, 2, 3, 4, 5, 6})},
                                      {"shape", list<std::int64_t>(DType::i64, {2, 3})}});
    EXPECT_EQ(seen["r"], (Shape{2, 3}));
    EXPECT_EQ(seen["t"], (Shape{3, 2}));
    EXPECT_EQ(outputs.at(0).value.as<float>()[1], 4);
}

TEST_P(Taps, WorkWithTheThreadsOfTheEngine) {
    const auto model = unknown_rank_model();
    auto engine = engine_options(GetParam());
    engine.threads = 0;
    for (const auto lowering : {Lowering::tap, Lowering::cut}) {
        std::vector<std::atomic<int>> done(1000);
        Tool tool;
        tool.after(named("t"), [&](const Port& p) {
            p.together(done.size(), [&](std::size_t part) { ++done[part]; });
        });
        SessionOptions options;
        options.tools = {&tool};
        options.lowering = lowering;
        Session session(model, engine, options);
        session.run({{"x", list<float>(DType::f32, {1, 2, 3, 4})},
                     {"shape", list<std::int64_t>(DType::i64, {2, 2})}});
        EXPECT_TRUE(std::all_of(done.begin(), done.end(), [](const auto& n) { return n == 1; }));
    }
}

}  // namespace
}  // namespace trocar
