#include "formats/tensorflow/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trocar::tensorflow {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::string varint(std::size_t value) {
    std::string text;
    for (; value > 127; value >>= 7) {
        text += static_cast<char>((value & 127) | 128);
    }
    return text + static_cast<char>(value);
}
std::string field(std::size_t number, const std::string& value) {
    return varint(number << 3 | 2) + varint(value.size()) + value;
}
std::string attribute(const std::string& key, const std::string& value) {
    return field(5, field(1, key) + field(2, value));
}
std::string node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs, const std::string& attributes = "") {
    auto text = field(1, name) + field(2, op);
    for (const auto& input : inputs) {
        text += field(3, input);
    }
    return text + attributes;
}
// A constant of two texts.
std::string texts(const std::string& a, const std::string& b) {
    const std::string type_string("\x08\x07");
    const auto shape = field(2, field(2, std::string("\x08\x02")));
    return attribute("value", field(8, type_string + shape + field(8, a) + field(8, b)));
}

std::string function(const std::string& name, const std::string& second_value) {
    const auto argument = [](const std::string& one) { return field(2, field(1, one)); };
    return field(
        1, field(1, field(1, name) + argument("file") + argument("first") + argument("second")) +
               field(3, node("names", "Const", {}, texts("v/0", "v/1"))) +
               field(3, node("RestoreV2", "RestoreV2", {"file", "names:output:0", "slices"})) +
               field(3, node("Identity", "Identity", {"RestoreV2:tensors:0"})) +
               field(3, node("Identity_1", "Identity", {"RestoreV2:tensors:1"})) +
               field(3, node("a", "AssignVariableOp", {"first", "Identity_1:output:0"})) +
               field(3, node("b", "AssignVariableOp", {"second", second_value})));
}

std::map<std::string, std::string> keys(const std::string& library) {
    const auto call = node("call", "StatefulPartitionedCall", {"saver", "w", "w_1"},
                           attribute("f", field(10, field(1, "__inference__traced_restore_7"))));
    const auto bytes = std::make_shared<std::string>(call + library);
    const auto view = std::as_bytes(std::span(*bytes));
    const auto file = std::make_shared<const File>(
        File{.name = "m", .bytes = view, .owner = bytes, .folder = {}, .kind = "TensorFlow"});
    const std::vector<Node> nodes{read_node(file, view.first(call.size()), 3)};
    return restored_keys(file, nodes, view.subspan(call.size()));
}

TEST(TensorFlowRestore, OpsOfVariablesHaveTheKeysThatTheyAreGiven) {
    EXPECT_THAT(keys(function("__inference__traced_restore_7", "Identity:output:0")),
                ElementsAre(Pair("w", "v/1"), Pair("w_1", "v/0")));
}

TEST(TensorFlowRestore, WhatIsNoKeyIsLeftOut) {
    EXPECT_THAT(keys(function("__inference__traced_restore_7", "elsewhere:output:0")),
                ElementsAre(Pair("w", "v/1")));
    EXPECT_THAT(keys(function("__inference__traced_restore_7", "RestoreV2:tensors:9")),
                ElementsAre(Pair("w", "v/1")));
    EXPECT_THAT(keys(function("__inference_other", "Identity:output:0")), IsEmpty());
    EXPECT_THAT(keys(""), IsEmpty());
}

}  // namespace
}  // namespace trocar::tensorflow
