#include <gtest/gtest.h>

#include <algorithm>

#include "run/test_values.h"
#include "trocar/session.h"

namespace trocar {
namespace {

using namespace testing;
using Names = std::vector<std::string>;

// The names of the ops of each segment.
std::vector<Names> parts(const Model& model, const Plan& plan) {
    std::vector<Names> all;
    for (const auto& segment : plan.segments) {
        auto& names = all.emplace_back();
        for (const auto id : segment.ops) {
            names.push_back(model.graph.op(id).name);
        }
    }
    return all;
}

Plan cut_at(const Model& model, const Names& names) {
    return make_plan(model, [&](OpId id) {
        return CutAt{.after = std::find(names.begin(), names.end(), model.graph.op(id).name) !=
                              names.end()};
    });
}

Names names_of(const Model& model, const std::vector<TensorId>& ids) {
    Names names;
    for (const auto id : ids) {
        names.push_back(model.graph.tensor(id).name);
    }
    return names;
}

TEST(Plan, NoCutIsOneSegment) {
    const auto model = model_of(chain(5));
    EXPECT_EQ(cut_at(model, {}).segments.size(), 1u);
}

TEST(Plan, CutEndsTheSegmentAfterTheOp) {
    const auto model = model_of(chain(5));
    EXPECT_EQ(parts(model, cut_at(model, {"op1"})),
              (std::vector<Names>{{"op0", "op1"}, {"op2", "op3", "op4"}}));
}

TEST(Plan, CutAtTheLastOpAddsNoEmptySegment) {
    const auto model = model_of(chain(3));
    EXPECT_EQ(parts(model, cut_at(model, {"op2"})), (std::vector<Names>{{"op0", "op1", "op2"}}));
}

TEST(Plan, ResidualBranchCrossesTheCut) {
    const auto model = model_of(residual());
    const auto plan = cut_at(model, {"B"});
    EXPECT_EQ(parts(model, plan), (std::vector<Names>{{"A", "B"}, {"C", "Sum"}}));
    EXPECT_EQ(names_of(model, plan.segments[0].outputs), (Names{"a", "b"}));
    EXPECT_EQ(names_of(model, plan.segments[1].inputs), (Names{"b", "a"}));
    EXPECT_EQ(names_of(model, plan.segments[1].dead), (Names{"b", "a"}));
}

TEST(Plan, WhatDoesNotDependOnTheCutIsNotPartedByIt) {
    // x → left1 → left2 ┐
    //   → right1 → right2 → join; cut at left1, which stands between the rights.
    Graph graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32));
    const auto l1 = new_tensor(graph, "l1");
    const auto l2 = new_tensor(graph, "l2");
    const auto r1 = new_tensor(graph, "r1");
    const auto r2 = new_tensor(graph, "r2");
    const auto y = new_tensor(graph, "y");
    graph.append(spec("Conv", {x}, {r1}, "right1"));
    graph.append(spec("Conv", {x}, {l1}, "left1"));
    graph.append(spec("Relu", {r1}, {r2}, "right2"));
    graph.append(spec("Relu", {l1}, {l2}, "left2"));
    graph.append(spec("Add", {l2, r2}, {y}, "join"));
    graph.set_outputs({y});
    const auto model = model_of(std::move(graph));
    EXPECT_EQ(parts(model, cut_at(model, {"left1"})),
              (std::vector<Names>{{"right1", "left1", "right2"}, {"left2", "join"}}));
}

TEST(Plan, CutAllGivesOneOpPerSegment) {
    const auto model = model_of(residual());
    const auto plan = make_plan(model, [](OpId) { return CutAt{.after = true}; });
    EXPECT_EQ(parts(model, plan), (std::vector<Names>{{"A"}, {"B"}, {"C"}, {"Sum"}}));
}

TEST(Plan, ConstantChainsFollowTheirConsumers) {
    Graph graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32));
    const auto w = graph.add_constant("w", Constant::of<float>(DType::f32, {1}, {2.0F}));
    const auto w1 = new_tensor(graph, "w1");
    const auto w2 = new_tensor(graph, "w2");
    const auto c = new_tensor(graph, "c");
    const auto y = new_tensor(graph, "y");
    graph.append(spec("Identity", {w}, {w1}, "I1"));
    graph.append(spec("Identity", {w1}, {w2}, "I2"));
    auto constant = spec("Constant", {}, {c}, "K");
    constant.attributes.push_back({"value_float", 3.0F, {}, {}});
    graph.append(std::move(constant));
    graph.append(spec("Sum", {x, w2, c}, {y}, "S"));
    graph.set_outputs({y, w2});
    const auto model = model_of(std::move(graph));
    const auto plan = make_plan(model, [](OpId) { return CutAt{.after = true}; });
    EXPECT_EQ(parts(model, plan), std::vector<Names>{{"S"}});
    EXPECT_EQ(plan.folded.size(), 3u);
    EXPECT_EQ(names_of(model, plan.segments[0].inputs), Names{"x"});
    const auto part =
        extract_ops(model, plan.segments[0].ops, plan.segments[0].outputs, plan.constants);
    EXPECT_TRUE(part.graph.verify().empty());
    ASSERT_TRUE(part.graph.find_tensor("w2"));
    EXPECT_TRUE(part.graph.tensor(*part.graph.find_tensor("w2")).constant);
}

TEST(Plan, CapturedTensorsAreInputs) {
    auto graph = residual();
    auto op = spec("If", {graph.inputs()[0]}, {new_tensor(graph, "z")}, "If");
    op.attributes.push_back({"then_branch", branch("b"), {}, {}});
    graph.append(std::move(op));
    graph.set_outputs({*graph.find_tensor("z")});
    const auto model = model_of(std::move(graph));
    const auto plan = make_plan(model, [](OpId) { return CutAt{.after = true}; });
    EXPECT_EQ(names_of(model, plan.segments.back().inputs), (Names{"x", "b"}));
}

TEST(Plan, OutputsNobodyReadAreSeenWhenCutOut) {
    auto graph = chain(1);
    graph.append(spec("Neg", {*graph.find_tensor("t0")}, {new_tensor(graph, "unread")}, "Unread"));
    const auto model = model_of(std::move(graph));
    const auto plan = make_plan(model, [](OpId) { return CutAt{.after = true}; });
    EXPECT_EQ(parts(model, plan), (std::vector<Names>{{"op0"}, {"Unread"}}));
    EXPECT_EQ(names_of(model, plan.segments[1].dead), (Names{"unread", "t0"}));
}

TEST(Plan, DefaultsOfInputsAreValuesFromVersion4On) {
    Graph graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32));
    graph.set_constant(x, Constant::of<float>(DType::f32, {1}, {1.0F}));
    const auto y = new_tensor(graph, "y");
    graph.append(spec("Neg", {x}, {y}));
    graph.set_outputs({y});
    auto model = model_of(std::move(graph));
    EXPECT_EQ(cut_at(model, {}).segments[0].inputs.size(), 1u);
    model.ir_version = 3;
    EXPECT_TRUE(cut_at(model, {}).segments[0].inputs.empty());
}

}  // namespace
}  // namespace trocar
