#include "trocar/mapping.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "mapping/layout.h"
#include "mapping/syntax.h"
#include "trocar/error.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::string& text) {
    try {
        mapping::parse_rules(text, "r.map");
    } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::input);
        return e.what();
    }
    return "taken";
}

TEST(Rules, SayWhereTheyAreWrong) {
    EXPECT_EQ(refusal(""), "r.map:1: the file ends where 'mapping' is expected");
    EXPECT_EQ(refusal("mapping a to b;\nrule X {\n  match y = ;\n}"),
              "r.map:3: the type of an op is expected, not ';'");
    EXPECT_EQ(refusal("mapping a to b;\nrule X { y = A(); }"),
              "r.map:2: rule 'X' does not say what it matches");
    EXPECT_EQ(refusal("mapping a to b; \"open"), "r.map:1: a closing \" is missing");
    EXPECT_EQ(refusal("mapping a to b; rule X { match y = A(x); y = B(x) }"),
              "r.map:1: ';' is expected, not '}'");
    EXPECT_EQ(refusal("mapping a to b; define f(x) = x; define f(y) = y;"),
              "r.map:1: 'f' is defined twice");
    EXPECT_EQ(refusal("mapping a to b; define F(x) = x;"),
              "r.map:1: 'F' reads as an op: a definition begins with a small letter");
    EXPECT_EQ(refusal("mapping a to b; $"), "r.map:1: a character '$' is not expected");
    EXPECT_THAT(refusal("mapping a to b; define f(x) = " + std::string(500, '(') + "x"),
                HasSubstr("nested too deeply"));
    EXPECT_THAT(refusal("mapping a to b; define f(x) = " + std::string(500, '-') + "x;"),
                HasSubstr("nested too deeply"));
    EXPECT_EQ(refusal("mapping a to b; define f() = 99999999999999999999;"),
              "r.map:1: '99999999999999999999' is no number that can be held");
}

TEST(Rules, AFileSaysWhyItsRulesHaveNoTests) {
    const auto rules =
        mapping::parse_rules("mapping a to b; untested \"nothing runs it\";", "r.map");
    EXPECT_EQ(rules.untested, "nothing runs it");
    EXPECT_EQ(refusal("mapping a to b; untested;"),
              "r.map:1: a reason in quotes is expected, not ';'");
}

class Mapping : public testing::Test {
protected:
    Mapping() { model_.dialect = "toy"; }

    TensorId input(const std::string& name, const Shape& shape = {2, 3}) {
        return model_.graph.add_input(name, Type::tensor(DType::f32, shape));
    }
    TensorId op(const std::string& type, std::vector<TensorId> inputs, const std::string& output,
                std::vector<Attribute> attributes = {}) {
        OpSpec spec;
        spec.type = type;
        spec.name = output + "_op";
        spec.inputs = std::move(inputs);
        spec.outputs = {model_.graph.add_tensor(output, Type::tensor(DType::f32))};
        spec.attributes = std::move(attributes);
        const auto made = spec.outputs[0];
        model_.graph.append(std::move(spec));
        return made;
    }
    Mapped map(const std::string& rules, const std::vector<TensorId>& outputs) {
        model_.graph.set_outputs(outputs);
        const auto path = folder_ / "rules.map";
        std::ofstream(path) << "mapping toy to onnx 21;\ncopied by Identity;\n" + rules;
        return map_model(model_, "onnx", {.rules = {path}});
    }
    // "y = Add(x, c)": the ops of the result in order.
    static std::vector<std::string> ops(const Mapped& mapped) {
        std::vector<std::string> all;
        const auto& graph = mapped.model.graph;
        for (const auto id : graph.ops()) {
            const auto& op = graph.op(id);
            std::string text = graph.tensor(op.outputs[0]).name + " = " + op.type + "(";
            for (std::size_t i = 0; i < op.inputs.size(); ++i) {
                text += (i > 0 ? ", " : "") +
                        (op.inputs[i] == TensorId::none ? "" : graph.tensor(op.inputs[i]).name);
            }
            all.push_back(text + ")");
        }
        return all;
    }
    static std::string fate(const Mapped& mapped, std::size_t i) {
        return mapped.ops.at(i).state == MappedOp::State::mapped ? mapped.ops[i].rule
                                                                 : "! " + mapped.ops[i].why;
    }

