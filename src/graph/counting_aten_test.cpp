#include <gtest/gtest.h>

#include "trocar/counting.h"

namespace trocar {
namespace {

using Names = std::vector<std::string>;

// An op of the dialect "aten": the arguments that its inputs are, with their shapes; {-1} stands
// for an input left out.
class AtenCase {
public:
    AtenCase(std::string type, std::vector<std::pair<std::string, Shape>> in,
             std::vector<Shape> out, std::string domain = "") {
        op_.type = std::move(type);
        op_.domain = std::move(domain);
        Names names;
        for (auto& [name, shape] : in) {
            const bool there = shape != Shape{-1};
            names.push_back(name);
            op_.inputs.push_back(there ? TensorId{0} : TensorId::none);
            facts_.inputs.push_back(
                {DType::f32, there ? std::optional(shape) : std::nullopt, nullptr, there});
        }
        with("inputs", names);
        for (auto& shape : out) {
            facts_.outputs.push_back({DType::f32, shape, nullptr, true});
        }
        facts_.dialect = "aten";
    }
    AtenCase& with(std::string name, Attribute::Value value) {
        op_.attributes.push_back(
            {.name = std::move(name), .value = std::move(value), .reference = {}, .source = {}});
        return *this;
    }
    OpFacts& facts() {
        facts_.op = &op_;
        return facts_;
    }
    OpCount count() { return trocar::count(facts()); }
    const Op& op() const { return op_; }

private:
    Op op_;
    OpFacts facts_;
};

void expect_count(const OpCount& c, std::uint64_t macs, std::uint64_t other) {
    EXPECT_EQ(c.counted, Counted::arithmetic) << c.why;
    EXPECT_EQ(c.macs, macs);
    EXPECT_EQ(c.other_flops, other);
}

TEST(CountingAten, Convolutions) {
    const Shape x{1, 8, 10, 10};
    expect_count(
        AtenCase("conv2d", {{"input", x}, {"weight", {4, 8, 3, 3}}, {"bias", {4}}}, {{1, 4, 8, 8}})
            .count(),
        4 * 64 * 72, 4 * 64);
    expect_count(
        AtenCase("conv2d", {{"input", x}, {"weight", {8, 1, 3, 3}}}, {{1, 8, 8, 8}}).count(),
        8 * 64 * 9, 0);
    expect_count(AtenCase("convolution", {{"input", x}, {"weight", {8, 4, 2, 2}}, {"bias", {-1}}},
                          {{1, 4, 20, 20}})
                     .with("transposed", std::int64_t{1})
                     .count(),
                 800 * 16, 0);
}

TEST(CountingAten, Products) {
    expect_count(AtenCase("linear", {{"input", {2, 6, 8}}, {"weight", {24, 8}}, {"bias", {24}}},
                          {{2, 6, 24}})
                     .count(),
                 2 * 6 * 24 * 8, 2 * 6 * 24);
    expect_count(
        AtenCase("addmm", {{"self", {5}}, {"mat1", {2, 8}}, {"mat2", {8, 5}}}, {{2, 5}}).count(),
        80, 10);
    expect_count(AtenCase("bmm", {{"self", {3, 2, 8}}, {"mat2", {3, 8, 5}}}, {{3, 2, 5}}).count(),
                 240, 0);
    expect_count(AtenCase("einsum", {{"tensors[0]", {2, 3}}, {"tensors[1]", {3, 4}}}, {{2, 4}})
                     .with("equation", std::string("ij, jk -> ik"))
                     .count(),
                 24, 0);
}

TEST(CountingAten, AttentionIsTwoProducts) {
    const Shape heads{2, 4, 6, 8};
    AtenCase attention("scaled_dot_product_attention",
                       {{"query", heads}, {"key", heads}, {"value", heads}}, {heads});
    expect_count(attention.count(), 2ULL * 4 * 6 * 6 * 16, 2 * 4 * 6 * 6 * 6);
}

TEST(CountingAten, InPlaceIsLikeAnyOther) {
    expect_count(AtenCase("relu_", {{"self", {4}}}, {{4}}).count(), 0, 4);
    expect_count(AtenCase("max_pool2d", {{"self", {1, 1, 4, 4}}}, {{1, 1, 2, 2}})
                     .with("kernel_size", std::vector<std::int64_t>{2})
                     .count(),
                 0, 4 * 3);
    EXPECT_EQ(AtenCase("view", {{"self", {4}}}, {{2, 2}}).count().counted, Counted::movement);
    EXPECT_EQ(AtenCase("mul", {}, {{}}, "_operator").count().counted, Counted::movement);
    EXPECT_EQ(AtenCase("relu", {{"self", {4}}}, {{4}}, "mylib").count().counted, Counted::unknown);
    EXPECT_EQ(AtenCase("Relu", {{"self", {4}}}, {{4}}).count().counted, Counted::unknown);
}

TEST(CountingAten, DialectsAreApart) {
    AtenCase relu("relu", {{"self", {4}}}, {{4}});
    relu.facts().dialect = "onnx";
    EXPECT_EQ(count(relu.facts()).counted, Counted::unknown);
    AtenCase conv("conv2d", {{"input", {1, 1, 3, 3}}, {"weight", {1, 1, 3, 3}}}, {{1, 1, 1, 1}});
    EXPECT_TRUE(weight_axes(conv.op(), 1, 4, "aten"));
    EXPECT_FALSE(weight_axes(conv.op(), 1, 4));
    AtenCase turned("t", {{"self", {2, 3}}}, {{3, 2}});
    EXPECT_EQ(passing(turned.op(), "aten"), Passing::transposed);
    EXPECT_EQ(passing(turned.op()), Passing::no);
}

TEST(CountingAten, TheFileSaysWhatAConstantIs) {
    Tensor tensor;
    tensor.constant = Constant::of(DType::f32, {2, 2}, std::vector<float>(4));
    EXPECT_FALSE(declared_role(tensor));
    tensor.metadata = {{"kind", "parameter"}};
    EXPECT_EQ(declared_role(tensor), Role::weight);
    tensor.metadata = {{"kind", "temporary buffer"}};
    EXPECT_EQ(declared_role(tensor), Role::buffer);
}

}  // namespace
}  // namespace trocar
