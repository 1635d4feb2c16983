#include "trocar/weights.h"

#include <gtest/gtest.h>

#include "graph/test_graphs.h"
#include "trocar/error.h"

namespace trocar {
namespace {

Constant number(float value) {
    return Constant::of(DType::f32, {1}, std::vector<float>{value});
}

// y = x + w + c: `w` is a constant of the graph, `c` is written by an op.
Model sum() {
    Model model;
    model.dialect = "onnx";
    auto& graph = model.graph;
    const auto x = graph.add_input("x", Type::tensor(DType::f32));
    const auto w = graph.add_constant("w", number(2));
    const auto c = testing::new_tensor(graph, "c");
    const auto xw = testing::new_tensor(graph, "xw");
    const auto y = testing::new_tensor(graph, "y");
    const auto maker = graph.append(testing::spec("Constant", {}, {c}));
    graph.set_attribute(maker, "value", number(3));
    graph.append(testing::spec("Add", {x, w}, {xw}));
    graph.append(testing::spec("Add", {xw, c}, {y}));
    graph.set_outputs({y});
    return model;
}

NamedValue named(const char* name, const Constant& value) {
    return {name, Value::of(value)};
}

float first(const Model& model, const char* name) {
    for (const auto& one : weights(model)) {
        if (one.name == name) {
            return one.value.as<float>()[0];
        }
    }
    return -1;
}

TEST(Weights, AreTheConstantsOfTheGraphAndOfItsConstantOps) {
    const auto model = sum();
    EXPECT_EQ(weights(model).size(), 2U);
    EXPECT_EQ(first(model, "w"), 2);
    EXPECT_EQ(first(model, "c"), 3);
}

TEST(Weights, AreReplacedByNameAndOutliveTheirValues) {
    auto model = sum();
    set_weights(model, std::vector{named("c", number(5)), named("w", number(4))});
    EXPECT_EQ(first(model, "w"), 4);
    EXPECT_EQ(first(model, "c"), 5);
}

TEST(Weights, ThatDoNotFitChangeNothing) {
    auto model = sum();
    const auto longer = Constant::of(DType::f32, {2}, std::vector<float>{1, 2});
    const auto whole = Constant::of(DType::i32, {1}, std::vector<std::int32_t>{1});
    for (const auto& wrong : {named("c", longer), named("c", whole), named("x", number(1)),
                              named("nobody", number(1))}) {
        EXPECT_THROW(set_weights(model, std::vector{named("w", number(9)), wrong}), Error);
        EXPECT_EQ(first(model, "w"), 2);
    }
}

}  // namespace
}  // namespace trocar
