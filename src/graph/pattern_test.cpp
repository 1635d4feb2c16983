#include "trocar/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/test_graphs.h"
#include "trocar/error.h"

namespace trocar {
namespace {

using namespace testing;
using ::testing::ElementsAre;

// Conv → BN → Relu → Conv → Relu → Add, and the first Relu goes to Add too.
Graph network() {
    Graph graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32));
    std::vector<TensorId> t;
    for (int i = 0; i < 6; ++i) {
        t.push_back(new_tensor(graph, "t" + std::to_string(i)));
    }
    graph.append(spec("Conv", {x}, {t[0]}, "conv1"));
    graph.append(spec("BatchNormalization", {t[0]}, {t[1]}, "bn1"));
    graph.append(spec("Relu", {t[1]}, {t[2]}, "relu1"));
    graph.append(spec("Conv", {t[2]}, {t[3]}, "conv2"));
    graph.append(spec("Relu", {t[3]}, {t[4]}, "relu2"));
    graph.append(spec("Add", {t[4], t[2]}, {t[5]}, "add"));
    graph.set_outputs({t[5]});
    return graph;
}

std::vector<std::string> names(const Graph& graph, const std::vector<OpId>& ops) {
    std::vector<std::string> result;
    for (const auto id : ops) {
        result.push_back(id == OpId::none ? "-" : graph.op(id).name);
    }
    return result;
}

TEST(Patterns, FindOpsThatFollowOneAnother) {
    const auto graph = network();
    const auto found = pattern("Conv -> BatchNormalization -> Relu").find(graph);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_THAT(names(graph, found[0].ops), ElementsAre("conv1", "bn1", "relu1"));
}

TEST(Patterns, MayLeaveTermsOutAndNameThem) {
    const auto graph = network();
    const auto found = pattern("c=Conv -> BatchNormalization? -> act=Relu|Clip").find(graph);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_THAT(names(graph, found[1].ops), ElementsAre("conv2", "-", "relu2"));
    EXPECT_EQ(graph.op(found[1]["act"]).name, "relu2");
    EXPECT_EQ(found[1]["nobody"], OpId::none);
    EXPECT_EQ(graph.op(found[1].last()).name, "relu2");
}

TEST(Patterns, MindOtherReadersUnlessTheyAreShared) {
    const auto graph = network();
    EXPECT_TRUE(pattern("Relu -> Conv").find(graph).empty());
    EXPECT_EQ(pattern("Relu -> Conv").shared().find(graph).size(), 1U);
}

TEST(Patterns, Select) {
    const auto graph = network();
    const auto blocks = pattern("c=Conv -> BatchNormalization? -> Relu");
    EXPECT_THAT(names(graph, select(graph, blocks.last())), ElementsAre("relu1", "relu2"));
    EXPECT_THAT(names(graph, select(graph, blocks.named("c"))), ElementsAre("conv1", "conv2"));
    EXPECT_THAT(names(graph, select(graph, blocks.all() & !op("Conv"))),
                ElementsAre("bn1", "relu1", "relu2"));
    EXPECT_THAT(names(graph, select(graph, parse_selector("pattern:'Conv -> Relu'"))),
                ElementsAre("conv2", "relu2"));
    EXPECT_THROW(blocks.named("d"), Error);
}

TEST(Patterns, Rewrite) {
    auto graph = network();
    const auto edits = rewrite(graph, pattern("Conv -> b=BatchNormalization"),
                               [](Graph& g, const Pattern::Match& match) {
                                   g.remove(match["b"]);
                                   return true;
                               });
    EXPECT_EQ(edits, 1U);
    EXPECT_TRUE(graph.verify().empty());
    EXPECT_EQ(pattern("Conv -> Relu").find(graph).size(), 2U);
}

TEST(Patterns, RefuseWhatCannotBeRead) {
    EXPECT_THROW(pattern(""), Error);
    EXPECT_THROW(pattern("Conv ->"), Error);
    EXPECT_THROW(pattern("Conv || Relu"), Error);
    EXPECT_THROW(pattern("Conv? -> Relu?"), Error);
}

TEST(SelectedEdits, RemoveReplaceAndInsert) {
    auto graph = network();
    EXPECT_EQ(graph.remove(op("BatchNormalization")), 1U);
    EXPECT_EQ(graph.replace(op("Relu"), OpSpec{.type = "Sigmoid"}), 2U);
    EXPECT_EQ(graph.insert_after(op("Conv"), OpSpec{.type = "Clip"}), 2U);
    EXPECT_EQ(graph.insert_before(op("Add"), OpSpec{.type = "Neg"}), 1U);
    EXPECT_TRUE(graph.verify().empty());
    EXPECT_EQ(pattern("Conv -> Clip -> Sigmoid").find(graph).size(), 2U);
    EXPECT_EQ(pattern("Clip -> Sigmoid -> Neg -> Add").find(graph).size(), 1U);
    EXPECT_EQ(graph.remove(op("Nothing")), 0U);
}

}  // namespace
}  // namespace trocar
