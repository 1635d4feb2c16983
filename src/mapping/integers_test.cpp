#include "mapping/integers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "mapping/fuse.h"
#include "mapping/syntax.h"

namespace trocar::mapping {
namespace {

using testing::ElementsAre;

constexpr const char* rules =
    "mapping a to b;\n"
    "fused by act { RELU \"RELU\"; } into CONV, ADD;\n"
    "integers by Q, DQ {\n"
    "    CONV weights 1 axis 0 bias 2; ADD; JOIN joined; SIGMOID makes 0.00390625 -128;\n"
    "    TURN same; PAD same number 1; BEST same largest;\n"
    "}\n";

class IntegerOps : public testing::Test {
protected:
    TensorId op(const std::string& type, std::vector<TensorId> inputs, const std::string& output,
                DType dtype = DType::f32) {
        OpSpec spec;
        spec.type = type;
        spec.name = output + "_op";
        spec.inputs = std::move(inputs);
        spec.outputs = {graph_.add_tensor(output, Type::tensor(dtype, Shape{2, 2}))};
        spec.attributes = {{"act", std::string("NONE"), {}, {}}};
        const auto made = spec.outputs[0];
        graph_.append(std::move(spec));
        return made;
    }
    // A tensor of real numbers, by way of integers.
    TensorId through(TensorId real, const std::string& name, float scale, std::int64_t zero = 0,
                     DType dtype = DType::i8) {
        const auto made = op("Q", {real}, name, dtype);
        Quantization how;
        how.scales = {scale};
        how.zero_points = {zero};
        graph_.set_quantization(made, std::make_shared<const Quantization>(how));
        return op("DQ", {made}, name + "/real");
    }
    TensorId constant(const std::string& name, const Shape& shape, const std::vector<float>& all) {
        return graph_.add_constant(name, Constant::of(DType::f32, shape, all));
    }
    std::size_t use(TensorId output) {
        graph_.set_outputs({output});
        const auto file = parse_rules(rules, "r.map");
        fuse_activations(graph_, file.fused);
        const auto count = use_integers(graph_, file);
        EXPECT_TRUE(graph_.verify().empty());
        return count;
    }
    std::vector<std::string> ops() const {
        std::vector<std::string> all;
        for (const auto id : graph_.ops()) {
            const auto& op = graph_.op(id);
            std::string text = graph_.tensor(op.outputs[0]).name + " = " + op.type + "(";
            for (std::size_t i = 0; i < op.inputs.size(); ++i) {
                text += (i > 0 ? ", " : "") + graph_.tensor(op.inputs[i]).name;
            }
            all.push_back(text + ")");
        }
        return all;
    }
    std::vector<std::int32_t> integers(const std::string& name) const {
        const auto bytes = tensor(name).constant->bytes();
        std::vector<std::int32_t> all(bytes.size() / sizeof(std::int32_t));
        std::memcpy(all.data(), bytes.data(), bytes.size());
        return all;
    }
    const Tensor& tensor(const std::string& name) const {
        return graph_.tensor(graph_.find_tensor(name).value());
    }

