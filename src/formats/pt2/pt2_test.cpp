#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "formats/pt2/origin.h"
#include "formats/pt2/reader.h"
#include "formats/pt2/symbolic.h"
#include "trocar/error.h"

// Programs that torch wrote: tests/formats/pt2/make.py made them.
namespace trocar::pt2 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::filesystem::path file(const std::string& name) {
    return std::filesystem::path(TROCAR_SOURCE_DIR) / "tests/formats/pt2" / (name + ".pt2");
}

Model read_model(const std::string& name) {
    auto model = read_file(file(name));
    EXPECT_TRUE(model.graph.verify().empty());
    EXPECT_FALSE(model.graph.edited());
    return model;
}

const Op& op(const Model& model, const std::string& name) {
    const auto id = model.graph.find_op(name);
    if (!id) {
        throw std::out_of_range(name);
    }
    return model.graph.op(*id);
}

const Tensor& tensor(const Model& model, const std::string& name) {
    const auto id = model.graph.find_tensor(name);
    if (!id) {
        throw std::out_of_range(name);
    }
    return model.graph.tensor(*id);
}

std::string metadata(const std::vector<Property>& all, const std::string& key) {
    for (const auto& property : all) {
        if (property.key == key) {
            return property.value;
        }
    }
    return "none";
}

std::vector<std::string> texts(const Op& op, const char* name) {
    const auto* attribute = op.attribute(name);
    return attribute ? std::get<std::vector<std::string>>(attribute->value)
                     : std::vector<std::string>();
}

