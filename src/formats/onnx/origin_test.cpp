#include "formats/onnx/origin.h"

#include <gtest/gtest.h>

namespace trocar::onnx {
namespace {

TEST(Origin, NodeNamesAreModulePaths) {
    EXPECT_EQ(module_of_name("/layer1/layer1.0/conv1/Conv"), "layer1.0.conv1");
    EXPECT_EQ(module_of_name("/features/features.3/conv/conv.0/conv.0.0/Conv"),
              "features.3.conv.0.0");
    EXPECT_EQ(module_of_name("/conv1/Conv_2"), "conv1");
    EXPECT_EQ(module_of_name("/Flatten"), "");
    EXPECT_EQ(module_of_name("Conv_0"), "");
    EXPECT_EQ(module_of_name(""), "");
    EXPECT_EQ(module_of_name("/"), "");
    EXPECT_EQ(module_of_name("//a//b/Op"), "a.b");
}

TEST(Origin, AComponentThatOnlyBeginsAlikeIsANewOne) {
    EXPECT_EQ(module_of_name("/layer1/layer10/Add"), "layer1.layer10");
}

TEST(Origin, PythonListsOfStringsAreRead) {
    using Texts = std::vector<std::string>;
    EXPECT_EQ(parse_python_strings("['', 'layer1', 'layer1.0']"),
              (Texts{"", "layer1", "layer1.0"}));
    EXPECT_EQ(parse_python_strings("[\"it's\", 'a\\'b\\\\c']"), (Texts{"it's", "a'b\\c"}));
    EXPECT_EQ(parse_python_strings("[]"), Texts{});
    for (const auto* broken : {"", "[", "['a'", "['a' 'b']", "['a", "['a\\", "[1]", "a"}) {
        EXPECT_EQ(parse_python_strings(broken), Texts{}) << broken;
    }
}

TEST(Origin, MetadataGoesBeforeTheName) {
    const auto origin = find_origin(
        "node_conv2d", {{"pkg.torch.onnx.name_scopes", "['', 'layer1', 'layer1.0', 'conv2d']"},
                        {"pkg.torch.onnx.stack_trace", "File \"model.py\", line 42"}});
    EXPECT_EQ(origin.module, "layer1.0");
    EXPECT_EQ(origin.source, "File \"model.py\", line 42");
    EXPECT_EQ(find_origin("n", {{"namespace",
                                 ": ResNet/layer1: Sequential/layer1.0.conv1: "
                                 "Conv2d/conv2d: aten.conv2d.default"}})
                  .module,
              "layer1.0.conv1");
    EXPECT_EQ(find_origin("/a/b/Add", {{"pkg.torch.onnx.name_scopes", "nonsense"}}).module, "a.b");
}

}  // namespace
}  // namespace trocar::onnx