    TestFolder folder_;
    Model model_;
};

TEST_F(Mapping, TensorsKeepTheirNamesAndOpsTheirOrigin) {
    const auto x = input("x");
    const auto y = op("PLUS", {x, x}, "y", {{"act", std::string("RELU"), {}, {}}});
    model_.graph.op_from_file(model_.graph.first()).origin.module = "net.plus";
    const auto mapped = map(
        "rule PLUS { match y = PLUS(a, b); s = Add(a, b); y = @act == \"RELU\" ? Relu(s) : s; }",
        {y});
    EXPECT_TRUE(mapped.complete());
    EXPECT_THAT(ops(mapped), ElementsAre("y/Add = Add(x, x)", "y = Relu(y/Add)"));
    const auto& last = mapped.model.graph.op(mapped.model.graph.last());
    EXPECT_EQ(last.origin.module, "net.plus");
    EXPECT_EQ(last.name, "y_op");
    EXPECT_THAT(mapped.model.graph.verify(), testing::IsEmpty());
    EXPECT_EQ(mapped.model.opset(), 21);
}

TEST_F(Mapping, SaysWhyAnOpIsNotMapped) {
    const auto x = input("x");
    const auto y = op("SCALE", {x}, "y", {{"by", std::int64_t{3}, {}, {}}});
    const auto z = op("OTHER", {y}, "z");
    const auto other = op("OTHER", {x}, "other");
    op("OTHER", {x}, "lone");
    const auto mapped =
        map("rule A { match y = SCALE(x); require @by == 2, text(\"it scales by \", @by); y = "
            "Add(x, x); }",
            {z, other});
    EXPECT_FALSE(mapped.complete());
    EXPECT_EQ(fate(mapped, 0), "! it scales by 3");
    EXPECT_EQ(fate(mapped, 1), "! it reads what cannot be mapped");
    EXPECT_EQ(fate(mapped, 2), "! no rule maps OTHER");
    EXPECT_EQ(fate(mapped, 3), "left out: nothing reads it");
    EXPECT_THAT(ops(mapped), testing::IsEmpty());
}

// An attribute that holds 0 is not one that is given.
TEST_F(Mapping, RequirementsAreConditions) {
    const auto rules = [](const char* condition) {
        return fmt::format(
            "rule A {{ match y = SCALE(x); require {}, \"no\"; y = Add(x, x); }}\n"
            "rule B {{ match y = SCALE(x); y = Mul(x, x); }}",
            condition);
    };
    const auto y = op("SCALE", {input("x")}, "y",
                      {{"off", std::int64_t{0}, {}, {}},
                       {"on", std::int64_t{1}, {}, {}},
                       {"text", std::string("False"), {}, {}}});
    for (const auto* const condition : {"@on", "@on ?? false", "!@off", "x", "@off == 0"}) {
        EXPECT_EQ(fate(map(rules(condition), {y}), 0), "A") << condition;
    }
    for (const auto* const condition : {"@off", "@off ?? true", "@gone", "!@on", "!x", "@text"}) {
        EXPECT_EQ(fate(map(rules(condition), {y}), 0), "B") << condition;
    }
    const auto mapped = map("rule A { match y = SCALE(x); require @text; y = x; }", {y});
    EXPECT_THAT(fate(mapped, 0), HasSubstr("rules.map:3: a condition is a boolean, not a text"));
}

