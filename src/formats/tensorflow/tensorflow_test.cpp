#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "formats/tensorflow/bundle.h"
#include "formats/tensorflow/reader.h"
#include "formats/tensorflow/snappy.h"
#include "formats/tensorflow/table.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "util/files.h"
#include "util/test_folder.h"

// Models that tests/formats/tensorflow/make.py made.
namespace trocar::tensorflow {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::filesystem::path file(const std::string& name) {
    return std::filesystem::path(TROCAR_SOURCE_DIR) / "tests/formats/tensorflow" / name;
}

Model read(const std::string& name) {
    auto model = read_path(file(name));
    EXPECT_TRUE(model.graph.verify().empty());
    for (const auto& function : model.functions) {
        EXPECT_TRUE(function->body.verify().empty());
    }
    EXPECT_TRUE(model.intact());
    return model;
}

const Op& op(const Graph& graph, const std::string& name) {
    return graph.op(graph.find_op(name).value());
}

const Tensor& tensor(const Graph& graph, const std::string& name) {
    return graph.tensor(graph.find_tensor(name).value());
}

std::string metadata(const std::vector<Property>& all, const std::string& key) {
    for (const auto& property : all) {
        if (property.key == key) {
            return property.value;
        }
    }
    return "none";
}

std::vector<std::string> names(const Graph& graph, std::span<const TensorId> ids) {
    std::vector<std::string> found;
    for (const auto id : ids) {
        found.push_back(graph.tensor(id).name);
    }
    return found;
}

std::vector<float> floats(const Constant& constant) {
    std::vector<float> values(constant.element_count());
    std::memcpy(values.data(), constant.bytes().data(), constant.bytes().size());
    return values;
}

TEST(TensorFlow, AFrozenGraph) {
    const auto model = read("frozen.pb");
    const auto& graph = model.graph;
    EXPECT_EQ(model.dialect, "tf");
    EXPECT_EQ(model.opset(), 1395);
    EXPECT_THAT(names(graph, graph.inputs()), ElementsAre("x"));
    EXPECT_EQ(type_text(tensor(graph, "x").type), "f32[?,4]");
    EXPECT_THAT(names(graph, graph.outputs()), ElementsAre("out", "odd"));
    EXPECT_THAT(names(graph, op(graph, "mul").inputs), ElementsAre("x", "weight"));
    EXPECT_EQ(metadata(op(graph, "add").metadata, "after"), "guard");
    EXPECT_THAT(names(graph, op(graph, "odd").inputs),
                ElementsAre("parts:2", "parts", "names", "half"));
    EXPECT_THAT(op(graph, "odd").integers("strides"), ElementsAre(1, 2, 2, 1));
    EXPECT_EQ(op(graph, "odd").text("label", ""), "text");
    EXPECT_EQ(op(graph, "mul").text("T", ""), "float32");
}

TEST(TensorFlow, ConstantsInAllForms) {
    const auto model = read("frozen.pb");
    const auto& weight = *tensor(model.graph, "weight").constant;
    EXPECT_EQ(weight.shape(), (Shape{4, 3}));
    EXPECT_GE(weight.bytes().data(), model.source.bytes.data());
    EXPECT_LT(weight.bytes().data(), model.source.bytes.data() + model.source.bytes.size());
    EXPECT_THAT(floats(*tensor(model.graph, "bias").constant), ElementsAre(0.5, 0.5, 0.5));
    EXPECT_THAT(tensor(model.graph, "names").constant->string_values(), ElementsAre("a", "b"));
    EXPECT_EQ(tensor(model.graph, "half").constant->dtype(), DType::f16);
    EXPECT_EQ(tensor(model.graph, "half").constant->bytes()[1], std::byte{0x3c});
    EXPECT_EQ(tensor(model.graph, "axis").constant->bytes()[0], std::byte{1});
}

TEST(TensorFlow, LoopsAreCutWhereTheyClose) {
    const auto model = read("loop.pb");
    EXPECT_EQ(metadata(op(model.graph, "merge").metadata, "back edge"), "next");
    EXPECT_EQ(op(model.graph, "merge").inputs.size(), 1u);
    EXPECT_THAT(names(model.graph, op(model.graph, "step").inputs), ElementsAre("switch:1"));
}

TEST(TensorFlow, ASavedModelWithItsVariables) {
    const auto model = load(file("saved"));
    EXPECT_EQ(model.format, "tensorflow");
    EXPECT_EQ(model.producer_version, "2.15.0");
    const auto& graph = model.graph;
    EXPECT_THAT(names(graph, graph.inputs()), ElementsAre("serving_default_x"));
    EXPECT_EQ(type_text(tensor(graph, "serving_default_x").type), "f32[?,4]");
    EXPECT_THAT(names(graph, graph.outputs()), ElementsAre("StatefulPartitionedCall"));
    EXPECT_EQ(type_text(graph.tensor(graph.outputs()[0]).type), "f32[?,1]");
    ASSERT_EQ(model.signatures.size(), 1u);
    EXPECT_EQ(model.signatures[0].name, "serving_default");
    EXPECT_EQ(model.signatures[0].inputs[0].name, "x");
    EXPECT_EQ(model.signatures[0].inputs[0].tensor, graph.inputs()[0]);
    EXPECT_EQ(model.signatures[0].outputs[0].name, "y");
    const auto& kernel = tensor(graph, "dense/kernel");
    EXPECT_EQ(kernel.constant->shape(), (Shape{4, 3}));
    EXPECT_EQ(floats(*kernel.constant)[11], 11);
    EXPECT_EQ(metadata(kernel.metadata, "kind"), "parameter");
    EXPECT_THAT(floats(*tensor(graph, "mean").constant), ElementsAre(7, 8, 9));
    EXPECT_EQ(metadata(tensor(graph, "mean").metadata, "kind"), "buffer");
    EXPECT_EQ(metadata(model.metadata, "nodes left out"), "1");
}

TEST(TensorFlow, WhatRestoresAModelTellsItsVariables) {
    const auto model = load(file("restored"));
    const auto& weight = tensor(model.graph, "w_1");
    ASSERT_TRUE(weight.constant);
    EXPECT_EQ(weight.constant->shape(), (Shape{4, 3}));
    EXPECT_THAT(names(model.graph, op(model.graph, "mul").inputs), ElementsAre("x", "w_1"));
}

TEST(TensorFlow, CallsAreReplacedByWhatTheyCall) {
    const auto model = load(file("saved"));
    const auto& graph = model.graph;
    EXPECT_TRUE(graph.verify().empty());
    EXPECT_TRUE(model.functions.empty());
    EXPECT_EQ(metadata(model.metadata, "calls inlined"), "1");
    EXPECT_THAT(names(graph, op(graph, "mul").inputs),
                ElementsAre("serving_default_x", "dense/kernel"));
    EXPECT_THAT(names(graph, op(graph, "norm").inputs),
                ElementsAre("mul", "scale", "scale", "mean", "mean"));
    EXPECT_EQ(op(graph, "norm").outputs.size(), 1u);
    EXPECT_EQ(op(graph, "two").outputs.size(), 1u);
    EXPECT_THAT(names(graph, op(graph, "two").inputs), ElementsAre("norm", "k"));
    EXPECT_EQ(graph.op_count(), 4u);
}

TEST(TensorFlow, CallsThatCannotBeReplacedStay) {
    const auto model = read("calls.pb");
    const auto& graph = model.graph;
    EXPECT_THAT(names(graph, op(graph, "layer/mul").inputs), ElementsAre("x", "x"));
    EXPECT_THAT(names(graph, op(graph, "named/more/mul").inputs),
                ElementsAre("layer/mul", "layer/mul"));
    EXPECT_EQ(op(graph, "named/more/mul").origin.module, "named.more");
    EXPECT_EQ(op(graph, "odd").type, "PartitionedCall");  // it has two inputs, the function one
    EXPECT_EQ(op(graph, "deep/again").type, "PartitionedCall");
    EXPECT_EQ(op(graph, "while").text("body", ""), "step");
    EXPECT_EQ(op(graph, "if").inputs.size(), 2u);
    std::vector<std::string> functions;
    for (const auto& function : model.functions) {
        functions.push_back(function->name);
    }
    EXPECT_THAT(functions,
                testing::UnorderedElementsAre("square", "endless", "go_on", "step", "keep"));
    for (const auto& function : model.functions) {
        if (function->name == "step") {
            EXPECT_EQ(op(function->body, "inner/mul").type, "Mul");
        }
    }
}

// Each function calls the next one twice.
TEST(TensorFlow, CallsWithoutEndAreNotReplacedWithoutEnd) {
    const auto field = [](int number, const std::string& text) {
        std::string length;
        for (auto rest = text.size(); rest != 0 || length.empty(); rest >>= 7) {
            length.push_back(static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0)));
        }
        return static_cast<char>(number << 3 | 2) + length + text;
    };
    const auto node = [&](const std::string& name, const std::string& type,
                          const std::string& input, const std::string& function) {
        auto text = field(1, name) + field(2, type);
        text += input.empty() ? "" : field(3, input);
        return text + field(5, field(1, "f") + field(2, field(10, field(1, function))));
    };
    const std::string call = "PartitionedCall";
    std::string library;
    for (int i = 0; i < 50; ++i) {
        const auto next = fmt::format("f{}", i + 1);
        library += field(1, field(1, field(1, fmt::format("f{}", i)) + field(2, field(1, "x")) +
                                         field(3, field(1, "y"))) +
                                field(3, node("a", call, "x", next)) +
                                field(3, node("b", call, "a:output:0", next)) +
                                field(4, field(1, "y") + field(2, "b:output:0")));
    }
    const auto text = field(1, node("x", "Placeholder", "", "")) +
                      field(1, node("y", call, "x", "f0")) + field(2, library);
    const auto model = read_tensorflow(std::as_bytes(std::span(text)), nullptr, "");
    EXPECT_TRUE(model.graph.verify().empty());
    EXPECT_LT(model.graph.op_count(), 1'000'000u);
}