std::vector<float> floats(const Model& model, const std::string& name) {
    const auto bytes = tensor(model, name).constant->bytes();
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

TEST(Pt2, IsFoundByContent) {
    const auto zip = std::as_bytes(std::span("PK\3\4", 4));
    EXPECT_TRUE(matches(zip, file("cnn")));
    EXPECT_FALSE(matches(std::as_bytes(std::span("\x08\x0a", 2)), file("cnn")));
}

TEST(Pt2, TheModelSaysWhereItComesFrom) {
    const auto model = read_model("transformer");
    EXPECT_EQ(model.format, "pt2");
    EXPECT_EQ(model.dialect, "aten");
    EXPECT_EQ(model.producer, "torch");
    EXPECT_THAT(model.producer_version, HasSubstr("2.15"));
    EXPECT_EQ(model.ir_version, 8);
    EXPECT_EQ(model.opset(), 10);
    EXPECT_EQ(metadata(model.metadata, "dimension s52"), "from 2 to 64");
    EXPECT_THAT(metadata(model.metadata, "sample inputs"), HasSubstr("not read"));
}

TEST(Pt2, TensorsAreInputsAndTheRestAttributes) {
    const auto model = read_model("cnn");
    const auto& conv = op(model, "conv2d");
    EXPECT_EQ(conv.type, "conv2d");
    EXPECT_EQ(conv.domain, "");
    EXPECT_EQ(conv.overload, "default");
    ASSERT_EQ(conv.inputs.size(), 2u);  // no bias
    EXPECT_EQ(model.graph.tensor(conv.inputs[1]).name, "stem.0.weight");
    EXPECT_THAT(texts(conv, "inputs"), ElementsAre("input", "weight"));
    EXPECT_THAT(conv.integers("stride"), ElementsAre(2, 2));
    EXPECT_THAT(conv.integers("padding"), ElementsAre(1, 1));
    EXPECT_EQ(conv.origin.module, "stem.0");
    EXPECT_THAT(conv.origin.source, HasSubstr("make.py:"));
    const auto& norm = op(model, "batch_norm");
    EXPECT_THAT(texts(norm, "inputs"),
                ElementsAre("input", "weight", "bias", "running_mean", "running_var"));
    EXPECT_EQ(norm.integer("training", 7), 0);
    EXPECT_FLOAT_EQ(std::get<float>(norm.attribute("eps")->value), 1e-5F);
    EXPECT_EQ(op(model, "relu_").type, "relu_");
    EXPECT_EQ(op(model, "to").text("dtype", "?"), "float32");
}

TEST(Pt2, ListsOfTensorsAreFlat) {
    const auto model = read_model("cnn");
    const auto& cat = op(model, "cat");
    EXPECT_THAT(texts(cat, "inputs"), ElementsAre("tensors[0]", "tensors[1]"));
    const auto& split = op(model, "split_with_sizes");
    EXPECT_EQ(split.outputs.size(), 2u);
    EXPECT_THAT(texts(split, "outputs"), ElementsAre("0[0]", "0[1]"));
    EXPECT_THAT(split.integers("split_sizes"), ElementsAre(3, 5));
}

TEST(Pt2, ConstantsAreViewsUnderTheirNamesInTheModule) {
    const auto model = read_model("cnn");
    const auto& weight = tensor(model, "stem.0.weight");
    EXPECT_EQ(metadata(weight.metadata, "kind"), "parameter");
    EXPECT_EQ(weight.constant->shape(), (Shape{8, 3, 3, 3}));
    const auto bytes = weight.constant->bytes();
    EXPECT_GE(bytes.data(), model.source.bytes.data());
    EXPECT_LT(bytes.data(), model.source.bytes.data() + model.source.bytes.size());
    EXPECT_EQ(metadata(tensor(model, "stem.1.running_mean").metadata, "kind"), "buffer");
    EXPECT_EQ(tensor(model, "coded").constant->dtype(), DType::i8);
    EXPECT_EQ(tensor(model, "gain").constant->dtype(), DType::bf16);
    EXPECT_EQ(tensor(model, "scale").constant->shape(), Shape{});
    EXPECT_EQ(model.graph.inputs().size(), 1u);
    EXPECT_EQ(type_text(tensor(model, "x").type), "f32[2,3,8,8]");
}

TEST(Pt2, ElementsAreInOrderWhateverTheStrides) {
    const auto model = read_model("odd");
    EXPECT_THAT(floats(model, "column"), ElementsAre(2, 8, 14, 20));
    EXPECT_EQ(tensor(model, "part").constant->shape(), (Shape{2, 6}));
    EXPECT_EQ(floats(model, "part").front(), 6);
    const auto turned = floats(model, "turned");
    EXPECT_EQ(turned[1], 6);
    EXPECT_EQ(turned[4], 1);
    EXPECT_THAT(floats(model, "spread"), ElementsAre(7, 7, 7, 7, 7, 7));
    EXPECT_EQ(tensor(model, "tiny").constant->dtype(), DType::f8e4m3fn);
    EXPECT_EQ(tensor(model, "turns").constant->dtype(), DType::c64);
    EXPECT_EQ(tensor(model, "nothing").constant->element_count(), 0u);
    const auto cnn = read_model("cnn");
    EXPECT_EQ(tensor(cnn, "left.weight").constant->shape(), (Shape{4, 8, 1, 1}));
}

TEST(Pt2, TiedParametersAreOneTensor) {
    const auto model = read_model("transformer");
    const auto& table = tensor(model, "embed.weight");
    EXPECT_EQ(metadata(table.metadata, "also named"), "head.weight");
    EXPECT_EQ(table.uses.size(), 2u);
    EXPECT_FALSE(model.graph.find_tensor("head.weight"));
}

TEST(Pt2, SizesThatAreNotKnownAreInputs) {
    const auto model = read_model("transformer");
    EXPECT_EQ(type_text(tensor(model, "tokens").type), "i64[s52,6]");
    const auto& size = op(model, "sym_size_int_1");
    EXPECT_EQ(size.type, "sym_size");
    EXPECT_EQ(size.overload, "int");
    EXPECT_EQ(size.origin.module, "");
    const auto& result = tensor(model, "sym_size_int_1");
    EXPECT_EQ(type_text(result.type), "i64[]");
    EXPECT_EQ(metadata(result.metadata, "expression"), "s52");
    const auto& view = op(model, "view");
    EXPECT_THAT(texts(view, "inputs"), ElementsAre("self", "size[0]"));
    EXPECT_THAT(texts(view, "size"), ElementsAre("*", "6", "3", "2", "4"));
    EXPECT_EQ(view.origin.module, "blocks.0");
    const auto& attention = op(model, "scaled_dot_product_attention");
    EXPECT_THAT(texts(attention, "inputs"), ElementsAre("query", "key", "value"));
    EXPECT_EQ(attention.integer("is_causal", 0), 1);
}

TEST(Pt2, BranchesAreGraphsWithInputsOfTheirOwn) {
    const auto model = read_model("branches");
    const auto& cond = op(model, "cond");
    EXPECT_EQ(cond.domain, "higher_order");
    ASSERT_EQ(cond.subgraphs().size(), 2u);
    const auto& taken = std::get<std::shared_ptr<Graph>>(cond.attribute("true_fn")->value);
    EXPECT_TRUE(taken->verify().empty());
    EXPECT_TRUE(taken->captured().empty());
    EXPECT_EQ(taken->inputs().size(), cond.inputs.size() - 1);
    EXPECT_EQ(taken->op_count(), 2u);
    EXPECT_EQ(texts(cond, "inputs").front(), "pred");
    EXPECT_EQ(texts(cond, "inputs")[1], "operands[0]");
}

TEST(Pt2, OutputsThatWriteBackSayWhat) {
    const auto model = read_model("state");
    std::vector<std::string> updates;
    for (const auto id : model.graph.outputs()) {
        updates.push_back(metadata(model.graph.tensor(id).metadata, "updates"));
    }
    EXPECT_THAT(updates, testing::Contains("buffer 'steps'"));
    EXPECT_THAT(updates, testing::Contains("buffer 'norm.running_mean'"));
    EXPECT_THAT(updates, testing::Contains("input 'log'"));
    EXPECT_EQ(updates.back(), "none");
    EXPECT_EQ(metadata(tensor(model, "window").metadata, "kind"), "temporary buffer");
}

TEST(Pt2, RareArgumentsAreKept) {
    const auto model = read_model("odd");
    const auto& index = op(model, "index_1");
    EXPECT_THAT(texts(index, "inputs"), ElementsAre("self", "indices[0]", "indices[1]"));
    EXPECT_EQ(index.inputs[1], TensorId::none);
    const auto& fill = op(model, "masked_fill");
    EXPECT_EQ(std::get<float>(fill.attribute("value")->value),
              -std::numeric_limits<float>::infinity());
    const auto& full = op(model, "full");
    const auto& huge = std::get<Constant>(full.attribute("fill_value")->value);
    EXPECT_EQ(huge.dtype(), DType::f64);
    EXPECT_EQ(model.graph.outputs().size(), 2u);
    EXPECT_EQ(metadata(model.graph.metadata, "output 2"), R"({"as_int":3})");
}

TEST(Pt2, ExpressionsAreReadable) {
    const std::string s = "Symbol('s7', positive=True, integer=True)";
    EXPECT_EQ(readable(s), "s7");
    EXPECT_EQ(readable("Mul(Integer(4), " + s + ")"), "4*s7");
    EXPECT_EQ(readable("Add(Integer(-1), Mul(Integer(2), " + s + "))"), "2*s7 - 1");
    EXPECT_EQ(readable("Add(FloorDiv(Add(" + s + ", Integer(-1)), Integer(2)), Integer(1))"),
              "((s7 - 1)//2) + 1");
    EXPECT_EQ(readable("Mul(Integer(-1), Add(" + s + ", Integer(3)))"), "-(s7 + 3)");
    EXPECT_EQ(readable("Pow(" + s + ", Integer(2))"), "s7**2");
    EXPECT_EQ(readable("Max(Integer(1), " + s + ")"), "max(1, s7)");
    for (const char* other : {"s0", "4*s0", "", "Symbol(", "Add(Integer(1)", "Symbol('x'"}) {
        EXPECT_EQ(readable(other), other);
    }
    std::string deep;
    for (int i = 0; i < 10'000; ++i) {
        deep += "Add(";
    }
    EXPECT_EQ(readable(deep), deep);
}

TEST(Pt2, OriginsAreModulePaths) {
    const auto module = [](const char* stack) { return read_origin(stack, "").module; };
    EXPECT_EQ(module("L__self__,,Net;L__self__a.b,a.b,torch.nn.Linear"), "a.b");
    EXPECT_EQ(module("a,L['self'].layers[0].conv@2,torch.nn.Conv2d"), "layers.0.conv");
    EXPECT_EQ(module("L__self__,,Net"), "");
    EXPECT_EQ(module(""), "");
    EXPECT_EQ(module("no commas"), "");
    EXPECT_EQ(module("x,selfish.y,T"), "selfish.y");
    const char* trace =
        "  File \"/a/model.py\", line 3, in f\n    x\n  File \"/a/b.py\", line 42, in g\n";
    EXPECT_EQ(read_origin("", trace).source, "b.py:42");
    const auto library = std::string(trace) + "  File \"/x/torch/nn/c.py\", line 7, in h\n";
    EXPECT_EQ(read_origin("", library).source, "b.py:42");
    EXPECT_EQ(read_origin("", "File \"/torch/c.py\", line 7").source, "c.py:7");
    EXPECT_EQ(read_origin("", "anything").source, "anything");
}

}  // namespace
}  // namespace trocar::pt2