TEST_F(Mapping, TheNextRuleIsAskedAndNothingOfTheFirstIsLeft) {
    const auto x = input("x");
    const auto y = op("SCALE", {x}, "y");
    const auto mapped =
        map("rule A { match y = SCALE(x); t = Add(x, f32([1.0, 2.0])); require rank(t) == 7, "
            "\"no\"; y = t; }\n"
            "rule B { match y = SCALE(x); y = Mul(x, f32(2.0)); }",
            {y});
    EXPECT_EQ(fate(mapped, 0), "B");
    EXPECT_THAT(ops(mapped), ElementsAre("y = Mul(x, y/constant)"));
    EXPECT_EQ(mapped.model.graph.tensor_count(), 3U);
}

TEST_F(Mapping, RulesAskForOneSize) {
    const auto x = model_.graph.add_input("x", Type::tensor(DType::f32));
    model_.graph.tensor_from_file(x).type.dims = std::vector<Dim>{{-1, "batch"}, {3, ""}};
    const auto y = op("WIDTH", {x}, "y", {{"axes", std::vector<std::int64_t>{1}, {}, {}}});
    const std::string rules =
        "rule A { match y = WIDTH(x); require !known(x, 0) && known(x, -1) && !known(x, 2), \"a\"; "
        "require is_list(@axes) && !is_list(1), \"b\"; y = Mul(x, f32(real(dim(x, 1)))); }";
    const auto mapped = map(rules, {y});
    EXPECT_EQ(fate(mapped, 0), "A");
}

TEST_F(Mapping, OpsThatMakeNothingAreLeftOut) {
    const auto x = input("x");
    const auto y = op("SAME", {x}, "y");
    OpSpec check;
    check.type = "CHECK";
    check.inputs = {x};
    model_.graph.append(std::move(check));
    const auto mapped = map("rule A { match y = SAME(x); y = Relu(x); }", {y});
    EXPECT_TRUE(mapped.complete());
    EXPECT_THAT(ops(mapped), ElementsAre("y = Relu(x)"));
}

TEST_F(Mapping, SeveralOpsBecomeOne) {
    const auto x = input("x");
    const auto s = op("SIGMOID", {x}, "s");
    const auto y = op("TIMES", {s, x}, "y");
    const std::string rules =
        "rule SWISH { match s = SIGMOID(x); match y = unordered TIMES(x, s); y = com.toy.Swish(x); "
        "}\n"
        "rule SIGMOID { match y = SIGMOID(x); y = Sigmoid(x); }\n"
        "rule TIMES { match y = TIMES(a, b); y = Mul(a, b); }";
    {
        const auto mapped = map(rules, {y});
        EXPECT_THAT(ops(mapped), ElementsAre("y = Swish(x)"));
        EXPECT_EQ(mapped.model.graph.op(mapped.model.graph.first()).domain, "com.toy");
        EXPECT_EQ(fate(mapped, 0), "SWISH");
    }
    // Somebody else reads what lies between.
    const auto mapped = map(rules, {y, s});
    EXPECT_THAT(ops(mapped), ElementsAre("s = Sigmoid(x)", "y = Mul(s, x)"));
}

TEST_F(Mapping, APatternThatDeclinesIsMappedOpByOp) {
    const auto x = input("x");
    const auto s = op("SIGMOID", {x}, "s");
    const auto y = op("TIMES", {x, s}, "y");
    const auto mapped =
        map("rule SWISH { match s = SIGMOID(x); match y = TIMES(x, s); require rank(x) == 9, "
            "\"no\"; y = Swish(x); }\n"
            "rule SIGMOID { match y = SIGMOID(x); y = Sigmoid(x); }\n"
            "rule TIMES { match y = TIMES(a, b); y = Mul(a, b); }",
            {y});
    EXPECT_THAT(ops(mapped), ElementsAre("s = Sigmoid(x)", "y = Mul(x, s)"));
}