TEST(TensorFlow, IsFoundByContent) {
    const auto found = [](const std::string& name) {
        const auto text = trocar::read_file(file(name));
        return matches(std::as_bytes(std::span(text)), file(name));
    };
    EXPECT_TRUE(found("frozen.pb"));
    EXPECT_TRUE(found("saved/saved_model.pb"));
    EXPECT_FALSE(found("make.py"));
    EXPECT_TRUE(matches({}, file("saved")));
    EXPECT_FALSE(matches({}, file("saved/variables")));
    EXPECT_EQ(load(file("saved/saved_model.pb")).format, "tensorflow");
    EXPECT_EQ(load(file("frozen.pb")).format, "tensorflow");
    EXPECT_THROW(load(file("saved/variables")), Error);
}

TEST(TensorFlow, EveryCutAndChangeIsAnErrorOrAModel) {
    for (const auto* name :
         {"frozen.pb", "calls.pb", "saved/saved_model.pb", "restored/saved_model.pb"}) {
        const auto whole = trocar::read_file(file(name));
        const auto attempt = [](const std::string& text) {
            try {
                const auto model = read_tensorflow(std::as_bytes(std::span(text)), nullptr, "");
                EXPECT_TRUE(model.graph.verify().empty());
            } catch (const Error& e) {
                EXPECT_TRUE(e.fault() == Fault::input || e.fault() == Fault::unsupported)
                    << e.what();
            }
        };
        for (std::size_t i = 1; i < whole.size(); ++i) {
            attempt(whole.substr(0, i));
            auto changed = whole;
            changed[i] = static_cast<char>(changed[i] ^ 0x15);
            attempt(changed);
        }
    }
}

