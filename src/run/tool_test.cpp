#include "trocar/tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <stdexcept>

#include "run/test_values.h"
#include "trocar/error.h"
#include "trocar/session.h"

namespace trocar {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Every test runs with taps and with cuts: both must give the same.
class Tools : public ::testing::TestWithParam<Lowering> {
protected:
    static std::shared_ptr<Engine> engine() {
        EngineOptions options;
        options.search = {TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1"};
        options.threads = 1;
        return open_engine(options);
    }
    static Session session(const Model& model, std::vector<Tool*> tools) {
        SessionOptions options;
        options.tools = std::move(tools);
        options.lowering = GetParam();
        return {model, engine(), options};
    }
    std::vector<float> run(const Model& model, Tool& tool, const Value& x) {
        auto made = session(model, {&tool});
        ports_ = made.ports();
        const auto outputs = made.run({{"x", x}});
        return outputs.empty() ? std::vector<float>{} : numbers(outputs[0].value);
    }

    Model model_ = residual_model();
    Value x_ = floats({1, -1, 3});
    Ports ports_;
};

INSTANTIATE_TEST_SUITE_P(Lowerings, Tools, ::testing::Values(Lowering::tap, Lowering::cut),
                         [](const auto& lowering) {
                             return lowering.param == Lowering::tap ? "tap" : "cut";
                         });

TEST_P(Tools, ObserveWhatAnOpWrote) {
    Tool tool;
    std::map<std::string, std::vector<float>> seen;
    tool.after(every_op(), [&](const Port& p) { seen[p.op().name] = numbers(p.output(0)); });
    EXPECT_THAT(run(model_, tool, x_), ElementsAre(-1, 0, -3));
    EXPECT_THAT(seen["A"], ElementsAre(1, 0, 3));
    EXPECT_THAT(seen["B"], ElementsAre(2, 0, 6));
    EXPECT_THAT(seen["C"], ElementsAre(-2, 0, -6));
    EXPECT_THAT(seen["Sum"], ElementsAre(-1, 0, -3));
    EXPECT_EQ(GetParam() == Lowering::tap ? ports_.taps : ports_.cuts, 4U);
}

TEST_P(Tools, ObserveWhatAnOpReads) {
    Tool tool;
    std::vector<float> before;
    std::vector<float> constant;
    std::vector<float> after;
    tool.before(op("Mul"), [&](const Port& p) {
        before = numbers(p.input(0));
        constant = numbers(p.input(1));
    });
    tool.after(op("Add"), [&](const Port& p) { after = numbers(p.input(1)); }).with_inputs();
    EXPECT_THAT(run(model_, tool, x_), ElementsAre(-1, 0, -3));
    EXPECT_THAT(before, ElementsAre(1, 0, 3));
    EXPECT_THAT(constant, ElementsAre(2));
    EXPECT_THAT(after, ElementsAre(1, 0, 3));
}

TEST_P(Tools, ChangeBeforeAnOpForThatOpAlone) {
    Tool tool;
    tool.before(op("Mul"), [](Port& p) { p.writable_input(0).fill(10); });
    EXPECT_THAT(run(model_, tool, x_), ElementsAre(-19, -20, -17));
    EXPECT_THAT(numbers(x_), ElementsAre(1, -1, 3));
}

TEST_P(Tools, ChangeAfterAnOpForAllReaders) {
    Tool tool;
    tool.after(named("A"), [](Port& p) { p.writable_output(0).fill(10); });
    EXPECT_THAT(run(model_, tool, x_), ElementsAre(-10, -10, -10));
}

TEST_P(Tools, ChangeWhatTheModelGives) {
    Tool tool;
    tool.after(named("Sum"), [](Port& p) { p.writable_output(0).as<float>()[1] = 7; });
    EXPECT_THAT(run(model_, tool, x_), ElementsAre(-1, 7, -3));
}

TEST_P(Tools, NeverWriteToTheCallersBuffersOrToConstants) {
    Tool tool;
    tool.before(every_op(),
                [](Port& p) {
                    for (std::size_t i = 0; i < p.input_count(); ++i) {
                        p.writable_input(i).fill(5);
                    }
                })
        .with_constants();
    auto made = session(model_, {&tool});
    for (int i = 0; i < 2; ++i) {
        EXPECT_THAT(numbers(made.run({{"x", x_}})[0].value), ElementsAre(10, 10, 10));
        EXPECT_THAT(numbers(x_), ElementsAre(1, -1, 3));
    }
    const auto w = model_.graph.find_tensor("w").value();
    EXPECT_EQ(numbers(Value::of(*model_.graph.tensor(w).constant)), std::vector<float>{2});
}

TEST_P(Tools, SetAnOutputOfAnotherShape) {
    Tool tool;
    tool.after(named("A"), [](Port& p) { p.set_output(0, floats({1, 2})); });
    EXPECT_THAT(run(model_, tool, x_), ElementsAre(-1, -2));
}

TEST_P(Tools, ReplaceAnOp) {
    Tool tool;
    tool.replace(op("Neg"), [](Port& p) {
        const auto in = p.input(0).as<float>();
        const auto out = p.make_output(0, DType::f32, p.input(0).shape());
        for (std::size_t i = 0; i < in.size(); ++i) {
            out.as<float>()[i] = in[i] * 100;
        }
    });
    EXPECT_THAT(run(model_, tool, x_), ElementsAre(201, 0, 603));
}

TEST_P(Tools, ReplaceAnOpThatTheEngineDoesNotKnow) {
    Graph graph;
    const auto x = graph.add_input("x", vector_type());
    const auto y = graph.add_tensor("y", vector_type());
    auto unknown = spec("Mystery", {x}, {y}, "m");
    unknown.domain = "nowhere";
    graph.append(std::move(unknown));
    graph.set_outputs({y});
    auto model = model_of(std::move(graph));
    model.opsets.push_back({"nowhere", 1});
    Tool tool;
    tool.replace(op("nowhere:Mystery"), [](Port& p) { p.set_output(0, floats({4, 2})); });
    EXPECT_THAT(run(model, tool, x_), ElementsAre(4, 2));
}

TEST_P(Tools, StopTheRun) {
    Tool tool;
    std::vector<std::string> seen;
    bool ended = false;
    tool.after(every_op(), [&](Port& p) {
        seen.push_back(p.op().name);
        if (p.op().name == "B") {
            p.stop();
        }
    });
    tool.at_end([&](const RunState& state) { ended = state.stopped; });
    EXPECT_TRUE(run(model_, tool, x_).empty());
    EXPECT_THAT(seen, ElementsAre("A", "B"));
    EXPECT_TRUE(ended);
}

TEST_P(Tools, SayWhichOpACallbackFailedAt) {
    Tool tool("picky");
    bool fail = true;
    tool.after(op("Neg"), [&](const Port&) {
        if (fail) {
            throw std::runtime_error("no good");
        }
    });
    auto made = session(model_, {&tool});
    try {
        made.run({{"x", x_}});
        FAIL();
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "the tool 'picky' failed at op 2 (Neg 'C'): no good");
    }
    fail = false;
    EXPECT_THAT(numbers(made.run({{"x", x_}})[0].value), ElementsAre(-1, 0, -3));
}

TEST_P(Tools, RefuseWhatIsNotThere) {
    const auto fails = [&](Tool& tool, const char* message) {
        try {
            run(model_, tool, x_);
            FAIL() << message;
        } catch (const Error& e) {
            EXPECT_THAT(e.what(), HasSubstr(message));
        }
    };
    Tool inputs;
    inputs.after(op("Add"), [](const Port& p) { p.input(0); });
    fails(inputs, "input 0 was not kept for this port");
    Tool early;
    early.before(op("Add"), [](const Port& p) { p.output(0); });
    fails(early, "output 0 has no value yet");
    Tool beyond;
    beyond.after(op("Add"), [](const Port& p) { p.output(3); });
    fails(beyond, "has 1 outputs; there is no output 3");
    Tool constant;
    constant.before(op("Mul"), [](Port& p) { p.writable_input(1); });
    fails(constant, "input 1 is a constant");
    Tool skip;
    skip.before(op("Mul"), [](Port& p) { p.skip(); });
    fails(skip, "cannot be skipped here");
    Tool wrong;
    wrong.after(op("Mul"), [](Port& p) { p.writable_input(0); });
    fails(wrong, "can be changed before it only");
}

TEST_P(Tools, CallInADefinedOrder) {
    Tool one("one");
    Tool two("two");
    std::vector<std::string> calls;
    const auto note = [&](std::string what) {
        return [&calls, what](const Port&) { calls.push_back(what); };
    };
    two.before(op("Mul"), note("two before"));
    one.after(op("Mul"), note("one after"));
    one.before(op("Mul"), note("one before"));
    one.before(op("Mul"), note("one before too"));
    two.after(op("Mul"), note("two after"));
    auto made = session(model_, {&one, &two});
    made.run({{"x", x_}});
    EXPECT_THAT(
        calls, ElementsAre("one before", "one before too", "two before", "one after", "two after"));
}

TEST_P(Tools, SeeWhatThoseBeforeThemDid) {
    Tool tool;
    std::vector<float> seen;
    tool.after(named("A"), [](Port& p) { p.writable_output(0).fill(3); });
    tool.after(named("A"), [&](const Port& p) { seen = numbers(p.output(0)); });
    tool.before(op("Mul"),
                [&](Port& p) { p.writable_input(0).as<float>()[0] += p.input(0).as<float>()[1]; });
    EXPECT_THAT(run(model_, tool, x_), ElementsAre(-9, -3, -3));
    EXPECT_THAT(seen, ElementsAre(3, 3, 3));
}

TEST_P(Tools, ComeOnlyWhenTheyAreWanted) {
    Tool tool;
    int first = 0;
    int never = 0;
    int when = 0;
    int half = 0;
    tool.after(op("Mul"), [&](const Port&) { ++first; }).first(2);
    tool.after(op("Mul"), [&](const Port&) { ++never; }).sample(0);
    tool.after(op("Mul"), [&](const Port&) { ++half; }).sample(0.5, 7);
    tool.after(op("Mul"), [&](const Port&) { ++when; }).when([](const Port& p) {
        return p.run() == 3;
    });
    auto made = session(model_, {&tool});
    for (int i = 0; i < 40; ++i) {
        made.run({{"x", x_}});
    }
    EXPECT_EQ(first, 2);
    EXPECT_EQ(never, 0);
    EXPECT_EQ(when, 1);
    EXPECT_EQ(half, 21);  // for ever: the generator is indexed, not run along
}

TEST_P(Tools, CostNothingWhereTheyMatchNothing) {
    Tool tool;
    tool.after(op("Conv"), [](const Port&) { FAIL(); });
    auto made = session(model_, {&tool});
    EXPECT_THAT(made.ports().unmatched, ElementsAre("type:Conv"));
    EXPECT_EQ(made.ports().taps + made.ports().cuts, 0U);
    EXPECT_EQ(&made.model(), &model_);
    EXPECT_THAT(numbers(made.run({{"x", x_}})[0].value), ElementsAre(-1, 0, -3));
}

TEST_P(Tools, ValuesThatAreKeptStayValid) {
    Tool tool;
    std::vector<Value> kept;
    tool.after(every_op(), [&](const Port& p) { kept.push_back(p.output(0)); });
    tool.after(named("Sum"), [&](Port& p) {
        p.writable_output(0).fill(9);
        kept.push_back(p.output(0));
    });
    {
        auto made = session(model_, {&tool});
        for (int i = 0; i < 2; ++i) {
            made.run({{"x", floats({static_cast<float>(i), 2, 3})}});
        }
    }
    ASSERT_EQ(kept.size(), 10U);
    EXPECT_THAT(numbers(kept[0]), ElementsAre(0, 2, 3));
    EXPECT_THAT(numbers(kept[2]), ElementsAre(0, -4, -6));
    EXPECT_THAT(numbers(kept[4]), ElementsAre(9, 9, 9));
    EXPECT_THAT(numbers(kept[6]), ElementsAre(2, 4, 6));
}

TEST_P(Tools, TakeOtherShapesFromRunToRun) {
    Tool tool;
    std::vector<Shape> shapes;
    tool.after(op("Mul"), [&](Port& p) {
        shapes.push_back(p.output(0).shape());
        p.writable_output(0).fill(1);
    });
    auto made = session(model_, {&tool});
    made.run({{"x", floats({1})}});
    made.run({{"x", floats({1, 2, 3, 4})}});
    EXPECT_THAT(shapes, ElementsAre(Shape{1}, Shape{4}));
}

TEST(SkippingTools, LeaveAnOpOut) {
    const auto model = residual_model();
    EngineOptions engine;
    engine.search = {TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1"};
    engine.threads = 1;
    Tool tool;
    tool.before(op("Neg"),
                [](Port& p) {
                    p.skip();
                    p.set_output(0, p.input(0));
                })
        .may_skip();
    EXPECT_THAT(numbers(run(model, {{"x", floats({1, -1, 3})}}, tool, engine)[0].value),
                ElementsAre(3, 0, 9));
    Tool careless;
    careless.before(op("Neg"), [](Port& p) { p.skip(); }).may_skip();
    EXPECT_THROW(run(model, {{"x", floats({1})}}, careless, engine), Error);
}

// y = relu(w'), w' = identity(w): the identity passes a constant on.
TEST_P(Tools, StandAtOpsThatPassConstantsOn) {
    Graph graph;
    const auto x = graph.add_input("x", vector_type());
    const auto w = graph.add_constant("w", Constant::of<float>(DType::f32, {1}, {2.0F}));
    const auto v = new_tensor(graph, "v");
    const auto y = new_tensor(graph, "y");
    graph.append(spec("Identity", {w}, {v}, "pass"));
    graph.append(spec("Mul", {x, v}, {y}, "mul"));
    graph.set_outputs({y});
    const auto model = model_of(std::move(graph));
    std::vector<float> seen;
    Tool look;
    look.after(named("pass"), [&](const Port& p) { seen = numbers(p.output(0)); });
    EXPECT_THAT(run(model, look, x_), ElementsAre(2, -2, 6));
    EXPECT_THAT(seen, ElementsAre(2));
    EXPECT_EQ(ports_.constants, 1U);
    Tool change;
    change.after(named("pass"), [&](Port& p) { p.writable_output(0).fill(3); });
    EXPECT_THAT(run(model, change, x_), ElementsAre(3, -3, 9));
}

// total = x added up `count` times, in a Loop whose body reads x from outside.
Model loop_model() {
    auto body = std::make_shared<Graph>();
    body->name = "body";
    auto scalar = Type::tensor(DType::i64);
    scalar.dims = std::vector<Dim>{};
    auto flag = Type::tensor(DType::boolean);
    flag.dims = std::vector<Dim>{};
    body->add_input("i", scalar);
    const auto go = body->add_input("go", flag);
    const auto sum = body->add_input("sum", vector_type());
    const auto x = body->add_capture("x");
    const auto go_on = body->add_tensor("go_on", flag);
    const auto more = body->add_tensor("more", vector_type());
    body->append(spec("Identity", {go}, {go_on}, "go"));
    body->append(spec("Add", {sum, x}, {more}, "add"));
    body->set_outputs({go_on, more});

    Graph graph;
    const auto count = graph.add_input("count", scalar);
    const auto outer = graph.add_input("x", vector_type());
    const auto zero = graph.add_tensor("zero", vector_type());
    const auto total = graph.add_tensor("total", vector_type());
    graph.append(spec("Sub", {outer, outer}, {zero}, "zero"));
    auto loop = spec("Loop", {count, TensorId::none, zero}, {total}, "loop");
    loop.attributes.push_back({"body", body, {}, {}});
    graph.append(std::move(loop));
    graph.set_outputs({total});
    return model_of(std::move(graph));
}

class BodyTools : public ::testing::Test {
protected:
    std::vector<float> run(Tool& tool, Lowering lowering = Lowering::automatic) {
        EngineOptions engine;
        engine.search = {TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1"};
        engine.threads = 1;
        SessionOptions options;
        options.tools = {&tool};
        options.lowering = lowering;
        Session session(model_, engine, options);
        const std::vector<std::int64_t> three{3};
        return numbers(
            session
                .run({{"x", floats({1, 2})},
                      {"count", Value::copy(DType::i64, {}, std::as_bytes(std::span(three)))}})[0]
                .value);
    }
    Model model_ = loop_model();
};

TEST_F(BodyTools, SeeEveryRound) {
    Tool tool;
    std::vector<std::int64_t> rounds;
    std::vector<float> last;
    tool.after(named("add"), [&](const Port& p) {
        rounds.push_back(p.iterations()[0]);
        last = numbers(p.output(0));
    });
    EXPECT_THAT(run(tool), ElementsAre(3, 6));
    EXPECT_THAT(rounds, ElementsAre(0, 1, 2));
    EXPECT_THAT(last, ElementsAre(3, 6));
}

TEST_F(BodyTools, ChangeAndReplaceInside) {
    Tool change;
    change.before(named("add"), [](Port& p) {
        if (p.iterations()[0] == 1) {
            p.writable_input(1).fill(10);
        }
    });
    EXPECT_THAT(run(change), ElementsAre(12, 14));
    Tool replace;
    replace.replace(named("add"),
                    [](Port& p) { p.make_output(0, DType::f32, p.input(0).shape()).fill(8); });
    EXPECT_THAT(run(replace), ElementsAre(8, 8));
}

TEST_F(BodyTools, StayOutsideWhenAsked) {
    Tool tool;
    std::vector<std::string> seen;
    tool.after(every_op(), [&](const Port& p) { seen.push_back(p.op().name); }).outside_bodies();
    run(tool);
    EXPECT_THAT(seen, ElementsAre("zero", "loop"));
}

TEST_F(BodyTools, CannotBeCutOut) {
    Tool tool;
    tool.after(named("add"), [](const Port&) {});
    EXPECT_THROW(run(tool, Lowering::cut), Error);
}

}  // namespace
}  // namespace trocar