TEST_F(Mapping, ListsOptionsAndSeveralOutputs) {
    const auto x = input("x", {2, 6});
    OpSpec split;
    split.type = "SPLIT";
    split.inputs = {x};
    for (const char* name : {"a", "b", "c"}) {
        split.outputs.push_back(model_.graph.add_tensor(name, Type::tensor(DType::f32)));
    }
    const auto parts = split.outputs;
    model_.graph.append(std::move(split));
    const auto y = op("JOIN", {parts[2], parts[0], parts[1]}, "y");
    const auto mapped =
        map("rule SPLIT { match (ys...) = SPLIT(x, sizes?); require !sizes; ys = Split(x, "
            "num_outputs = len(ys)) -> len(ys); }\n"
            "rule JOIN { match y = JOIN(xs...); y = Concat(xs..., axis = len(xs) - 2); }",
            {y});
    EXPECT_THAT(ops(mapped), ElementsAre("a = Split(x)", "y = Concat(c, a, b)"));
    EXPECT_EQ(mapped.model.graph.op(mapped.model.graph.last()).integer("axis", 0), 1);
}

TEST_F(Mapping, WhatIsPassedOnIsCopiedOnlyForAnOutput) {
    const auto x = input("x");
    const auto same = op("SAME", {x}, "same");
    const auto y = op("TWICE", {same}, "y");
    const std::string rules =
        "rule SAME { match y = SAME(x); y = x; } rule TWICE { match y = TWICE(x); y = Add(x, x); }";
    EXPECT_THAT(ops(map(rules, {y})), ElementsAre("y = Add(x, x)"));
    EXPECT_THAT(ops(map(rules, {y, same})), ElementsAre("y = Add(x, x)", "same = Identity(x)"));
}

TEST_F(Mapping, OpsOfInstrumentsAreCarriedAlong) {
    const auto x = input("x");
    OpSpec tap;
    tap.type = "Tap";
    tap.domain = "trocar";
    tap.inputs = {x};
    tap.outputs = {model_.graph.add_tensor("tapped", Type::tensor(DType::f32))};
    tap.attributes = {{"site", std::int64_t{3}, {}, {}}};
    const auto tapped = tap.outputs[0];
    model_.graph.append(std::move(tap));
    const auto y = op("TWICE", {tapped}, "y");
    const auto mapped = map("rule TWICE { match y = TWICE(x); y = Add(x, x); }", {y});
    EXPECT_THAT(ops(mapped), ElementsAre("tapped = Tap(x)", "y = Add(tapped, tapped)"));
    EXPECT_EQ(mapped.model.graph.op(mapped.model.graph.first()).integer("site", 0), 3);
}

TEST_F(Mapping, ConstantsAreTurnedAtOnce) {
    const auto x = input("x");
    const auto w = model_.graph.add_constant(
        "w", Constant::of(DType::f32, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}));
    const auto y = op("PRODUCT", {x, w}, "y");
    const auto mapped =
        map("rule PRODUCT { match y = PRODUCT(x, w); y = MatMul(x, permute(w, [1, 0])); }", {y});
    const auto& graph = mapped.model.graph;
    const auto& made = graph.tensor(graph.op(graph.first()).inputs[1]);
    EXPECT_EQ(made.constant->shape(), (Shape{3, 2}));
    std::vector<float> numbers(6);
    std::memcpy(numbers.data(), made.constant->bytes().data(), 24);
    EXPECT_THAT(numbers, ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(Mapping, QuantisedTensorsGoThroughRealNumbers) {
    const auto x = model_.graph.add_input("x", Type::tensor(DType::i8, Shape{2, 3}));
    const auto how = [](float scale, std::int64_t zero) {
        Quantization made;
        made.scales = {scale};
        made.zero_points = {zero};
        return std::make_shared<const Quantization>(made);
    };
    model_.graph.tensor_from_file(x).quantization = how(0.5F, 3);
    const auto y = op("TWICE", {x}, "y");
    model_.graph.tensor_from_file(y).type = Type::tensor(DType::i8, Shape{2, 3});
    model_.graph.tensor_from_file(y).quantization = how(0.25F, -1);
    const auto mapped =
        map("quantized by QuantizeLinear, DequantizeLinear;\n"
            "rule TWICE { match y = TWICE(x); require dtype(x) == \"f32\"; y = Add(x, x); }",
            {y});
    const auto made = ops(mapped);
    ASSERT_EQ(made.size(), 3U);
    EXPECT_EQ(made[0], "x/real = DequantizeLinear(x, y/scale, y/zero_point)");
    EXPECT_EQ(made[1], "y/Add = Add(x/real, x/real)");
    EXPECT_THAT(made[2], HasSubstr("y = QuantizeLinear(y/Add, y/scale"));
}

TEST_F(Mapping, AWrongRuleIsSaidWithItsPlace) {
    const auto y = op("TWICE", {input("x")}, "y");
    try {
        map("rule TWICE { match y = TWICE(x);\n y = Add(x, xx); }", {y});
        FAIL();
    } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("rules.map:4: nothing is called 'xx'; did you mean 'x'?"));
    }
}

