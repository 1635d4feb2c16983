#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/torchscript/pickle.h"
#include "formats/torchscript/reader.h"
#include "trocar/error.h"
#include "util/elements.h"
#include "util/test_zip.h"

// Modules that torch wrote: tests/formats/torchscript/make.py made them.
namespace trocar::torchscript {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::filesystem::path file(const std::string& name) {
    return std::filesystem::path(TROCAR_SOURCE_DIR) / "tests/formats/torchscript" / (name + ".pt");
}

void expect_valid(const Graph& graph) {
    EXPECT_TRUE(graph.verify().empty());
    EXPECT_FALSE(graph.edited());
    for (const auto id : graph.ops()) {
        for (const auto& body : graph.op(id).subgraphs()) {
            expect_valid(*body);
        }
    }
}

Model read(const std::string& name) {
    auto model = read_file(file(name));
    expect_valid(model.graph);
    return model;
}

std::vector<std::string> types(const Graph& graph) {
    std::vector<std::string> all;
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        all.push_back(op.domain.empty() ? fmt::format("{}.{}", op.type, op.overload)
                                        : fmt::format("{}::{}", op.domain, op.type));
    }
    return all;
}

const Op& first(const Graph& graph, const std::string& type) {
    for (const auto id : graph.ops()) {
        if (graph.op(id).type == type) {
            return graph.op(id);
        }
    }
    throw std::out_of_range(type);
}

std::string metadata(const std::vector<Property>& all, const std::string& key) {
    for (const auto& property : all) {
        if (property.key == key) {
            return property.value;
        }
    }
    return "none";
}

std::size_t parameters(const Graph& graph) {
    std::size_t count = 0;
    for (const auto id : graph.tensors()) {
        const auto& tensor = graph.tensor(id);
        if (tensor.constant && metadata(tensor.metadata, "kind") == "parameter") {
            count += tensor.constant->element_count();
        }
    }
    return count;
}

TEST(TorchScript, ATracedNetIsItsOpsWithTheModulesTheyComeFrom) {
    const auto model = read("cnn_traced");
    EXPECT_EQ(model.dialect, "aten");
    EXPECT_EQ(model.graph.inputs().size(), 1U);
    const auto& conv = first(model.graph, "_convolution");
    EXPECT_EQ(conv.overload, "default");
    EXPECT_EQ(conv.origin.module, "stem.0");
    EXPECT_THAT(conv.origin.source, HasSubstr("code/__torch__/torch/nn/modules/conv"));
    EXPECT_THAT(conv.integers("stride"), ElementsAre(2, 2));
    EXPECT_EQ(model.graph.tensor(conv.inputs[1]).name, "stem.0.weight");
    EXPECT_EQ(parameters(model.graph), 1889U);  // as torch counts them
}

TEST(TorchScript, ScriptedAndTracedNetsHaveTheSameLayers) {
    const auto layers = [](const Model& model) {
        std::vector<std::string> all;
        for (const auto id : model.graph.ops()) {
            auto type = model.graph.op(id).type;
            if (type == "_convolution") {
                type = "conv2d";  // as tracing has it
            }
            if (type == "conv2d" || type == "batch_norm" || type == "linear") {
                all.push_back(model.graph.op(id).origin.module + " " + type);
            }
        }
        return all;
    };
    EXPECT_EQ(layers(read("cnn_traced")), layers(read("cnn_scripted")));
    EXPECT_EQ(parameters(read("cnn_traced").graph), parameters(read("cnn_scripted").graph));
}

TEST(TorchScript, WeightsAreViewsOfTheFile) {
    const auto model = read("block_traced");
    const auto id = model.graph.find_tensor("qkv.weight");
    ASSERT_TRUE(id);
    const auto bytes = model.graph.tensor(*id).constant->bytes();
    EXPECT_GE(bytes.data(), model.source.bytes.data());
    EXPECT_LE(bytes.data() + bytes.size(), model.source.bytes.data() + model.source.bytes.size());
}

TEST(TorchScript, WhatOnlyARunDecidesHasBodies) {
    const auto model = read("control");
    const auto all = types(model.graph);
    EXPECT_EQ(std::count(all.begin(), all.end(), "prim::If"), 1);
    EXPECT_EQ(std::count(all.begin(), all.end(), "prim::Loop"), 3);
    const auto& choice = first(model.graph, "If");
    const auto bodies = choice.subgraphs();
    ASSERT_EQ(bodies.size(), 2U);
    EXPECT_THAT(types(*bodies[0]), ElementsAre("linear.default"));
    EXPECT_EQ(bodies[0]->op(bodies[0]->first()).origin.module, "one");
    EXPECT_EQ(bodies[1]->op(bodies[1]->first()).origin.module, "other");
    const auto& loop = first(model.graph, "Loop");
    const auto& body = *loop.subgraphs()[0];
    // The round and what is carried; whether it goes on and what is carried.
    EXPECT_EQ(body.inputs().size(), loop.inputs.size() - 1);
    EXPECT_EQ(body.outputs().size(), loop.outputs.size() + 1);
    // The optional argument was left out, so that nothing asks whether it is there.
    EXPECT_EQ(metadata(model.graph.metadata, "argument 'gain'"), "None");
}

