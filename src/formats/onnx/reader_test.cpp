#include "formats/onnx/reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/onnx/test_models.h"

namespace trocar::onnx {
namespace {

using namespace schema;
using test::failure;

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

std::vector<std::string> types(const Graph& graph) {
    std::vector<std::string> all;
    for (const auto id : graph.ops()) {
        all.push_back(graph.op(id).type);
    }
    return all;
}

TEST(Reader, ReadsOpsTensorsAndModel) {
    const auto model = test::read(test::small_model());
    EXPECT_EQ(model.format, "onnx");
    EXPECT_EQ(model.ir_version, 10);
    EXPECT_EQ(model.opset(), 20);
    EXPECT_EQ(model.graph.name, "small");
    EXPECT_EQ(types(model.graph), (test::Names{"Relu", "Add"}));
    const auto& relu = model.graph.op(model.graph.first());
    EXPECT_EQ(relu.name, "/block/relu/Relu");
    EXPECT_EQ(relu.origin.module, "block.relu");
    EXPECT_EQ(type_text(model.graph.tensor(*model.graph.find_tensor("a")).type), "f32[2]");
    EXPECT_TRUE(model.graph.tensor(*model.graph.find_tensor("w")).constant);
    EXPECT_TRUE(model.graph.verify().empty());
    EXPECT_TRUE(model.intact());
}

TEST(Reader, AttributesOfAllKinds) {
    Rope packed;
    packed.text(attribute::ints, std::string_view("\x01\x02", 2));
    Rope real;
    real.real(attribute::f, 0.5F);
    Rope untyped = test::join({test::text(attribute::name, "old"), test::integer(attribute::i, 4)});
    Rope unset = test::attribute("unset", AttributeKind::i, {});
    Rope strange = test::join({test::text(attribute::name, "new"), test::text(99, "?"),
                               test::integer(attribute::kind, 77)});
    const auto model = test::read(test::model(test::graph(
        {test::node("Op", {}, {"y"}, "",
                    {test::attribute("ints", AttributeKind::ints, packed),
                     test::attribute("real", AttributeKind::f, real),
                     test::attribute("text", AttributeKind::s, test::text(attribute::s, "t")),
                     test::attribute("value", AttributeKind::t,
                                     test::message(attribute::t, test::tensor("", DType::u8, {1},
                                                                              test::raw("z")))),
                     untyped, unset, strange}),
         test::output("y")})));
    const auto& op = model.graph.op(model.graph.first());
    EXPECT_EQ(op.integers("ints"), (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(std::get<float>(op.attribute("real")->value), 0.5F);
    EXPECT_EQ(op.text("text", ""), "t");
    EXPECT_EQ(std::get<Constant>(op.attribute("value")->value).dtype(), DType::u8);
    EXPECT_EQ(op.integer("old", 0), 4);
    EXPECT_EQ(op.integer("unset", 7), 0);
    EXPECT_TRUE(std::holds_alternative<std::monostate>(op.attribute("new")->value));
}

TEST(Reader, SubgraphsCaptureThroughLevels) {
    const auto innermost = test::graph({test::node("Add", {"x", "b"}, {"t"}), test::output("t")});
    const auto body = test::graph(
        {test::node("Neg", {"a"}, {"b"}),
         test::node("If", {"c"}, {"u"}, "", {test::graph_attribute("then_branch", innermost)}),
         test::output("u")});
    const auto model = test::read(test::model(test::graph(
        {test::node("Relu", {"x"}, {"a"}),
         test::node("If", {"c"}, {"y"}, "", {test::graph_attribute("then_branch", body)}),
         test::input("x"), test::input("c"), test::output("y")})));
    const auto& outer = model.graph.op(model.graph.last());
    ASSERT_EQ(outer.subgraphs().size(), 1U);
    const auto& middle = *outer.subgraphs()[0];
    std::vector<std::string> captured;
    for (const auto id : middle.captured()) {
        captured.push_back(middle.tensor(id).name);
    }
    std::sort(captured.begin(), captured.end());
    EXPECT_EQ(captured, (test::Names{"a", "c", "x"}));
    EXPECT_EQ(outer.captures.size(), 3U);
    EXPECT_TRUE(model.graph.verify().empty());
}

TEST(Reader, ANameThatNobodyDefinesIsRefused) {
    const auto body = test::graph({test::node("Neg", {"nowhere"}, {"t"}), test::output("t")});
    EXPECT_TRUE(contains(
        failure(test::model(test::graph(
            {test::node("If", {"x"}, {"y"}, "pick", {test::graph_attribute("then_branch", body)}),
             test::input("x")}))),
        "op 0 (If 'pick') reads tensor 'nowhere', which nothing defines"));
    EXPECT_TRUE(contains(failure(test::model(test::graph({test::output("y")}))),
                         "output 'y' is a tensor that nothing defines"));
}

TEST(Reader, OpsOutOfOrderAreSorted) {
    const auto bytes =
        test::model(test::graph({test::node("C", {"b"}, {"y"}), test::node("B", {"a"}, {"b"}),
                                 test::node("A", {"x"}, {"a"}), test::node("D", {"x"}, {"z"}),
                                 test::input("x"), test::output("y")}));
    EXPECT_EQ(types(test::read(bytes).graph), (test::Names{"A", "B", "C", "D"}));
}

TEST(Reader, ACycleIsRefusedAtAnOpOnIt) {
    const auto sentence = failure(test::model(
        test::graph({test::node("After", {"b"}, {"y"}), test::node("B", {"a"}, {"b"}, "one"),
                     test::node("A", {"b", "x"}, {"a"}, "two"), test::input("x")})));
    EXPECT_TRUE(contains(sentence, "is on a cycle"));
    EXPECT_TRUE(contains(sentence, "'one'") || contains(sentence, "'two'")) << sentence;
    EXPECT_TRUE(contains(failure(test::model(test::graph({test::node("A", {"a"}, {"a"})}))),
                         "is on a cycle"));
}

TEST(Reader, TwoDefinitionsOfATensorAreRefused) {
    EXPECT_TRUE(contains(failure(test::model(test::graph(
                             {test::node("A", {}, {"t"}), test::node("B", {}, {"t"}, "b")}))),
                         "op 1 (B 'b') writes tensor 't', which is also"));
    EXPECT_TRUE(
        contains(failure(test::model(test::graph({test::node("A", {}, {"x"}), test::input("x")}))),
                 "also an input"));
    EXPECT_TRUE(contains(
        failure(test::model(test::graph({test::initializer("w"), test::initializer("w")}))),
        "two initializers have the name 'w'"));
    EXPECT_TRUE(contains(failure(test::model(test::graph({test::input("x"), test::input("x")}))),
                         "two inputs have the name 'x'"));
    EXPECT_EQ(failure(test::model(test::graph({test::input("w"), test::initializer("w")}))), "");
}

TEST(Reader, WhatIsNoModelIsSaidToBeNone) {
    EXPECT_EQ(failure(""), "'bad.onnx' is empty");
    EXPECT_EQ(failure(test::integer(model::ir_version, 8).str()), "'bad.onnx' holds no graph");
    EXPECT_TRUE(contains(failure("hello, world"), "'bad.onnx' is not a valid ONNX file"));
    EXPECT_TRUE(contains(failure(test::small_model() + test::message(model::graph, {}).str()),
                         "second graph"));
    const auto bytes = test::small_model();
    for (std::size_t size = 1; size < bytes.size(); ++size) {
        failure(bytes.substr(0, size));  // must not crash
    }
}

TEST(Reader, DeepNestingIsRefused) {
    auto body = test::graph({test::node("A", {}, {"t"})});
    for (int i = 0; i < 200; ++i) {
        body = test::graph({test::node("If", {}, {"t"}, "", {test::graph_attribute("b", body)})});
    }
    EXPECT_TRUE(contains(failure(test::model(body)), "nested over 100 deep"));
    Rope type = test::message(type::tensor, {});
    for (int i = 0; i < 200; ++i) {
        type = test::message(type::sequence, test::message(type::element, type));
    }
    EXPECT_TRUE(contains(failure(test::model(test::graph({test::message(
                             graph::input, test::join({test::text(value_info::name, "x"),
                                                       test::message(value_info::type, type)}))}))),
                         "nested over 100 deep"));
}

Rope function(std::string_view name, Rope node) {
    const auto bytes = node.str();
    const File file{"", std::as_bytes(std::span(bytes)), nullptr, {}, false};
    Fields at(file, file.bytes);
    at.next();
    return test::message(
        model::function,
        test::join({test::text(function::name, name), test::text(function::input, "a"),
                    test::text(function::output, "b"), test::text(function::node, at.text()),
                    test::text(function::domain, "own")}));
}

Rope call(std::string_view name) {
    auto inside = test::join({test::text(node::input, "a"), test::text(node::output, "b"),
                              test::text(node::type, name), test::text(node::domain, "own")});
    return test::message(graph::node, inside);
}

TEST(Reader, FunctionsAreGraphs) {
    const auto model = test::read(test::model(
        test::graph({test::input("x")}), {function("Twice", test::node("Relu", {"a"}, {"b"}))}));
    ASSERT_EQ(model.functions.size(), 1U);
    EXPECT_EQ(model.functions[0]->name, "Twice");
    EXPECT_EQ(types(model.functions[0]->body), test::Names{"Relu"});
    EXPECT_EQ(model.functions[0]->body.inputs().size(), 1U);
}

TEST(Reader, FunctionsThatCallThemselvesAreRefused) {
    EXPECT_TRUE(
        contains(failure(test::model({}, {function("F", call("G")), function("G", call("F"))})),
                 "calls itself"));
    EXPECT_EQ(failure(test::model({}, {function("F", call("G")), function("G", call("H"))})), "");
}

TEST(Reader, ExternalDataIsMappedAndChecked) {
    const test::Folder folder;
    write_file(folder / "w.bin", "....abcdefgh");
    const auto model_of = [&](std::string_view location, std::string_view offset,
                              std::string_view length) {
        write_file(
            folder / "m.onnx",
            test::model(test::graph({test::message(
                graph::initializer,
                test::tensor("w", DType::f32, {2}, test::external(location, offset, length)))})));
        return read_file(folder / "m.onnx");
    };
    const auto why = [&](std::string_view location, std::string_view offset = "",
                         std::string_view length = "") -> std::string {
        try {
            model_of(location, offset, length);
        } catch (const Error& e) {
            return e.fault() == Fault::input ? e.what() : "another fault";
        }
        return {};
    };
    const auto model = model_of("w.bin", "4", "8");
    const auto& constant = *model.graph.tensor(*model.graph.find_tensor("w")).constant;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(constant.bytes().data()), 8), "abcdefgh");
    EXPECT_EQ(constant.external()->offset, 4U);
    EXPECT_EQ(model.external_bytes, 12U);
    EXPECT_EQ(why("w.bin", "4"), "");
    EXPECT_TRUE(contains(why("w.bin", "5"), "runs past the end of that file"));
    EXPECT_TRUE(contains(why("w.bin", "18446744073709551615", "8"), "runs past the end"));
    EXPECT_TRUE(contains(why("w.bin", "0", "4"), "takes 8 bytes"));
    EXPECT_TRUE(contains(why("w.bin", "x"), "no number"));
    EXPECT_TRUE(contains(why("none.bin"), "cannot be opened"));
    EXPECT_TRUE(contains(why("../w.bin"), "leads out of the model's folder"));
    EXPECT_TRUE(contains(why("/etc/passwd"), "an absolute path"));
    EXPECT_TRUE(contains(why(""), "no name of a file"));
    EXPECT_TRUE(contains(why("."), "cannot be read"));
    const test::Folder other;
    write_file(other / "w.bin", "....abcdefgh");
    std::filesystem::create_symlink(other / "w.bin", folder / "link.bin");
    EXPECT_TRUE(contains(why("link.bin", "4"), "outside of the model's folder"));
    std::filesystem::create_symlink("w.bin", folder / "inside.bin");
    EXPECT_EQ(why("inside.bin", "4"), "");
}

TEST(Reader, IsLinear) {
    // A hundred thousand ops in the worst order: would take hours if it were quadratic.
    std::vector<Rope> fields;
    constexpr int count = 100000;
    for (int i = count; i > 0; --i) {
        fields.push_back(test::node("Relu", {fmt::format("t{}", i - 1)}, {fmt::format("t{}", i)}));
    }
    fields.push_back(test::input("t0"));
    fields.push_back(test::output(fmt::format("t{}", count)));
    const auto model = test::read(test::model(test::graph(std::move(fields))));
    EXPECT_EQ(model.graph.op_count(), static_cast<std::size_t>(count));
}

}  // namespace
}  // namespace trocar::onnx