TEST_F(Mapping, AnOpThatARuleDidNotThinkOfIsDeclined) {
    const auto y = op("TWICE", {input("x")}, "y");
    const auto mapped = map("rule TWICE { match y = TWICE(x);\n y = Add(x, f32(@missing)); }", {y});
    EXPECT_THAT(fate(mapped, 0), HasSubstr("rules.map:4: a constant is not made of nothing"));
}

// NHWC → NCHW around each convolution, with a residual sum and a padding between them.
TEST_F(Mapping, ChangesOfLayoutCancel) {
    const auto x = input("x", {1, 8, 8, 4});
    const auto w = model_.graph.add_constant(
        "w", Constant::of(DType::f32, {4, 4, 1, 1}, std::vector<float>(16, 1)));
    const auto bias = model_.graph.add_constant(
        "b", Constant::of(DType::f32, {4}, std::vector<float>{1, 2, 3, 4}));
    const auto a = op("CONV", {x, w}, "a");
    const auto r = op("RELU", {a}, "r");
    const auto b = op("CONV", {r, w}, "b1");
    const auto s = op("ADD", {b, r}, "s");
    const auto p = op("ADD", {s, bias}, "p");
    const auto padded = op("PAD", {p}, "padded");
    const auto c = op("CONV", {padded, w}, "c");
    const std::string rules =
        "layout by Transpose perm { Relu; Add; Pad pairs 1; }\n"
        "define nchw(t) = Transpose(t, perm = [0, 3, 1, 2]);\n"
        "rule CONV { match y = CONV(x, w); y = Transpose(Conv(nchw(x), w), perm = [0, 2, 3, 1]); "
        "}\n"
        "rule RELU { match y = RELU(x); y = Relu(x); } rule ADD { match y = ADD(a, b); y = Add(a, "
        "b); }\n"
        "rule PAD { match y = PAD(x); y = Pad(x, i64([0, 1, 2, 0, 0, 3, 4, 0])); }";
    const auto mapped = map(rules, {c});
    EXPECT_EQ(mapped.transposes_made, 6U);
    EXPECT_EQ(mapped.transposes_left, 2U);
    const auto& graph = mapped.model.graph;
    EXPECT_THAT(graph.verify(), testing::IsEmpty());
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        if (op.type == "Pad") {
            const auto& pads = *graph.tensor(op.inputs[1]).constant;
            std::vector<std::int64_t> numbers(8);
            std::memcpy(numbers.data(), pads.bytes().data(), 64);
            EXPECT_THAT(numbers, ElementsAre(0, 0, 1, 2, 0, 0, 3, 4));
        }
    }
    EXPECT_EQ(graph.tensor(graph.outputs()[0]).name, "c");
}

TEST(Mappings, OfThisBuildCanBeRead) {
    for (const auto& one : mappings()) {
        EXPECT_FALSE(one.types.empty()) << one.from << " to " << one.to;
        EXPECT_TRUE(can_map(one.from, one.to));
    }
    EXPECT_FALSE(can_map("toy", "onnx"));
    Model model;
    model.dialect = "toy";
    try {
        map_model(model, "onnx");
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::unsupported);
    }
}

}  // namespace
}  // namespace trocar
