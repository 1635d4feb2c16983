#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_graphs.h"
#include "trocar/error.h"

namespace trocar {
namespace {

using namespace testing;
using Names = std::vector<std::string>;

OpId find(const Graph& graph, std::string_view name) {
    return graph.find_op(name).value();
}
TensorId tensor(const Graph& graph, std::string_view name) {
    return graph.find_tensor(name).value();
}
void expect_valid(const Graph& graph) {
    for (const auto& problem : graph.verify()) {
        ADD_FAILURE() << problem.where << ": " << problem.what;
    }
}

TEST(Graph, WalksForwardAndBackwardAlongEdges) {
    const auto graph = residual();
    EXPECT_EQ(order(graph), (Names{"A", "B", "C", "Sum"}));
    EXPECT_EQ(graph.consumers(find(graph, "A")),
              (std::vector{find(graph, "B"), find(graph, "Sum")}));
    EXPECT_EQ(graph.producers(find(graph, "Sum")),
              (std::vector{find(graph, "A"), find(graph, "C")}));
    EXPECT_EQ(graph.tensor(tensor(graph, "b")).producer, find(graph, "B"));
    EXPECT_TRUE(graph.before(find(graph, "A"), find(graph, "Sum")));
    EXPECT_EQ(graph.describe(find(graph, "C")), "op 2 (Neg 'C')");
    expect_valid(graph);
}

TEST(Graph, ForeignHandleIsAUsageError) {
    const auto graph = chain(2);
    EXPECT_THROW(graph.op(OpId{77}), Error);
    EXPECT_THROW(graph.tensor(TensorId{77}), Error);
}

TEST(Graph, InsertOnATensorServesAllItsReaders) {
    auto graph = residual();
    const auto id = graph.insert_on(tensor(graph, "a"), spec("Tap", {}, {}, "Tap"));
    EXPECT_EQ(order(graph), (Names{"A", "Tap", "B", "C", "Sum"}));
    const auto made = graph.op(id).outputs[0];
    EXPECT_EQ(graph.op(find(graph, "B")).inputs[0], made);
    EXPECT_EQ(graph.op(find(graph, "Sum")).inputs[1], made);
    EXPECT_EQ(graph.op(id).inputs[0], tensor(graph, "a"));
    expect_valid(graph);
}

TEST(Graph, InsertOnAnOutputKeepsTheOutputsName) {
    auto graph = residual();
    const auto id = graph.insert_on(tensor(graph, "y"), spec("Tap", {}, {}, "Tap"));
    ASSERT_EQ(graph.outputs().size(), 1u);
    EXPECT_EQ(graph.tensor(graph.outputs()[0]).name, "y");
    EXPECT_EQ(graph.tensor(graph.outputs()[0]).producer, id);
    EXPECT_NE(graph.tensor(graph.op(find(graph, "Sum")).outputs[0]).name, "y");
    expect_valid(graph);
}

TEST(Graph, InsertOnAnInputStandsFirst) {
    auto graph = chain(2);
    graph.insert_on(tensor(graph, "t0"), spec("Tap", {}, {}, "Tap"));
    EXPECT_EQ(order(graph), (Names{"Tap", "op0", "op1"}));
    expect_valid(graph);
}

TEST(Graph, RemoveJoinsTheOnlyInputToTheReaders) {
    auto graph = residual();
    graph.remove(find(graph, "C"));
    EXPECT_EQ(order(graph), (Names{"A", "B", "Sum"}));
    EXPECT_EQ(graph.op(find(graph, "Sum")).inputs[0], tensor(graph, "b"));
    EXPECT_FALSE(graph.find_tensor("c"));
    expect_valid(graph);
}

TEST(Graph, RemoveIgnoresConstantsWhenItLooksForTheInput) {
    auto graph = residual();
    graph.remove(find(graph, "B"));
    EXPECT_EQ(graph.op(find(graph, "C")).inputs[0], tensor(graph, "a"));
    expect_valid(graph);
}

TEST(Graph, RemoveOfTheLastOpKeepsTheOutputsName) {
    auto graph = chain(3);
    graph.remove(find(graph, "op2"));
    EXPECT_EQ(graph.tensor(graph.outputs()[0]).name, "t3");
    EXPECT_EQ(graph.tensor(graph.outputs()[0]).producer, find(graph, "op1"));
    expect_valid(graph);
}

TEST(Graph, AmbiguousRemovalIsRefusedAndChangesNothing) {
    auto graph = residual();
    const auto before = picture(graph);
    EXPECT_THROW(graph.remove(find(graph, "Sum")), Error);
    EXPECT_EQ(picture(graph), before);
    EXPECT_FALSE(graph.edited());
    graph.remove(find(graph, "Sum"), {{tensor(graph, "y"), tensor(graph, "c")}});
    EXPECT_EQ(graph.tensor(graph.outputs()[0]).name, "y");
    expect_valid(graph);
}

TEST(Graph, ReplaceTakesOverTheOutputs) {
    auto graph = residual();
    const auto id =
        graph.replace(find(graph, "B"), spec("Identity", {tensor(graph, "a")}, {}, "I"));
    EXPECT_EQ(order(graph), (Names{"A", "I", "C", "Sum"}));
    EXPECT_EQ(graph.tensor(tensor(graph, "b")).producer, id);
    expect_valid(graph);
}

TEST(Graph, ReplacementCannotReadWhatItReplaces) {
    auto graph = residual();
    const auto before = picture(graph);
    EXPECT_THROW(graph.replace(find(graph, "B"), spec("Identity", {tensor(graph, "b")})), Error);
    EXPECT_EQ(picture(graph), before);
}

TEST(Graph, SetInputReordersWhereItMust) {
    auto graph = chain(1);
    const auto y = new_tensor(graph, "late");
    graph.append(spec("Neg", {tensor(graph, "t0")}, {y}, "Late"));
    graph.set_input(find(graph, "op0"), 0, y);
    EXPECT_EQ(order(graph), (Names{"Late", "op0"}));
    expect_valid(graph);
}

TEST(Graph, SetInputRefusesACycle) {
    auto graph = chain(3);
    const auto before = picture(graph);
    EXPECT_THROW(graph.set_input(find(graph, "op0"), 0, tensor(graph, "t3")), Error);
    EXPECT_EQ(picture(graph), before);
}

TEST(Graph, AnOpCannotReadFurtherDown) {
    auto graph = chain(2);
    const auto out = new_tensor(graph);
    EXPECT_THROW(graph.insert_before(find(graph, "op0"), spec("Neg", {tensor(graph, "t2")}, {out})),
                 Error);
    expect_valid(graph);
}

TEST(Graph, ATensorHasOneWriter) {
    auto graph = chain(2);
    EXPECT_THROW(graph.append(spec("Neg", {tensor(graph, "t0")}, {tensor(graph, "t1")})), Error);
    EXPECT_THROW(graph.append(spec("Neg", {}, {tensor(graph, "t0")})), Error);
    expect_valid(graph);
}

TEST(Graph, ReplaceUsesIncludesTheOutputs) {
    auto graph = residual();
    graph.replace_uses(tensor(graph, "y"), tensor(graph, "c"));
    EXPECT_EQ(graph.tensor(graph.outputs()[0]).name, "c");
    expect_valid(graph);
}

TEST(Graph, RemoveUnusedTakesOpsThatNobodyReads) {
    auto graph = residual();
    graph.set_outputs({tensor(graph, "b")});
    EXPECT_EQ(graph.remove_unused(), 2u);
    EXPECT_EQ(order(graph), (Names{"A", "B"}));
    EXPECT_FALSE(graph.find_tensor("y"));
    expect_valid(graph);
}

TEST(Graph, OnlyWhatWasEditedIsMarked) {
    auto graph = residual();
    EXPECT_FALSE(graph.edited());
    graph.rename(tensor(graph, "b"), "bb");
    EXPECT_TRUE(graph.edited());
    EXPECT_TRUE(graph.op(find(graph, "B")).source.edited);
    EXPECT_TRUE(graph.op(find(graph, "C")).source.edited);
    EXPECT_FALSE(graph.op(find(graph, "A")).source.edited);
    EXPECT_FALSE(graph.op(find(graph, "Sum")).source.edited);
}

// An If whose branches read tensor `a`.
OpId add_if(Graph& graph, const std::string& captured) {
    auto op = spec("If", {graph.inputs()[0]}, {new_tensor(graph, "if_out")}, "If");
    op.attributes.push_back({"then_branch", branch(captured), {}, {}});
    op.attributes.push_back({"else_branch", branch(captured), {}, {}});
    return graph.append(std::move(op));
}

TEST(Subgraphs, CapturesAreUses) {
    auto graph = residual();
    const auto id = add_if(graph, "a");
    EXPECT_EQ(graph.op(id).captures, std::vector{tensor(graph, "a")});
    EXPECT_THAT(graph.consumers(find(graph, "A")), ::testing::Contains(id));
    expect_valid(graph);
}

TEST(Subgraphs, RenameReachesInside) {
    auto graph = residual();
    const auto id = add_if(graph, "a");
    graph.mark_read();
    graph.rename(tensor(graph, "a"), "renamed");
    for (const auto& subgraph : graph.op(id).subgraphs()) {
        EXPECT_TRUE(subgraph->find_tensor("renamed"));
        EXPECT_FALSE(subgraph->find_tensor("a"));
    }
    EXPECT_THROW(graph.rename(tensor(graph, "renamed"), "result"), Error);
    expect_valid(graph);
}

TEST(Subgraphs, InsertOnReachesInside) {
    auto graph = residual();
    const auto id = add_if(graph, "a");
    const auto tap = graph.insert_on(tensor(graph, "a"), spec("Tap", {}, {}, "Tap"));
    const auto made = graph.op(tap).outputs[0];
    EXPECT_EQ(graph.op(id).captures, std::vector{made});
    EXPECT_TRUE(graph.op(id).subgraphs()[0]->find_tensor(graph.tensor(made).name));
    expect_valid(graph);
}

TEST(Subgraphs, MustFindWhatTheyCapture) {
    auto graph = residual();
    const auto before = picture(graph);
    auto op = spec("If", {graph.inputs()[0]}, {}, "If");
    op.attributes.push_back({"then_branch", branch("nowhere"), {}, {}});
    EXPECT_THROW(graph.append(std::move(op)), Error);
    EXPECT_EQ(picture(graph), before);
}

TEST(Subgraphs, CloneIsDeep) {
    auto graph = residual();
    add_if(graph, "a");
    auto copy = graph.clone();
    copy.rename(tensor(copy, "a"), "other");
    EXPECT_TRUE(graph.op(find(graph, "If")).subgraphs()[0]->find_tensor("a"));
    expect_valid(graph);
    expect_valid(copy);
}

// Random edits: each either works and leaves a valid graph, or throws and leaves it as it was.
TEST(Graph, AnyEditKeepsItValidOrChangesNothing) {
    std::uint64_t state = 42;
    const auto random = [&](std::size_t below) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<std::size_t>(state >> 33) % below;
    };
    std::size_t refused = 0;
    std::size_t done = 0;
    for (int round = 0; round < 60; ++round) {
        auto graph = residual();
        add_if(graph, "a");
        for (int step = 0; step < 40; ++step) {
            const auto tensors = graph.tensors();
            std::vector<OpId> ops;
            for (const auto id : graph.ops()) {
                ops.push_back(id);
            }
            if (ops.empty()) {
                break;
            }
            const auto some_tensor = tensors[random(tensors.size())];
            const auto other_tensor = tensors[random(tensors.size())];
            const auto some_op = ops[random(ops.size())];
            const auto before = picture(graph);
            try {
                switch (random(9)) {
                    case 0:
                        graph.insert_on(some_tensor, spec("Tap", {}));
                        break;
                    case 1:
                        graph.remove(some_op);
                        break;
                    case 2:
                        graph.replace(some_op, spec("New", {some_tensor}));
                        break;
                    case 3:
                        graph.set_input(some_op, random(3), some_tensor);
                        break;
                    case 4:
                        graph.replace_uses(some_tensor, other_tensor);
                        break;
                    case 5:
                        graph.rename(some_tensor, fmt::format("n{}", random(30)));
                        break;
                    case 6:
                        graph.set_outputs({some_tensor, other_tensor});
                        break;
                    case 7:
                        graph.remove(some_op, {{some_tensor, other_tensor}});
                        break;
                    case 8:
                        graph.insert_after(some_op, spec("Side", {some_tensor, other_tensor}));
                        break;
                    default:
                        break;
                }
                ++done;
            } catch (const Error& e) {
                ++refused;
                ASSERT_EQ(picture(graph), before) << e.what();
            }
            const auto problems = graph.verify();
            ASSERT_TRUE(problems.empty())
                << problems[0].where << ": " << problems[0].what << "\nbefore\n"
                << before << "\nafter\n"
                << picture(graph);
        }
    }
    EXPECT_GT(done, 500u);
    EXPECT_GT(refused, 100u);
}

TEST(Graph, ManyInsertionsAtOnePlaceKeepTheOrder) {
    auto graph = chain(1);
    const auto at = find(graph, "op0");
    for (int i = 0; i < 20000; ++i) {
        graph.insert_after(at, spec("Side", {tensor(graph, "t1")}, {new_tensor(graph)}));
    }
    EXPECT_EQ(graph.op_count(), 20001u);
    expect_valid(graph);
}

TEST(Graph, ATensorWithManyReadersIsNothingSpecial) {
    Graph graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32));
    std::vector<OpId> ops;
    for (int i = 0; i < 100000; ++i) {
        ops.push_back(graph.append(spec("Relu", {x}, {new_tensor(graph)})));
    }
    for (const auto id : ops) {
        graph.remove(id);
    }
    EXPECT_EQ(graph.op_count(), 0u);
    EXPECT_TRUE(graph.tensor(x).uses.empty());
}

}  // namespace
}  // namespace trocar