TEST(TensorFlow, BrokenTablesAreErrors) {
    const auto whole = trocar::read_file(file("saved/variables/variables.index"));
    EXPECT_EQ(read_table(std::as_bytes(std::span(whole)), "'t'").size(), 5u);
    for (std::size_t i = 0; i < whole.size(); ++i) {
        for (const char change : {'\0', '\x7f', '\xff'}) {
            auto changed = whole;
            changed[i] = change;
            try {
                read_table(std::as_bytes(std::span(changed)), "'t'");
            } catch (const Error& e) {
                EXPECT_TRUE(e.fault() == Fault::input || e.fault() == Fault::unsupported);
            }
        }
        const auto cut = whole.substr(i + 1);
        EXPECT_THROW(read_table(std::as_bytes(std::span(whole).first(i)), "'t'"), Error);
    }
}

TEST(TensorFlow, SnappyRepeats) {
    const std::string packed(
        "\x0c\x08"
        "abc\x15\x03",
        7);  // abc, then 9 bytes from 3 back
    const auto bytes = unpack_snappy(std::as_bytes(std::span(packed)), 100, "'s'");
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
              "abcabcabcabc");
    EXPECT_THROW(unpack_snappy(std::as_bytes(std::span(packed)), 11, "'s'"), Error);
    for (const std::string& broken : {std::string("\x0c\x08"
                                                  "abc\x15\x04",
                                                  7),
                                      std::string("\x0c\x08"
                                                  "ab",
                                                  4),
                                      std::string("\x0b\x08"
                                                  "abc\x15\x03",
                                                  7),
                                      std::string("\xff\xff\xff\xff\xff\xff", 6), std::string()}) {
        EXPECT_THROW(unpack_snappy(std::as_bytes(std::span(broken)), 100, "'s'"), Error);
    }
}

TEST(TensorFlow, AMissingShardIsAnError) {
    const TestFolder folder;
    std::filesystem::copy(file("saved"), folder / "m", std::filesystem::copy_options::recursive);
    std::filesystem::remove(folder / "m/variables/variables.data-00000-of-00001");
    EXPECT_THROW(read_path(folder / "m"), Error);
    std::filesystem::remove_all(folder / "m/variables");
    const auto model = read_path(folder / "m");
    EXPECT_EQ(op(model.graph, "dense/kernel").type, "VarHandleOp");
    EXPECT_EQ(op(model.graph, "read").type, "ReadVariableOp");
}

}  // namespace
}  // namespace trocar::tensorflow
