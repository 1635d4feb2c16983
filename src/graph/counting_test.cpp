#include "trocar/counting.h"

#include <gtest/gtest.h>

namespace trocar {
namespace {

// An op with its tensors, told in one line: shapes in, shapes out; {-1} stands for an input left
// out.
class Case {
public:
    Case(std::string type, std::vector<Shape> in, std::vector<Shape> out, std::string domain = "") {
        op_.type = std::move(type);
        op_.domain = std::move(domain);
        for (Shape& shape : in) {
            bool there = shape != Shape{-1};
            facts_.inputs.push_back(
                {DType::f32, there ? std::optional(shape) : std::nullopt, nullptr, there});
        }
        for (Shape& shape : out) {
            facts_.outputs.push_back({DType::f32, shape, nullptr, true});
        }
    }
    Case& with(std::string name, Attribute::Value value) {
        op_.attributes.push_back(
            {.name = std::move(name), .value = std::move(value), .reference = {}, .source = {}});
        return *this;
    }
    Case& unknown_output() {
        facts_.outputs[0].shape.reset();
        return *this;
    }
    OpCount count() {
        facts_.op = &op_;
        return trocar::count(facts_);
    }
    OpFacts& facts() {
        facts_.op = &op_;
        return facts_;
    }

private:
    Op op_;
    OpFacts facts_;
};

using Ints = std::vector<std::int64_t>;

void expect(OpCount c, std::uint64_t macs, std::uint64_t other) {
    EXPECT_EQ(c.counted, Counted::arithmetic) << c.why;
    EXPECT_EQ(c.macs, macs);
    EXPECT_EQ(c.other_flops, other);
}

TEST(Counting, ConvolutionIsOutputsTimesKernel) {
    // The first layer of ResNet: 64 filters of 3x7x7, stride 2.
    expect(Case("Conv", {{1, 3, 224, 224}, {64, 3, 7, 7}}, {{1, 64, 112, 112}}).count(),
           112ULL * 112 * 64 * 3 * 49, 0);
}

TEST(Counting, BiasIsAnAdditionPerOutputAndNoMac) {
    expect(Case("Conv", {{2, 3, 8, 8}, {4, 3, 3, 3}, {4}}, {{2, 4, 6, 6}}).count(),
           2ULL * 4 * 36 * 27, 2ULL * 4 * 36);
}

TEST(Counting, GroupsAreInTheKernelsShape) {
    expect(Case("Conv", {{1, 32, 10, 10}, {32, 1, 3, 3}}, {{1, 32, 8, 8}})
               .with("group", std::int64_t{32})
               .count(),
           32ULL * 64 * 9, 0);
}

TEST(Counting, TransposedConvolutionIsInputsTimesKernel) {
    expect(Case("ConvTranspose", {{1, 8, 4, 4}, {8, 3, 2, 2}, {3}}, {{1, 3, 8, 8}}).count(),
           8ULL * 16 * 3 * 4, 3ULL * 64);
}

TEST(Counting, DeformableConvolutionReadsBetweenPixels) {
    expect(Case("DeformConv", {{1, 2, 5, 5}, {4, 2, 3, 3}, {1, 18, 3, 3}}, {{1, 4, 3, 3}}).count(),
           4ULL * 9 * 18, 9ULL * 2 * 9 * 9);
}

TEST(Counting, MatrixProductsSumOverTheLastDimensionOfA) {
    expect(Case("MatMul", {{2, 8, 5, 16}, {2, 8, 16, 7}}, {{2, 8, 5, 7}}).count(),
           2ULL * 8 * 5 * 7 * 16, 0);
    expect(Case("MatMul", {{5, 16}, {16}}, {{5}}).count(), 5 * 16, 0);
    expect(Case("MatMul", {{16}, {16}}, {{}}).count(), 16, 0);
}

TEST(Counting, GemmTakesTheInnerSizeFromATransposedOrNot) {
    expect(
        Case("Gemm", {{4, 10}, {20, 10}, {20}}, {{4, 20}}).with("transB", std::int64_t{1}).count(),
        800, 80);
    expect(Case("Gemm", {{10, 4}, {10, 20}}, {{4, 20}}).with("transA", std::int64_t{1}).count(),
           800, 0);
    expect(Case("Gemm", {{4, 10}, {10, 20}, {20}}, {{4, 20}})
               .with("alpha", 0.5F)
               .with("beta", 2.0F)
               .count(),
           800, 80 + 80 + 20);
}

TEST(Counting, IntegerProductsSubtractTheirZeroPoints) {
    expect(Case("MatMulInteger", {{4, 10}, {10, 20}, {}, {20}}, {{4, 20}}).count(), 800, 40 + 200);
    expect(Case("ConvInteger", {{1, 3, 5, 5}, {2, 3, 3, 3}, {}}, {{1, 2, 3, 3}}).count(),
           2 * 9 * 27, 75);
    expect(Case("QLinearMatMul", {{4, 10}, {}, {}, {10, 20}, {}, {}, {}, {}}, {{4, 20}}).count(),
           800, 320);
    expect(Case("QLinearConv", {{1, 3, 5, 5}, {}, {}, {2, 3, 3, 3}, {}, {}, {}, {}, {2}},
                {{1, 2, 3, 3}})
               .count(),
           2 * 9 * 27, 18 + 72);
}

TEST(Counting, PackedWeightsAreUnpackedOnTheWay) {
    expect(Case("MatMulNBits", {{3, 64}, {32, 2, 16}, {64}}, {{3, 32}}, "com.microsoft")
               .with("K", std::int64_t{64})
               .with("N", std::int64_t{32})
               .count(),
           3 * 32 * 64, 64 * 32 * 2);
}

TEST(Counting, EinsumIsTheProductOfAllIndices) {
    expect(Case("Einsum", {{2, 8, 5, 16}, {2, 8, 7, 16}}, {{2, 8, 5, 7}})
               .with("equation", std::string("bhid, bhjd -> bhij"))
               .count(),
           2ULL * 8 * 5 * 7 * 16, 0);
    expect(Case("Einsum", {{3, 4, 5}, {5, 6}}, {{3, 4, 6}})
               .with("equation", std::string("...k,kn->...n"))
               .count(),
           3ULL * 4 * 5 * 6, 0);
    expect(
        Case("Einsum", {{4, 5}, {5, 6}}, {{4, 6}}).with("equation", std::string("ij,jk")).count(),
        120, 0);
}

TEST(Counting, EinsumContractsFromTheLeftAndKnowsPlainProductsAndSums) {
    expect(Case("Einsum", {{4, 5}, {5, 6}, {6, 7}}, {{4, 7}})
               .with("equation", std::string("ij,jk,kl->il"))
               .count(),
           4 * 5 * 6 + 4 * 6 * 7, 0);
    expect(Case("Einsum", {{4}, {5}}, {{4, 5}}).with("equation", std::string("i,j->ij")).count(), 0,
           20);
    expect(Case("Einsum", {{4, 5}}, {{4}}).with("equation", std::string("ij->i")).count(), 0,
           20 - 4);
    EXPECT_EQ(
        Case("Einsum", {{4, 5}}, {{5, 4}}).with("equation", std::string("ij->ji")).count().counted,
        Counted::movement);
    EXPECT_EQ(
        Case("Einsum", {{4, 5}}, {{5, 4}}).with("equation", std::string("ijk->ji")).count().counted,
        Counted::unknown);
}

TEST(Counting, RecurrentLayersCountGatesDirectionsAndSteps) {
    // 7 steps, batch 2, 10 inputs, 16 hidden units, both directions.
    OpCount lstm =
        Case("LSTM", {{7, 2, 10}, {2, 64, 10}, {2, 64, 16}, {2, 128}}, {{7, 2, 2, 16}}).count();
    expect(lstm, 2ULL * 7 * 2 * 64 * (10 + 16), 2ULL * 7 * 2 * 16 * (22 + 8));
    EXPECT_EQ(Case("GRU", {{7, 2, 10}, {1, 48, 10}, {1, 48, 16}}, {{7, 1, 2, 16}}).count().macs,
              7ULL * 2 * 48 * 26);
    EXPECT_EQ(Case("RNN", {{7, 2, 10}, {1, 16, 10}, {1, 16, 16}}, {{7, 1, 2, 16}}).count().macs,
              7ULL * 2 * 16 * 26);
}

TEST(Counting, AttentionIsScoresAndWeightedValues) {
    // Batch 2, 4 heads, 6 queries, 9 keys of width 8, values of width 10.
    expect(Case("Attention", {{2, 4, 6, 8}, {2, 4, 9, 8}, {2, 4, 9, 10}}, {{2, 4, 6, 10}}).count(),
           2ULL * 4 * 6 * 9 * (8 + 10), 2ULL * 4 * 6 * 9 * 6);
    // The same as three dimensions, with 3 positions of the past.
    expect(
        Case("Attention", {{2, 6, 32}, {2, 6, 32}, {2, 6, 40}, {-1}, {2, 4, 3, 8}, {2, 4, 3, 10}},
             {{2, 6, 40}})
            .with("q_num_heads", std::int64_t{4})
            .with("kv_num_heads", std::int64_t{4})
            .count(),
        2ULL * 4 * 6 * 9 * (8 + 10), 2ULL * 4 * 6 * 9 * 6);
}

TEST(Counting, AttentionWithProjectionsCountsThemToo) {
    expect(Case("Attention", {{2, 6, 32}, {32, 96}, {96}}, {{2, 6, 32}}, "com.microsoft")
               .with("num_heads", std::int64_t{4})
               .count(),
           2ULL * 6 * 32 * 96 + 2ULL * 6 * 6 * (32 + 32), 2ULL * 6 * 96 + 2ULL * 6 * 6 * 4 * 6);
    expect(Case("MultiHeadAttention", {{2, 6, 32}, {2, 9, 32}, {2, 9, 32}}, {{2, 6, 32}},
                "com.microsoft")
               .with("num_heads", std::int64_t{4})
               .count(),
           2ULL * 6 * 9 * 64, 2ULL * 6 * 9 * 4 * 6);
}

TEST(Counting, PoolingComparesOrAddsTheWindow) {
    expect(Case("MaxPool", {{1, 2, 8, 8}}, {{1, 2, 4, 4}}).with("kernel_shape", Ints{3, 3}).count(),
           0, 32 * 8);
    expect(Case("AveragePool", {{1, 2, 8, 8}}, {{1, 2, 4, 4}})
               .with("kernel_shape", Ints{2, 2})
               .count(),
           0, 32 * 4);
    expect(Case("GlobalAveragePool", {{1, 2, 8, 8}}, {{1, 2, 1, 1}}).count(), 0, 128);
}

TEST(Counting, NormalizationsAreNotMacs) {
    expect(Case("BatchNormalization", {{1, 8, 4, 4}, {8}, {8}, {8}, {8}}, {{1, 8, 4, 4}}).count(),
           0, 128 * 2 + 8 * 5);
    expect(Case("LayerNormalization", {{2, 5, 8}, {8}, {8}}, {{2, 5, 8}}).count(), 0, 80 * 7);
    expect(Case("Softmax", {{2, 10}}, {{2, 10}}).count(), 0, 100);
}

TEST(Counting, BroadcastingCountsOutputsAndReductionsInputs) {
    expect(Case("Add", {{2, 3, 4}, {4}}, {{2, 3, 4}}).count(), 0, 24);
    expect(Case("Sum", {{4}, {4}, {4}}, {{4}}).count(), 0, 8);
    expect(Case("ReduceMean", {{2, 10}}, {{2, 1}}).count(), 0, 20 + 2);
    expect(Case("TopK", {{1, 1000}, {1}}, {{1, 5}, {1, 5}}).count(), 0, 3000);
}

TEST(Counting, InterpolationDependsOnTheMode) {
    Case nearest("Resize", {{1, 2, 4, 4}}, {{1, 2, 8, 8}});
    EXPECT_EQ(nearest.with("mode", std::string("nearest")).count().counted, Counted::movement);
    expect(
        Case("Resize", {{1, 2, 4, 4}}, {{1, 2, 8, 8}}).with("mode", std::string("linear")).count(),
        0, 128 * 9);
}

TEST(Counting, MovingDataIsNoArithmeticAndNeedsNoShapes) {
    for (const char* type :
         {"Reshape", "Transpose", "Concat", "Slice", "Gather", "Cast", "Shape", "Where", "Pad"}) {
        EXPECT_EQ(Case(type, {{2}}, {{2}}).unknown_output().count().counted, Counted::movement)
            << type;
    }
}

TEST(Counting, UnknownOpsAndShapesAreNeverZero) {
    OpCount custom = Case("Wobble", {{2}}, {{2}}, "my.ops").count();
    EXPECT_EQ(custom.counted, Counted::unknown);
    EXPECT_EQ(custom.why, "no rule for my.ops:Wobble");
    OpCount shapeless = Case("Conv", {{1, 3, 8, 8}, {4, 3, 3, 3}}, {{}}).unknown_output().count();
    EXPECT_EQ(shapeless.counted, Counted::unknown);
    EXPECT_EQ(shapeless.why, "the shape of output 0 is unknown");
    EXPECT_EQ(Case("NonMaxSuppression", {{1, 5, 4}}, {{3, 3}}).count().counted, Counted::unknown);
    EXPECT_EQ(Case("MatMul", {}, {{3}}).count().why, "input 0 is missing");
}

TEST(Counting, NumbersThatDoNotFitAreNotCounted) {
    std::int64_t huge = std::int64_t{1} << 31;
    OpCount c = Case("MatMul", {{huge, huge}, {huge, huge}}, {{huge, huge}}).count();
    EXPECT_EQ(c.counted, Counted::unknown);
    EXPECT_EQ(c.why, "the count does not fit 63 bits");
    EXPECT_EQ(Case("Relu", {{-5}}, {{-5}}).count().counted, Counted::unknown);
}

TEST(Counting, NothingToDoIsCountedAsZero) {
    expect(Case("Conv", {{0, 3, 8, 8}, {4, 3, 3, 3}}, {{0, 4, 6, 6}}).count(), 0, 0);
}

TEST(Counting, FlopsAreTwoPerMacAndOnePerOther) {
    OpCount c{.counted = Counted::arithmetic, .macs = 10, .other_flops = 3, .why = {}};
    EXPECT_EQ(c.flops(), 23U);
    c.macs = ~std::uint64_t{0};
    EXPECT_EQ(c.flops(), static_cast<std::uint64_t>(INT64_MAX));
}

Op op_of(const char* type) {
    Op op;
    op.type = type;
    return op;
}

TEST(Roles, ConvolutionsAndNormalizations) {
    EXPECT_EQ(role(op_of("Conv"), 1, DType::f32, Shape{8, 3, 3, 3}), Role::weight);
    EXPECT_EQ(role(op_of("Conv"), 2, DType::f32, Shape{8}), Role::vector);
    EXPECT_EQ(role(op_of("BatchNormalization"), 1, DType::f32, Shape{8}), Role::vector);
    EXPECT_EQ(role(op_of("BatchNormalization"), 3, DType::f32, Shape{8}), Role::buffer);
    EXPECT_EQ(role(op_of("BatchNormalization"), 4, DType::f32, Shape{8}), Role::buffer);
    EXPECT_EQ(role(op_of("LayerNormalization"), 1, DType::f32, Shape{8}), Role::vector);
    EXPECT_EQ(role(op_of("PRelu"), 1, DType::f32, Shape{8, 1, 1}), Role::vector);
    EXPECT_EQ(role(op_of("LSTM"), 5, DType::f32, Shape{1, 1, 8}), Role::buffer);
}

TEST(Roles, ShapesIndicesAndScalarsAreConstants) {
    EXPECT_EQ(role(op_of("Reshape"), 1, DType::i64, Shape{2}), Role::constant);
    EXPECT_EQ(role(op_of("Gather"), 1, DType::i64, Shape{}), Role::constant);
    EXPECT_EQ(role(op_of("Gather"), 0, DType::f32, Shape{1000, 64}), Role::weight);
    EXPECT_EQ(role(op_of("Gather"), 0, DType::i64, Shape{10}), Role::constant);
    EXPECT_EQ(role(op_of("Mul"), 1, DType::f32, Shape{}), Role::constant);
    EXPECT_EQ(role(op_of("Add"), 1, DType::f32, Shape{1, 64, 1, 1}), Role::vector);
    EXPECT_EQ(role(op_of("Add"), 1, DType::f32, Shape{1, 197, 768}), Role::weight);
    EXPECT_EQ(role(op_of("Resize"), 2, DType::f32, Shape{4}), Role::constant);
    EXPECT_EQ(role(op_of("Clip"), 1, DType::f32, Shape{}), Role::constant);
}

TEST(Roles, QuantizedWeightsAreParametersAndTheirScalesAreNot) {
    EXPECT_EQ(role(op_of("QLinearConv"), 3, DType::i8, Shape{8, 3, 3, 3}), Role::weight);
    EXPECT_EQ(role(op_of("QLinearConv"), 4, DType::f32, Shape{8}), Role::constant);
    EXPECT_EQ(role(op_of("QLinearConv"), 8, DType::i32, Shape{8}), Role::vector);
    EXPECT_EQ(role(op_of("MatMulInteger"), 1, DType::u8, Shape{8, 8}), Role::weight);
}

TEST(Roles, PackedParametersCountAsWhatTheyStandFor) {
    Op op = op_of("MatMulNBits");
    op.domain = "com.microsoft";
    op.attributes = {{.name = "K", .value = std::int64_t{64}, .reference = {}, .source = {}},
                     {.name = "N", .value = std::int64_t{32}, .reference = {}, .source = {}}};
    Constant packed = Constant::of(DType::u8, {32, 2, 16}, std::vector<std::uint8_t>(1024));
    EXPECT_EQ(parameter_count(op, 1, packed), 2048U);
    EXPECT_EQ(role(op, 1, DType::u8, packed.shape()), Role::weight);
    EXPECT_EQ(role(op, 2, DType::f32, Shape{64}), Role::constant);
}

TEST(TrafficOf, EveryTensorOnceTablesOnlyWhereTheyAreRead) {
    Traffic add = traffic(Case("Add", {{2, 3}, {3}}, {{2, 3}}).facts());
    EXPECT_EQ(add.read, 24U + 12U);
    EXPECT_EQ(add.written, 24U);
    Traffic gather = traffic(Case("Gather", {{50000, 64}, {7}}, {{7, 64}}).facts());
    EXPECT_EQ(gather.read, 7U * 64 * 4 + 28);
    Traffic shape = traffic(Case("Shape", {{1000, 1000}}, {{2}}).facts());
    EXPECT_EQ(shape.read, 0U);
    EXPECT_FALSE(traffic(Case("Relu", {{2}}, {{2}}).unknown_output().facts()).written);
}

}  // namespace
}  // namespace trocar