TEST(TorchScript, AListThatALoopFillsIsCarriedByIt) {
    const auto model = read("control");
    const auto& list = first(model.graph, "ListConstruct");
    const auto& made = model.graph.tensor(list.outputs[0]);
    EXPECT_EQ(type_text(made.type), "sequence(f32)");
    ASSERT_EQ(made.uses.size(), 1U);
    const auto& loop = model.graph.op(made.uses[0].op);
    EXPECT_EQ(loop.type, "Loop");
    EXPECT_EQ(first(*loop.subgraphs()[0], "append").overload, "t");
}

TEST(TorchScript, AttributesThatChangeAreInputsWithDefaultsAndOutputs) {
    const auto model = read("state");
    const auto& graph = model.graph;
    const auto seen = graph.find_tensor("seen");
    const auto calls = graph.find_tensor("calls");
    ASSERT_TRUE(seen && calls);
    EXPECT_TRUE(graph.tensor(*seen).is_input);
    EXPECT_TRUE(graph.tensor(*seen).constant);
    EXPECT_EQ(numbers_of(*graph.tensor(*calls).constant), std::vector<double>{0});
    std::vector<std::string> updates;
    for (const auto output : graph.outputs()) {
        updates.push_back(metadata(graph.tensor(output).metadata, "updates"));
    }
    EXPECT_THAT(updates, ElementsAre("none", "none", "attribute 'calls'", "attribute 'seen'"));
}

TEST(TorchScript, WritesInPlaceAreSeenByOtherNames) {
    const auto model = read("state");
    const auto& graph = model.graph;
    // z is y: after y.add_, the sum and the result read what add_ made.
    const auto& sum = first(graph, "sum");
    const auto& written = graph.tensor(sum.inputs[0]);
    EXPECT_EQ(graph.op(written.producer).type, "add_");
}

TEST(TorchScript, TiedWeightsAreOneTensor) {
    const auto model = read("state");
    const auto first_weight = model.graph.find_tensor("first.weight");
    ASSERT_TRUE(first_weight);
    EXPECT_EQ(metadata(model.graph.tensor(*first_weight).metadata, "also named"), "second.weight");
    EXPECT_FALSE(model.graph.find_tensor("second.weight"));
}

TEST(TorchScript, AWriteThroughAViewSaysWhatItWritesTo) {
    const auto model = read("writes");
    EXPECT_EQ(first(model.graph, "copy_").text("writes", ""), "y");
}

TEST(TorchScript, ATransformerHasAttentionAndRanks) {
    const auto model = read("block_scripted");
    const auto& graph = model.graph;
    EXPECT_EQ(graph.tensor(graph.inputs()[0]).type.dims->size(), 3U);
    const auto& attention = first(graph, "scaled_dot_product_attention");
    EXPECT_EQ(graph.tensor(attention.outputs[0]).type.dims->size(), 4U);
    EXPECT_EQ(graph.op(graph.tensor(attention.inputs[0]).producer).type, "unbind");
}

std::string message(const std::function<void()>& work, Fault fault) {
    try {
        work();
    } catch (const Error& error) {
        EXPECT_EQ(error.fault(), fault) << error.what();
        return std::string(error.what()) + " | " + error.hint();
    }
    return "nothing was thrown";
}

TEST(TorchScript, APickleWithoutAProgramIsRefusedWithAHint) {
    EXPECT_THAT(message([] { read_file(file("dict")); }, Fault::unsupported),
                HasSubstr("with tensors and no program | load it with torch"));
}

// An archive of one class, whose object has no attributes.
Model from_code(const std::string& code, const std::string& pickle = {}) {
    const std::string plain(
        "\x80\x02"
        "c__torch__\nM\n)\x81}b.");
    const auto bytes = TestZip()
                           .add("m/data.pkl", pickle.empty() ? plain : pickle)
                           .add("m/code/__torch__.py", code)
                           .bytes();
    return read_torchscript(std::as_bytes(std::span(bytes)), nullptr, "m.pt");
}
std::string forward(const std::string& body) {
    return "class M(Module):\n  __parameters__ = []\n  def forward(self: __torch__.M,\n"
           "    x: Tensor,\n    n: int) -> Tensor:\n" +
           body;
}

TEST(TorchScript, CodeThatCannotBeReadIsNamedWithItsLine) {
    EXPECT_THAT(message([] { from_code(forward("    return x +\n")); }, Fault::input),
                HasSubstr("'m.pt': code/__torch__.py:6: '+' is not expected here"));
    EXPECT_THAT(message([] { from_code(forward("    return fork(x)\n")); }, Fault::unsupported),
                HasSubstr("code/__torch__.py:6: it calls 'fork'"));
    EXPECT_THAT(message([] { from_code(forward("    return y\n")); }, Fault::input),
                HasSubstr("'y' is not defined"));
}

