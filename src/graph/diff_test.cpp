#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "graph/test_graphs.h"
#include "trocar/error.h"
#include "trocar/graph_diff.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::new_tensor;
using testing::spec;

// Layers of MatMul, Add, Relu; every second one has a way around it. Names begin with `prefix`.
Model net(std::size_t layers, const std::string& prefix,
          std::size_t without = static_cast<std::size_t>(-1)) {
    Model model;
    model.dialect = "onnx";
    model.format = "onnx";
    model.opsets = {{"", 17}};
    auto& graph = model.graph;
    auto at = graph.add_input("x", Type::tensor(DType::f32, Shape{1, 2}));
    for (std::size_t i = 0; i < layers; ++i) {
        if (i == without) {
            continue;
        }
        const auto name = [&](const char* what) { return fmt::format("{}{}{}", prefix, what, i); };
        const auto number = static_cast<float>(i);
        const auto w = graph.add_constant(
            name("w"), Constant::of(DType::f32, {2, 2}, std::vector<float>{1, number, 2, 3}));
        const auto b = graph.add_constant(
            name("b"), Constant::of(DType::f32, {2}, std::vector<float>{number, 1}));
        const auto product = new_tensor(graph, name("p"));
        const auto sum = new_tensor(graph, name("s"));
        const auto relu = new_tensor(graph, name("r"));
        graph.append(spec("MatMul", {at, w}, {product}, name("MatMul")));
        graph.append(spec("Add", {product, b}, {sum}, name("Add")));
        graph.append(spec("Relu", {sum}, {relu}, name("Relu")));
        if (i % 2 == 1) {
            const auto joined = new_tensor(graph, name("j"));
            graph.append(spec("Add", {relu, at}, {joined}, name("Join")));
            at = joined;
        } else {
            at = relu;
        }
    }
    graph.rename(at, "y");
    graph.set_outputs({at});
    graph.mark_read();
    return model;
}

TEST(GraphDiff, AModelIsTheSameAsItself) {
    const auto model = net(6, "");
    const auto diff = diff_models(model, clone(model));
    EXPECT_TRUE(diff.same({}));
    EXPECT_EQ(diff.matched, model.graph.op_count());
    EXPECT_EQ(diff.renamed_ops, 0U);
}

TEST(GraphDiff, OtherNamesMatchFully) {
    const auto a = net(8, "");
    const auto b = net(8, "model/");
    const auto diff = diff_models(a, b);
    EXPECT_TRUE(diff.same({}));
    EXPECT_EQ(diff.matched, a.graph.op_count());
    EXPECT_EQ(diff.renamed_ops, a.graph.op_count());
    EXPECT_FALSE(diff.same({.names = true}));
}

TEST(GraphDiff, ALayerLessIsThatLayer) {
    const auto a = net(8, "");
    for (const auto* prefix : {"", "other/"}) {
        const auto b = net(8, prefix, 4);
        const auto diff = diff_models(a, b);
        EXPECT_EQ(diff.matched, b.graph.op_count()) << prefix;
        EXPECT_THAT(diff.added, IsEmpty());
        ASSERT_EQ(diff.removed.size(), 3U);
        EXPECT_EQ(diff.removed[0].op, "MatMul4");
        // Who read it reads what it read now.
        ASSERT_FALSE(diff.changed.empty());
        EXPECT_EQ(diff.changed[0].op, "MatMul5");
        EXPECT_THAT(diff.changed[0].what[0], HasSubstr("input 0: 'Relu4' → "));
        EXPECT_THAT(diff.constants, IsEmpty());
        // The other way round it was added.
        const auto back = diff_models(b, a);
        EXPECT_EQ(back.added.size(), 3U);
        EXPECT_THAT(back.removed, IsEmpty());
    }
}

TEST(GraphDiff, AnotherTypeAndOtherAttributes) {
    const auto a = net(5, "");
    auto b = net(5, "n/");
    const auto relu = *b.graph.find_op("n/Relu2");
    b.graph.replace(relu, spec("LeakyRelu", b.graph.op(relu).inputs, {}, "n/Leaky2"));
    const auto leaky = *b.graph.find_op("n/Leaky2");
    b.graph.set_attribute(leaky, "alpha", 0.5F);
    const auto diff = diff_models(a, b);
    EXPECT_THAT(diff.removed, IsEmpty());
    EXPECT_THAT(diff.added, IsEmpty());
    ASSERT_EQ(diff.changed.size(), 1U);
    EXPECT_THAT(diff.changed[0].what, ElementsAre("type: Relu → LeakyRelu", "alpha: none → 0.5"));
    auto c = clone(b);
    c.graph.set_attribute(leaky, "alpha", 0.25F);
    const auto later = diff_models(b, c);
    ASSERT_EQ(later.changed.size(), 1U);
    EXPECT_THAT(later.changed[0].what, ElementsAre("alpha: 0.5 → 0.25"));
}

