#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "formats/mxnet/attributes.h"
#include "formats/mxnet/params.h"
#include "formats/mxnet/reader.h"
#include "trocar/error.h"
#include "util/files.h"
#include "util/test_folder.h"

// Models that tests/formats/mxnet/make.py made.
namespace trocar::mxnet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::filesystem::path file(const std::string& name) {
    return std::filesystem::path(TROCAR_SOURCE_DIR) / "tests/formats/mxnet" / name;
}

Model read(const std::string& name) {
    auto model = read_file(file(name));
    EXPECT_TRUE(model.graph.verify().empty());
    EXPECT_FALSE(model.graph.edited());
    return model;
}

const Op& op(const Model& model, const std::string& name) {
    return model.graph.op(model.graph.find_op(name).value());
}

const Tensor& tensor(const Model& model, const std::string& name) {
    return model.graph.tensor(model.graph.find_tensor(name).value());
}

std::string metadata(const std::vector<Property>& all, const std::string& key) {
    for (const auto& property : all) {
        if (property.key == key) {
            return property.value;
        }
    }
    return "none";
}

std::vector<std::string> names(const Model& model, std::span<const TensorId> ids) {
    std::vector<std::string> found;
    for (const auto id : ids) {
        found.push_back(model.graph.tensor(id).name);
    }
    return found;
}

TEST(Mxnet, ASymbolAndTheArraysBesideIt) {
    const auto model = read("net-symbol.json");
    EXPECT_EQ(model.dialect, "mxnet");
    EXPECT_EQ(model.producer_version, "1.9.1");
    EXPECT_EQ(metadata(model.metadata, "framework"), "ours");
    EXPECT_EQ(metadata(model.metadata, "arrays"), "net-0003.params");
    EXPECT_THAT(names(model, model.graph.inputs()), ElementsAre("data", "softmax_label"));
    EXPECT_THAT(names(model, model.graph.outputs()), ElementsAre("softmax_output"));
    EXPECT_EQ(type_text(tensor(model, "data").type), "f32[?,3,8,8]");
    const auto& conv = op(model, "conv0");
    EXPECT_EQ(conv.type, "Convolution");
    EXPECT_THAT(names(model, conv.inputs), ElementsAre("data", "conv0_weight", "conv0_bias"));
    EXPECT_THAT(conv.integers("kernel"), ElementsAre(3, 3));
    EXPECT_EQ(conv.integer("num_filter", 0), 4);
    EXPECT_EQ(conv.integer("no_bias", 1), 0);
    EXPECT_THAT(names(model, op(model, "bn0").outputs), ElementsAre("bn0_output"));
    EXPECT_EQ(metadata(tensor(model, "softmax_label").metadata, "kind"), "label");
    EXPECT_THAT(names(model, op(model, "concat0").inputs),
                ElementsAre("halves_output1", "halves_output0"));
    const auto& weight = tensor(model, "conv0_weight");
    EXPECT_EQ(weight.constant->shape(), (Shape{4, 3, 3, 3}));
    EXPECT_EQ(metadata(weight.metadata, "kind"), "parameter");
    EXPECT_EQ(metadata(weight.metadata, "__lr_mult__"), "2.0");
    EXPECT_EQ(metadata(tensor(model, "bn0_moving_mean").metadata, "kind"), "buffer");
}

TEST(Mxnet, TheArraysMayBeGivenInstead) {
    const auto model = read("net-0001.params");
    EXPECT_EQ(model.path.filename(), "net-symbol.json");
    EXPECT_EQ(tensor(model, "fc_bias").constant->dtype(), DType::f64);
}

TEST(Mxnet, OldAndRareForms) {
    const auto model = read("loop.json");
    EXPECT_EQ(tensor(model, "start").constant->shape(), Shape{2});
    EXPECT_EQ(tensor(model, "old_weight").constant->shape(), (Shape{3, 2}));
    EXPECT_EQ(tensor(model, "half").constant->dtype(), DType::f16);
    EXPECT_EQ(tensor(model, "flags").constant->dtype(), DType::boolean);
    EXPECT_EQ(tensor(model, "plain").constant->dtype(), DType::i64);
    EXPECT_EQ(tensor(model, "one").constant->shape(), Shape{});
    EXPECT_EQ(op(model, "old").integer("num_hidden", 0), 3);
    EXPECT_EQ(metadata(model.metadata, "array without elements"), "arg:none");
    EXPECT_EQ(metadata(model.metadata, "unused array"), "extra");
    const auto values = [&](const char* name) {
        const auto dense = densify(*tensor(model, name).constant);
        std::vector<float> found(dense.element_count());
        std::memcpy(found.data(), dense.bytes().data(), dense.bytes().size());
        return found;
    };
    EXPECT_THAT(values("table"), ElementsAre(0, 0, 0, 1, 0, 0, 0, 0, 2, 3, 0, 0));
    EXPECT_THAT(values("graph"), ElementsAre(0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0));
}

