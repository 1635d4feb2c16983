#include "trocar/parts.h"

#include <gtest/gtest.h>

#include "graph/test_graphs.h"

namespace trocar {
namespace {

// a → b → c, and a residual from a to the last: add reads both.
Model residual() {
    Model model;
    model.format = model.dialect = "onnx";
    model.opsets = {{"", 17}};
    model.ir_version = 8;
    auto& graph = model.graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32, Shape{2}));
    const auto make = [&](const char* type, std::vector<TensorId> inputs, const char* name,
                          const char* module) {
        const auto out = graph.add_tensor(std::string(name) + "_out", Type::tensor(DType::f32));
        graph.append({.type = type,
                      .name = name,
                      .inputs = std::move(inputs),
                      .outputs = {out},
                      .origin = {.module = module, .source = ""}});
        return out;
    };
    const auto a = make("Relu", {x}, "a", "m1.one");
    const auto side = make("Neg", {x}, "side", "m2");
    const auto b = make("Exp", {a}, "b", "m1.two");
    const auto c = make("Add", {b, a}, "c", "m1");
    const auto d = make("Mul", {c, side}, "d", "m2");
    graph.set_outputs({d});
    return model;
}

std::vector<std::string> names(const std::vector<Part>& parts) {
    std::vector<std::string> all;
    for (const auto& part : parts) {
        all.push_back(part.name);
    }
    return all;
}

using Names = std::vector<std::string>;

TEST(Parts, ByOpEachOneStandsAlone) {
    const auto model = residual();
    const Chain chain(model);
    EXPECT_EQ(names(make_parts(chain, {})), (Names{"a", "side", "b", "c", "d"}));
}

TEST(Parts, OpsOfAModuleStandTogether) {
    const auto model = residual();
    const Chain chain(model, Chain::Order::modules, 1);
    const auto parts = make_parts(chain, {.by = PartsOptions::By::module});
    EXPECT_EQ(names(parts), (Names{"m1", "m2"}));
    EXPECT_EQ(parts[0].ops.size(), 3u);
    const auto& graph = model.graph;
    ASSERT_EQ(parts[1].inputs.size(), 2u);
    EXPECT_EQ(graph.tensor(parts[0].outputs[0]).name, "c_out");
    EXPECT_TRUE(parts[0].dead.empty());  // x is read by the other module
}

TEST(Parts, EndWhereTheyAreCut) {
    const auto model = residual();
    const Chain chain(model);
    const auto parts = make_parts(chain, {.by = PartsOptions::By::segment, .cut = op("Exp")});
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0].outputs.size(), 3u);  // a, side and b are all read later
    EXPECT_EQ(parts[1].inputs.size(), 3u);
    EXPECT_EQ(parts[1].type, "Add…Mul");
}

TEST(Parts, WhatNobodyReadsLaterIsDead) {
    const auto model = residual();
    const Chain chain(model);
    const auto parts = make_parts(chain, {});
    EXPECT_EQ(model.graph.tensor(parts[3].dead.at(0)).name, "b_out");
    EXPECT_EQ(parts[3].dead.size(), 2u);
}

TEST(Parts, OfAnotherModelLieBetweenTheSameTensors) {
    const auto model = residual();
    auto other = clone(model);
    other.graph.rename(*other.graph.find_tensor("b_out"), "renamed");
    const Chain chain(model);
    const auto parts = make_parts(chain, {.may_end = shared_places(chain, other)});
    EXPECT_EQ(names(parts), (Names{"a", "side", "c", "d"}));
    const auto part = matching_part(chain, parts[2], other, {});
    EXPECT_EQ(part.graph.op_count(), 2u);
    EXPECT_ANY_THROW(matching_part(chain, chain.part(2, 2), other, {}));
}

}  // namespace
}  // namespace trocar