TEST(GraphDiff, OtherWeightsWithTheirDistance) {
    const auto a = net(4, "");
    auto b = clone(a);
    b.graph.set_constant(*b.graph.find_tensor("w2"),
                         Constant::of(DType::f32, {2, 2}, std::vector<float>{1, 2.5F, 2, 3}));
    const auto diff = diff_models(a, b);
    EXPECT_THAT(diff.changed, IsEmpty());
    ASSERT_EQ(diff.constants.size(), 1U);
    EXPECT_EQ(diff.constants[0].tensor, "w2");
    EXPECT_EQ(diff.constants[0].changed, 1U);
    EXPECT_DOUBLE_EQ(diff.constants[0].difference->max_abs, 0.5);
    GraphDiffOptions loose;
    loose.tolerance.atol = 1;
    EXPECT_TRUE(diff_models(a, b, loose).same(loose));
    GraphDiffOptions blind;
    blind.constants = false;
    EXPECT_TRUE(diff_models(a, b, blind).same(blind));
}

TEST(GraphDiff, AllWeightsChangedAndAllRenamed) {
    const auto a = net(9, "");
    auto b = net(9, "q/");
    for (std::size_t i = 0; i < 9; ++i) {
        b.graph.set_constant(*b.graph.find_tensor(fmt::format("q/w{}", i)),
                             Constant::of(DType::f32, {2, 2}, std::vector<float>{9, 8, 7, 6}));
    }
    const auto diff = diff_models(a, b);
    EXPECT_EQ(diff.matched, a.graph.op_count());
    EXPECT_THAT(diff.changed, IsEmpty());
    EXPECT_EQ(diff.constants.size(), 9U);
}

TEST(GraphDiff, RewiredInputs) {
    const auto a = net(4, "");
    auto b = clone(a);
    const auto join = *b.graph.find_op("Join3");
    b.graph.set_input(join, 1, *b.graph.find_tensor("r0"));
    const auto diff = diff_models(a, b);
    ASSERT_EQ(diff.changed.size(), 1U);
    EXPECT_THAT(diff.changed[0].what, ElementsAre("input 1: 'Relu2' → 'Relu0'"));
}

TEST(GraphDiff, TypesInterfaceAndMetadata) {
    const auto a = net(3, "");
    auto b = clone(a);
    b.graph.set_type(*b.graph.find_tensor("p1"), Type::tensor(DType::f16));
    b.graph.rename(*b.graph.find_tensor("x"), "image");
    b.graph.set_outputs({*b.graph.find_tensor("y"), *b.graph.find_tensor("r1")});
    b.producer = "somebody";
    b.opsets = {{"", 18}};
    b.metadata = {{"author", "me"}};
    const auto diff = diff_models(a, b);
    EXPECT_EQ(diff.matched, a.graph.op_count());
    EXPECT_THAT(diff.changed, IsEmpty());
    ASSERT_EQ(diff.types.size(), 1U);
    EXPECT_EQ(diff.types[0].what, "p1");
    ASSERT_EQ(diff.interface.size(), 2U);
    EXPECT_EQ(diff.interface[0].a, "x: f32[1,2]");
    EXPECT_EQ(diff.interface[0].b, "image: f32[1,2]");
    EXPECT_EQ(diff.interface[1].a, "");
    EXPECT_EQ(diff.metadata.size(), 3U);
}

TEST(GraphDiff, TwinsAreMatchedOneByOne) {
    // The same computation four times over, and once more in another order.
    const auto twins = [](const std::string& prefix) {
        Model model;
        model.dialect = "onnx";
        auto& graph = model.graph;
        const auto x = graph.add_input("x", Type::tensor(DType::f32));
        std::vector<TensorId> ends;
        for (int i = 0; i < 4; ++i) {
            const auto middle = new_tensor(graph, fmt::format("{}m{}", prefix, i));
            const auto end = new_tensor(graph, fmt::format("{}e{}", prefix, i));
            graph.append(spec("Relu", {x}, {middle}, fmt::format("{}Relu{}", prefix, i)));
            graph.append(spec("Neg", {middle}, {end}, fmt::format("{}Neg{}", prefix, i)));
            ends.push_back(end);
        }
        const auto y = new_tensor(graph, "y");
        graph.append(spec("Sum", ends, {y}, prefix + "Sum"));
        graph.set_outputs({y});
        return model;
    };
    const auto a = twins("");
    const auto b = twins("z");
    const auto diff = diff_models(a, b);
    EXPECT_TRUE(diff.same({}));
    EXPECT_EQ(diff.matched, 9U);
}