    Graph graph_;
    TensorId x_ = graph_.add_input("x", Type::tensor(DType::f32, Shape{2, 2}));
};

TEST_F(IntegerOps, WeightsAndBiasBecomeIntegers) {
    const auto x = through(x_, "xq", 0.5F, 3);
    const auto w = constant("w", {2, 2}, {0.25F, -0.5F, 31.75F, 0.0F});
    const auto b = constant("b", {2}, {1.0F, -2.0F});
    const auto y = through(op("RELU", {op("CONV", {x, w, b}, "c")}, "r"), "yq", 0.125F);
    EXPECT_EQ(use(y), 1U);
    EXPECT_THAT(ops(),
                ElementsAre("xq = Q(x)", "yq = CONV(xq, w/int8, b/int32)", "yq/real = DQ(yq)"));
    EXPECT_EQ(graph_.op(tensor("yq").producer).text("act", ""), "RELU");
    const auto& weights = tensor("w/int8");
    EXPECT_THAT(weights.quantization->scales, ElementsAre(0.5F / 126, 0.25F));
    EXPECT_EQ(weights.constant->bytes()[1], std::byte{0x82});  // -126
    const auto& bias = tensor("b/int32");
    EXPECT_EQ(bias.type.dtype, DType::i32);
    EXPECT_THAT(bias.quantization->scales, ElementsAre(0.25F / 126, 0.125F));
    EXPECT_THAT(integers("b/int32"), ElementsAre(504, -16));
}

TEST_F(IntegerOps, ABiasIsNotRoundedAwayByFewWeights) {
    // One weight, and none.
    const auto x = through(x_, "xq", 1.0F);
    const auto w = constant("w", {2, 2}, {12.7F, 0.0F, 0.0F, 0.0F});
    const auto b = constant("b", {2}, {0.3F, 0.7F});
    EXPECT_EQ(use(through(op("CONV", {x, w, b}, "c"), "yq", 0.125F)), 1U);
    const auto& steps = tensor("b/int32").quantization->scales;
    const auto codes = integers("b/int32");
    const std::vector<float> real = {0.3F, 0.7F};
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_NEAR(static_cast<float>(codes[i]) * steps[i], real[i], 0.05) << i;
    }
}

TEST_F(IntegerOps, WeightsThatAreNoMultiplesStayReal) {
    const auto x = through(x_, "xq", 0.5F);
    const auto w = constant("w", {1, 4}, {0.1F, 0.2718F, 3.1416F, 1.4142F});
    EXPECT_EQ(use(through(op("CONV", {x, w}, "c"), "yq", 0.125F)), 0U);
    EXPECT_EQ(ops().size(), 5U);
}

TEST_F(IntegerOps, ReadersOfRealNumbersKeepThem) {
    const auto x = through(x_, "xq", 0.5F);
    const auto sum = op("ADD", {x, x}, "sum");
    const auto y = through(sum, "yq", 0.125F);
    EXPECT_EQ(use(op("SOMETHING", {sum, y}, "out")), 0U);
}

TEST_F(IntegerOps, PassOnWhatTheyAreGiven) {
    const auto turned = op("TURN", {through(x_, "xq", 0.5F, 3)}, "t");
    EXPECT_EQ(use(through(turned, "yq", 0.5F, 3)), 1U);
    EXPECT_THAT(ops(), ElementsAre("xq = Q(x)", "t/int8 = TURN(xq)", "yq/real = DQ(t/int8)"));
    EXPECT_EQ(tensor("t/int8").quantization->zero_points[0], 3);
}

TEST_F(IntegerOps, OtherScalesAreMadeOfIntegers) {
    const auto a = through(x_, "aq", 0.5F);
    const auto b = through(op("ABS", {x_}, "abs"), "bq", 0.25F);
    EXPECT_EQ(use(through(op("JOIN", {a, b}, "j"), "yq", 0.5F)), 1U);
    EXPECT_THAT(ops(), ElementsAre("aq = Q(x)", "abs = ABS(x)", "bq = Q(abs)", "bq/int8 = Q(bq)",
                                   "yq = JOIN(aq, bq/int8)", "yq/real = DQ(yq)"));
    EXPECT_EQ(tensor("bq/int8").quantization->scales[0], 0.5F);
}

TEST_F(IntegerOps, AFixedScaleIsChangedBehindTheOp) {
    const auto y = op("SIGMOID", {through(x_, "xq", 0.5F)}, "s");
    EXPECT_EQ(use(through(y, "yq", 0.01F, -100)), 1U);
    EXPECT_THAT(ops(), ElementsAre("xq = Q(x)", "s/int8 = SIGMOID(xq)", "yq = Q(s/int8)",
                                   "yq/real = DQ(yq)"));
    EXPECT_EQ(tensor("s/int8").quantization->scales[0], 0.00390625F);
    EXPECT_EQ(tensor("s/int8").quantization->zero_points[0], -128);
}

TEST_F(IntegerOps, BytesWithoutSignGetOne) {
    const auto x = through(x_, "xq", 0.5F, 130, DType::u8);
    EXPECT_EQ(use(through(op("ADD", {x, x}, "sum"), "yq", 1.0F, 128, DType::u8)), 1U);
    EXPECT_EQ(tensor("xq").type.dtype, DType::i8);
    EXPECT_EQ(tensor("xq").quantization->zero_points[0], 2);
    EXPECT_EQ(tensor("yq").quantization->zero_points[0], 0);
}

TEST_F(IntegerOps, TheLeastNumberDoesWhereOnlyTheLargestCounts) {
    const auto x = through(x_, "xq", 0.5F, -128);
    const auto low = constant("low", {1}, {-3.4e38F});
    EXPECT_EQ(use(through(op("BEST", {op("PAD", {x, low}, "p")}, "m"), "yq", 0.5F, -128)), 2U);
    EXPECT_EQ(tensor("low/int8").constant->bytes()[0], std::byte{0x80});
}

TEST_F(IntegerOps, ANumberBetweenTwoIntegersStaysReal) {
    const auto x = through(x_, "xq", 0.5F);
    const auto between = constant("between", {1}, {0.3F});
    EXPECT_EQ(use(through(op("PAD", {x, between}, "p"), "yq", 0.5F)), 0U);
}

TEST_F(IntegerOps, WrongBlocksAreSaid) {
    EXPECT_ANY_THROW(parse_rules("mapping a to b; integers by Q, DQ { CONV weights 1; }", "r.map"));
    EXPECT_ANY_THROW(parse_rules("mapping a to b; integers by Q { }", "r.map"));
    EXPECT_ANY_THROW(parse_rules("mapping a to b; fused by act { RELU; } into A;", "r.map"));
}

}  // namespace
}  // namespace trocar::mapping