TEST(Mxnet, BodiesAreGraphs) {
    const auto model = read("loop.json");
    const auto& loop = op(model, "loop");
    ASSERT_EQ(loop.subgraphs().size(), 1u);
    EXPECT_EQ(loop.subgraphs()[0]->inputs().size(), 2u);
    EXPECT_EQ(loop.subgraphs()[0]->outputs().size(), 2u);
    EXPECT_EQ(loop.outputs.size(), 2u);
}

TEST(Mxnet, AttributesHaveTheirNaturalKinds) {
    EXPECT_EQ(std::get<std::int64_t>(read_attribute("64")), 64);
    EXPECT_EQ(std::get<std::int64_t>(read_attribute("True")), 1);
    EXPECT_EQ(std::get<float>(read_attribute("1e-05")), 1e-5F);
    EXPECT_THAT(std::get<std::vector<std::int64_t>>(read_attribute("(1L, 2L)")), ElementsAre(1, 2));
    EXPECT_THAT(std::get<std::vector<std::int64_t>>(read_attribute("(3,)")), ElementsAre(3));
    EXPECT_TRUE(std::get<std::vector<std::int64_t>>(read_attribute("()")).empty());
    EXPECT_THAT(std::get<std::vector<float>>(read_attribute("[1, 0.5]")), ElementsAre(1, 0.5));
    for (const char* text : {"relu", "None", "[[1, 2]]", "", "(", "1,2", "nan", "(a, b)", "0x10"}) {
        EXPECT_EQ(std::get<std::string>(read_attribute(text)), text);
    }
}

TEST(Mxnet, IsFoundByContent) {
    const auto head = [](const std::string& name) { return trocar::read_file(file(name)); };
    const auto found = [&](const std::string& name) {
        const auto text = head(name);
        return matches(std::as_bytes(std::span(text)), file(name));
    };
    EXPECT_TRUE(found("net-symbol.json"));
    EXPECT_TRUE(found("loop.json"));
    EXPECT_TRUE(found("net-0003.params"));
    EXPECT_FALSE(found("make.py"));
}

TEST(Mxnet, ArraysWithoutASymbolAreAnError) {
    const TestFolder folder;
    std::filesystem::copy_file(file("loop.params"), folder / "alone.params");
    try {
        read_file(folder / "alone.params");
        FAIL();
    } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("no symbol beside it"));
        EXPECT_THAT(e.hint(), HasSubstr("alone-symbol.json"));
    }
}

std::string fault(std::string_view symbol, std::string_view arrays = {}) {
    try {
        read_mxnet(symbol, std::as_bytes(std::span(arrays.data(), arrays.size())), nullptr, "'s'",
                   "'a'");
    } catch (const Error& e) {
        EXPECT_TRUE(e.fault() == Fault::input || e.fault() == Fault::unsupported);
        return e.what();
    }
    return "no error";
}

TEST(Mxnet, BrokenSymbolsAreErrors) {
    EXPECT_EQ(fault(R"({"nodes":[],"heads":[]})"), "no error");
    for (const char* symbol :
         {"", "[]", "{", "{}", R"({"nodes":3})", R"({"nodes":[3]})", R"({"nodes":[{"op":"null"}]})",
          R"({"nodes":[{"op":"null","name":""}]})", R"({"nodes":[],"heads":[[0,0]]})",
          R"({"nodes":[{"op":"null","name":"x"},{"op":"null","name":"x"}]})",
          R"({"nodes":[{"op":"f","name":"f","inputs":[[0,0]]}]})",
          R"({"nodes":[{"op":"f","name":"f","inputs":[[-1,0]]}]})",
          R"({"nodes":[{"op":"f","name":"f","inputs":[[0]]}]})",
          R"({"nodes":[{"op":"f","name":"f","inputs":[[0,99999999]]}]})",
          R"({"nodes":[{"op":"f","name":"f","inputs":[]}],"node_row_ptr":[0,-5]})",
          R"({"nodes":[{"op":"null","name":"x"}],"heads":[[0,40000]]})"}) {
        EXPECT_NE(fault(symbol), "no error") << symbol;
    }
}

TEST(Mxnet, BrokenArraysAreErrors) {
    const auto whole = trocar::read_file(file("loop.params"));
    for (std::size_t size = 1; size < whole.size(); ++size) {
        EXPECT_NE(fault(R"({"nodes":[]})", whole.substr(0, size)), "no error") << size;
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
        for (const char change : {'\0', '\x7f', '\xff'}) {
            auto changed = whole;
            changed[i] = change;
            fault(R"({"nodes":[]})", changed);
        }
    }
}

}  // namespace
}  // namespace trocar::mxnet