TEST(GraphDiff, BodiesAreLookedInto) {
    const auto model = [](float number) {
        Model made;
        made.dialect = "onnx";
        auto& graph = made.graph;
        const auto c = graph.add_input("c", Type::tensor(DType::boolean, Shape{}));
        const auto y = new_tensor(graph, "y");
        const auto body = [&](float x) {
            auto inner = std::make_shared<Graph>();
            const auto v =
                inner->add_constant("v", Constant::of(DType::f32, {1}, std::vector<float>{x}));
            const auto out = inner->add_tensor("out", Type::tensor(DType::f32));
            inner->append(spec("Neg", {v}, {out}, "inner"));
            inner->set_outputs({out});
            return inner;
        };
        auto choice = spec("If", {c}, {y}, "choice");
        choice.attributes = {{"then_branch", body(number), {}, {}},
                             {"else_branch", body(2), {}, {}}};
        graph.append(std::move(choice));
        graph.set_outputs({y});
        return made;
    };
    EXPECT_TRUE(diff_models(model(1), model(1)).same({}));
    const auto diff = diff_models(model(1), model(5));
    ASSERT_EQ(diff.constants.size(), 1U);
    EXPECT_EQ(diff.constants[0].scope, "then_branch of 'choice'");
}

TEST(GraphDiff, OtherDialectsAreRefused) {
    const auto a = net(1, "");
    auto b = net(1, "");
    b.dialect = "tflite";
    EXPECT_THROW(diff_models(a, b), Error);
}

TEST(GraphDiff, LongGraphsTakeLinearTime) {
    // Each of them has a layer that the other does not have.
    const auto a = net(20'000, "", 100);
    const auto b = net(20'000, "n", 9'999);
    const auto start = std::chrono::steady_clock::now();
    const auto diff = diff_models(a, b);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(diff.removed.size(), 4U);
    EXPECT_EQ(diff.added.size(), 3U);
    EXPECT_LT(taken.count(), 30);  // seconds, also under sanitizers
}

// Exchanges the inputs of the joins.
Model exchanged(Model model, const char* type) {
    auto& graph = model.graph;
    const auto range = graph.ops();
    for (const auto id : std::vector<OpId>(range.begin(), range.end())) {
        if (graph.op(id).name.find("Join") != std::string::npos) {
            OpSpec turned = static_cast<const OpSpec&>(graph.op(id));
            turned.type = type;
            std::swap(turned.inputs[0], turned.inputs[1]);
            turned.outputs.clear();
            graph.replace(id, std::move(turned));
        }
    }
    return model;
}

TEST(GraphDiff, TheOrderOfTermsIsNoDifference) {
    const auto a = net(8, "");
    EXPECT_TRUE(diff_models(a, exchanged(net(8, ""), "Add")).same({}));
    EXPECT_TRUE(diff_models(a, exchanged(net(8, "other_"), "Add")).same({}));
}

TEST(GraphDiff, TheOrderOfOtherInputsIsAndNothingElse) {
    const auto a = exchanged(exchanged(net(8, ""), "Sub"), "Sub");
    const auto diff = diff_models(a, exchanged(net(8, ""), "Sub"));
    EXPECT_EQ(diff.matched, a.graph.op_count());
    EXPECT_THAT(diff.constants, IsEmpty());
    ASSERT_EQ(diff.changed.size(), 4U);
    for (const auto& one : diff.changed) {
        EXPECT_THAT(one.op, HasSubstr("Join"));
        EXPECT_EQ(one.what.size(), 2U);
    }
}

TEST(GraphDiff, AnAttributeThatSaysWhatHoldsAnywayIsNoDifference) {
    const auto flat = [](std::vector<Attribute> attributes) {
        Model model;
        model.dialect = "onnx";
        model.format = "onnx";
        model.opsets = {{"", 17}};
        const auto x = model.graph.add_input("x", Type::tensor(DType::f32, Shape{1, 2}));
        const auto y = new_tensor(model.graph, "y");
        auto op = spec("Flatten", {x}, {y}, "flat");
        op.attributes = std::move(attributes);
        model.graph.append(std::move(op));
        model.graph.set_outputs({y});
        return model;
    };
    const auto without = flat({});
    EXPECT_TRUE(diff_models(without, flat({{"axis", std::int64_t{1}, {}, {}}})).same({}));
    EXPECT_TRUE(diff_models(flat({{"axis", std::int64_t{1}, {}, {}}}), without).same({}));
    EXPECT_FALSE(diff_models(without, flat({{"axis", std::int64_t{0}, {}, {}}})).same({}));
}

}  // namespace
}  // namespace trocar