TEST(TorchScript, WhatTheFileSettlesIsWorkedOut) {
    const auto model = from_code(
        forward("    if torch.gt(torch.mul(2, 3), 5):\n      y = torch.relu(x)\n    else:\n"
                "      y = torch.tanh(x)\n    return torch.add(y, torch.floordiv(-7, 2))\n"));
    EXPECT_THAT(types(model.graph), ElementsAre("relu.default", "add.Scalar"));
    EXPECT_EQ(model.graph.op(model.graph.last()).integer("other", 0), -4);
}

TEST(TorchScript, CodeThatGrowsWithoutBoundIsRefused) {
    std::string code = "def f0(x: Tensor) -> Tensor:\n  return torch.relu(x)\n";
    for (int i = 1; i < 40; ++i) {
        code += fmt::format(
            "def f{0}(x: Tensor) -> Tensor:\n  y = __torch__.f{1}(x)\n  return __torch__.f{1}(y)\n",
            i, i - 1);
    }
    EXPECT_THAT(message([&] { from_code(code + forward("    return __torch__.f39(x)\n")); },
                        Fault::unsupported),
                HasSubstr("takes too many steps to follow"));
    EXPECT_THAT(message(
                    [] {
                        from_code("def f(x: Tensor) -> Tensor:\n  return __torch__.f(x)\n" +
                                  forward("    return __torch__.f(x)\n"));
                    },
                    Fault::unsupported),
                HasSubstr("call one another too deeply"));
}

TEST(TorchScript, AValueThatLoopsChangeIsCarriedThroughAll) {
    const auto model =
        from_code(forward("    y = x\n    for i in range(n):\n      for j in range(n):\n"
                          "        _0 = torch.add_(y, i)\n    return y\n"));
    expect_valid(model.graph);
    const auto& outer = first(model.graph, "Loop");
    ASSERT_EQ(outer.outputs.size(), 1U);
    const auto& inner = first(*outer.subgraphs()[0], "Loop");
    EXPECT_EQ(inner.outputs.size(), 1U);
}

TEST(Pickle, OnlyWhatTorchScriptWritesIsRead) {
    const auto read = [](std::string_view bytes) {
        return message([&] { Pickle(std::as_bytes(std::span(bytes)), "p"); }, Fault::unsupported);
    };
    EXPECT_THAT(read("\x80\x02"
                     "cos\nsystem\n)R."),
                HasSubstr("it calls os.system | pickles are never executed"));
    EXPECT_THAT(read("\x80\x02\x95"), HasSubstr("it has the instruction 0x95"));
    EXPECT_THAT(read("\x80\x02"
                     "cos\npath\n)\x81."),
                HasSubstr("it makes an object of os.path"));
}

TEST(Pickle, BrokenOnesAreNamedWithTheirPlace) {
    const auto read = [](std::string_view bytes) {
        return message([&] { Pickle(std::as_bytes(std::span(bytes)), "p"); }, Fault::input);
    };
    EXPECT_THAT(read("\x80\x02"), HasSubstr("the pickle ends"));
    EXPECT_THAT(read("\x80\x02."), HasSubstr("a value is missing"));
    EXPECT_THAT(read("\x80\x02h\x07."), HasSubstr("it refers to value 7"));
    EXPECT_THAT(read("\x80\x02t."), HasSubstr("a mark is missing"));
}

TEST(Pickle, WhatItMakesIsBounded) {
    const auto read = [](std::string_view bytes) {
        return message([&] { Pickle(std::as_bytes(std::span(bytes)), "p"); }, Fault::input);
    };
    EXPECT_THAT(read(std::string(std::size_t{5} << 20, ']')), HasSubstr("too many values"));
    EXPECT_THAT(read(std::string(std::size_t{5} << 20, '(')), HasSubstr("too many values"));
    // One long name, of which each object would have a copy.
    auto objects = "c__torch__\n" + std::string(std::size_t{1} << 20, 'M') + "\nq\x01";
    for (int i = 0; i < 100; ++i) {
        objects += "h\x01)\x81";
    }
    EXPECT_THAT(read(objects), HasSubstr("too many values"));
}

TEST(Pickle, AListMayHoldItself) {
    const std::string_view bytes =
        "\x80\x02]q\x01h\x01"
        "a.";
    const Pickle pickle(std::as_bytes(std::span(bytes)), "p");
    EXPECT_EQ(pickle.root().items[0], &pickle.root());
}

TEST(Pickle, AModuleWhoseAttributeHoldsItselfIsRefused) {
    const auto pickle = std::string("\x80\x02") + "c__torch__\nM\n)\x81}X" +
                        std::string("\x01\0\0\0", 4) + "a]q\x01h\x01" + "asb.";
    EXPECT_THAT(message([&] { from_code(forward("    a = self.a\n    return x\n"), pickle); },
                        Fault::unsupported),
                HasSubstr("lie too deep in one another"));
}

}  // namespace
}  // namespace trocar::torchscript
