#include "quantize/opset.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/test_engines.h"
#include "trocar/error.h"
#include "trocar/session.h"

namespace trocar::quantizing {
namespace {

using ::testing::HasSubstr;

class Opsets : public ::testing::Test {
protected:
    Opsets() {
        model_.dialect = "onnx";
        model_.opsets = {{"", 7}};
        model_.ir_version = 3;
        at_ = model_.graph.add_input("x", Type::tensor(DType::f32, Shape{2, 4}));
    }
    void op(const std::string& type, std::vector<Attribute> attributes) {
        OpSpec spec;
        spec.type = type;
        spec.name = type;
        spec.inputs = {at_};
        spec.attributes = std::move(attributes);
        spec.outputs = {model_.graph.add_tensor(type + "_out", Type::tensor(DType::f32))};
        at_ = spec.outputs[0];
        model_.graph.append(std::move(spec));
    }
    std::vector<float> run() {
        const std::vector<float> numbers = {1, -2, 3, 9, 0.5F, 4, -7, 2};
        const auto made =
            Session(model_, open_engine(trocar::testing::engine_options("onnxruntime")))
                .run({{"x", Value::copy(DType::f32, {2, 4},
                                        std::as_bytes(std::span<const float>(numbers)))}});
        const auto all = made[0].value.as<float>();
        return {all.begin(), all.end()};
    }
    std::string refusal(std::int64_t to) {
        try {
            raise_opset(model_, to);
        } catch (const Error& error) {
            return error.what();
        }
        return "none";
    }

    Model model_;
    TensorId at_ = TensorId::none;
};

TEST_F(Opsets, WhatWasAnAttributeIsAnInput) {
    using Numbers = std::vector<std::int64_t>;
    op("Clip", {{"min", -3.0F, {}, {}}, {"max", 5.0F, {}, {}}});
    op("Unsqueeze", {{"axes", Numbers{1}, {}, {}}});
    op("Pad", {{"pads", Numbers{0, 0, 1, 0, 0, 1}, {}, {}}, {"value", 0.25F, {}, {}}});
    op("Slice", {{"starts", Numbers{1}, {}, {}},
                 {"ends", Numbers{6}, {}, {}},
                 {"axes", Numbers{2}, {}, {}}});
    op("ReduceMean", {{"axes", Numbers{2}, {}, {}}, {"keepdims", std::int64_t{1}, {}, {}}});
    op("Squeeze", {{"axes", Numbers{1}, {}, {}}});
    op("Dropout", {{"ratio", 0.5F, {}, {}}});
    model_.graph.set_outputs({at_});
    const auto before = run();
    for (const auto to : {13, 21}) {
        raise_opset(model_, to);
        EXPECT_EQ(model_.opset(), to);
        EXPECT_TRUE(model_.graph.verify().empty());
        EXPECT_EQ(run(), before);
    }
    EXPECT_GE(model_.ir_version, 10);
}

TEST_F(Opsets, SoftmaxKeepsItsMeaning) {
    for (const auto axis : {1, 0}) {
        op("Softmax", {{"axis", std::int64_t{axis}, {}, {}}});
        model_.graph.set_outputs({at_});
        const auto before = run();
        auto raised = clone(model_);
        std::swap(raised, model_);
        raise_opset(model_, 13);
        EXPECT_EQ(model_.graph.op_count(), axis == 1 ? 1U : 5U);
        EXPECT_EQ(run(), before);
        std::swap(raised, model_);
        model_.graph.rename(model_.graph.last(), fmt::format("softmax_{}", axis));
        model_.graph.rename(at_, fmt::format("out_{}", axis));
    }
}

TEST_F(Opsets, WhatHasAnotherMeaningIsNamed) {
    op("Upsample", {});
    model_.graph.set_outputs({at_});
    EXPECT_THAT(refusal(13), HasSubstr("'Upsample'"));
    EXPECT_EQ(model_.opset(), 7);
}

TEST_F(Opsets, NewerOnesStay) {
    model_.opsets = {{"", 22}};
    raise_opset(model_, 21);
    EXPECT_EQ(model_.opset(), 22);
    model_.opsets = {{"", 6}};
    EXPECT_THAT(refusal(13), HasSubstr("opset 6"));
}

}  // namespace
}  // namespace trocar::quantizing
