#include "formats/onnx/writer.h"

#include <gtest/gtest.h>

#include "formats/onnx/test_models.h"

namespace trocar::onnx {
namespace {

using namespace schema;

std::string written(const Model& model) {
    return write_model(model, keep_places()).str();
}

TensorId tensor(const Model& model, std::string_view name) {
    return *model.graph.find_tensor(name);
}

// `bytes` with its only occurrence of `from` replaced.
std::string replaced(std::string bytes, std::string_view from, std::string_view to) {
    const auto at = bytes.find(from);
    EXPECT_NE(at, bytes.npos);
    EXPECT_EQ(bytes.find(from, at + 1), bytes.npos);
    return bytes.replace(at, from.size(), to);
}

TEST(Writer, AnUneditedModelIsTheSameBytes) {
    const auto unsorted = test::model(
        test::graph({test::node("B", {"a"}, {"y"}), test::node("A", {"x"}, {"a"}), test::input("x"),
                     test::output("y"), test::text(graph::name, "one"),
                     test::text(graph::name, "two"),  // the last one counts
                     test::message(graph::value_info, test::declared("stale")),
                     test::message(graph::value_info, test::declared("y"))}),
        {test::text(99, "unknown"), test::text(model::producer, "")});
    for (const auto& bytes : {test::small_model(), unsorted}) {
        const auto model = test::read(bytes);
        EXPECT_TRUE(write_model(model, keep_places()).is(model.source.bytes));
    }
}

TEST(Writer, AnEditChangesNothingElse) {
    const auto bytes = test::small_model({test::text(77, "unknown")});
    auto model = test::read(bytes);
    model.graph.rename(tensor(model, "a"), "b");
    model.graph.rename(tensor(model, "b"), "a");
    EXPECT_EQ(written(model), bytes);
    model.graph.rename(model.graph.last(), "sum");
    EXPECT_EQ(written(model), replaced(bytes, "add", "sum"));
}

TEST(Writer, ModelFieldsAreComparedWithTheFile) {
    const auto bytes = test::model(test::graph({}),
                                   {test::text(model::producer, "abc"), test::text(98, "unknown")});
    auto model = test::read(bytes);
    model.producer = "xyz";
    EXPECT_EQ(written(model), replaced(bytes, "abc", "xyz"));
    model.producer = "abc";
    model.metadata.push_back({"k", "v"});
    const auto entry = test::message(
        model::metadata,
        test::join({test::text(property::key, "k"), test::text(property::value, "v")}));
    EXPECT_EQ(written(model), bytes + entry.str());
}

TEST(Writer, ARenamedTensorIsRenamedEverywhere) {
    auto model = test::read(test::small_model());
    model.graph.rename(tensor(model, "a"), "between");
    model.graph.rename(tensor(model, "w"), "weights");
    const auto again = test::read(written(model));
    EXPECT_EQ(again.graph.tensor_count(), model.graph.tensor_count());
    EXPECT_EQ(type_text(again.graph.tensor(tensor(again, "between")).type), "f32[2]");
    EXPECT_EQ(again.graph.tensor(tensor(again, "weights")).constant->bytes().size(), 8U);
}

TEST(Writer, OpsComeAndGo) {
    const auto bytes = test::small_model({test::text(77, "unknown")});
    auto model = test::read(bytes);
    model.graph.remove(model.graph.first());
    const auto one = test::read(written(model));
    EXPECT_EQ(one.graph.op_count(), 1U);
    EXPECT_FALSE(one.graph.find_tensor("a"));
    EXPECT_NE(written(model).find("unknown"), std::string::npos);
    OpSpec squash;
    squash.type = "Tanh";
    model.graph.insert_on(tensor(model, "y"), squash);
    const auto two = test::read(written(model));
    EXPECT_EQ(two.graph.op(two.graph.last()).type, "Tanh");
    EXPECT_TRUE(two.graph.verify().empty());
}

TEST(Writer, ConstantsChangeKind) {
    auto model = test::read(test::small_model());
    const auto w = tensor(model, "w");
    model.graph.set_constant(w, Constant::of<std::int64_t>(DType::i64, {1}, {5}));
    auto again = test::read(written(model));
    EXPECT_EQ(again.graph.tensor(tensor(again, "w")).constant->dtype(), DType::i64);
    model.graph.set_constant(w, Constant::sparse({2}, Constant::of<float>(DType::f32, {1}, {1.0F}),
                                                 Constant::of<std::int64_t>(DType::i64, {1}, {1})));
    again = test::read(written(model));
    EXPECT_TRUE(again.graph.tensor(tensor(again, "w")).constant->is_sparse());
    EXPECT_EQ(again.graph.tensor_count(), model.graph.tensor_count());
    model.graph.set_constant(w, Constant::strings({1}, {"text"}));
    again = test::read(written(model));
    EXPECT_EQ(again.graph.tensor(tensor(again, "w")).constant->string_values()[0], "text");
}

TEST(Writer, AttributesOfAllKindsAreWrittenAndReadAgain) {
    auto model = test::read(test::small_model());
    const auto op = model.graph.first();
    const std::vector<Attribute::Value> values{
        std::int64_t{0},
        0.0F,
        std::string(),
        Constant::of<float>(DType::f32, {1}, {2.0F}),
        Type::tensor(DType::f16),
        std::vector<std::int64_t>{1, -1},
        std::vector<float>{1.5F},
        std::vector<std::string>{"a", ""},
        std::vector<Constant>{Constant::of<float>(DType::f32, {1}, {2.0F})},
        std::vector<Type>{Type::tensor(DType::i8)},
    };
    for (const auto& value : values) {
        model.graph.set_attribute(op, "it", value);
        const auto again = test::read(written(model));
        const auto* read = again.graph.op(again.graph.first()).attribute("it");
        ASSERT_NE(read, nullptr);
        EXPECT_EQ(read->value.index(), value.index());
    }
    model.graph.remove_attribute(op, "it");
    EXPECT_EQ(written(model), test::small_model());
}

TEST(Writer, EditsInsideSubgraphsAreFound) {
    const auto body = test::graph({test::node("Neg", {"a"}, {"t"}, "inner"), test::output("t")});
    const auto bytes = test::model(test::graph(
        {test::node("Relu", {"x"}, {"a"}),
         test::node("If", {"x"}, {"y"}, "", {test::graph_attribute("then_branch", body)}),
         test::input("x"), test::output("y")}));
    auto model = test::read(bytes);
    const auto inside = model.graph.op(model.graph.last()).subgraphs()[0];
    inside->rename(inside->first(), "INNER");
    EXPECT_EQ(written(model), replaced(bytes, "inner", "INNER"));
    inside->rename(inside->first(), "inner");
    model.graph.rename(tensor(model, "a"), "long_name");
    const auto again = test::read(written(model));
    EXPECT_EQ(again.graph.op(again.graph.last()).captures.size(), 1U);
    EXPECT_TRUE(again.graph.find_tensor("long_name"));
}

TEST(Writer, QuantizationAnnotationsFollowTheirTensors) {
    Rope note;
    note.text(annotation::tensor, "a");
    note.message(annotation::parameter, test::join({test::text(property::key, "SCALE_TENSOR"),
                                                    test::text(property::value, "w")}));
    const auto bytes = test::small_model({test::message(graph::quantization, note)});
    auto model = test::read(bytes);
    model.graph.rename(tensor(model, "a"), "aaaa");
    model.graph.rename(tensor(model, "w"), "wwww");
    const auto text = written(model);
    Rope renamed;
    renamed.text(annotation::tensor, "aaaa");
    renamed.message(annotation::parameter, test::join({test::text(property::key, "SCALE_TENSOR"),
                                                       test::text(property::value, "wwww")}));
    EXPECT_NE(text.find(renamed.str()), std::string::npos);
}

TEST(Writer, AnExtractedPartTakesItsOpsAsTheyAre) {
    const auto model = test::read(test::small_model());
    const auto from = tensor(model, "a");
    const auto to = tensor(model, "y");
    const auto part = extract(model, std::span(&from, 1), std::span(&to, 1));
    const auto text = written(part);
    EXPECT_NE(text.find(test::node("Add", {"a", "w"}, {"y"}, "add").str()), std::string::npos);
    EXPECT_NE(text.find(test::initializer("w").str()), std::string::npos);
    const auto again = test::read(text);
    EXPECT_EQ(again.graph.op_count(), 1U);
    EXPECT_EQ(type_text(again.graph.tensor(again.graph.inputs()[0]).type), "f32[2]");
}

TEST(Writer, ANewModelIsEncodedFromScratch) {
    Model model;
    model.dialect = "onnx";
    model.ir_version = 10;
    model.opsets = {{"", 20}};
    const std::int64_t shape[] = {1};
    const auto x = model.graph.add_input("x", Type::tensor(DType::f32, shape));
    const auto one = model.graph.add_constant("one", Constant::of<float>(DType::f32, {1}, {1.0F}));
    const auto y = model.graph.add_tensor("y", Type::tensor(DType::f32, shape));
    OpSpec add;
    add.type = "Add";
    add.inputs = {x, one};
    add.outputs = {y};
    model.graph.append(add);
    model.graph.set_outputs({y});
    const auto again = test::read(written(model));
    EXPECT_EQ(again.opsets, model.opsets);
    EXPECT_EQ(again.graph.op_count(), 1U);
    EXPECT_EQ(type_text(again.graph.tensor(again.graph.outputs()[0]).type), "f32[1]");
    model.dialect = "tflite";
    EXPECT_THROW(written(model), Error);
}

TEST(Encode, LargeConstantsAreLeftOut) {
    const auto model = test::read(test::small_model());
    EXPECT_EQ(encode(model, {}).bytes, test::small_model());
    const auto encoded = encode(model, {.leave_out_from = 8});
    ASSERT_EQ(encoded.left_out.size(), 1U);
    EXPECT_EQ(encoded.left_out[0].first, "w");
    EXPECT_EQ(encoded.left_out[0].second.bytes().size(), 8U);
    EXPECT_EQ(encoded.bytes.find("abcdefgh"), std::string::npos);
    EXPECT_NE(encoded.bytes.find("*trocar*"), std::string::npos);
    EXPECT_TRUE(encode(model, {.leave_out_from = 9}).left_out.empty());
}

// A model with external data "w.bin" in a folder.
class External : public testing::Test {
protected:
    External() {
        trocar::write_file(folder_ / "w.bin", "....abcdefgh");
        bytes_ = test::model(test::graph(
            {test::node("Add", {"x", "w"}, {"y"}),
             test::message(graph::initializer,
                           test::tensor("w", DType::f32, {2}, test::external("w.bin", "4", "8"))),
             test::input("x"), test::output("y")}));
        trocar::write_file(folder_ / "m.onnx", bytes_);
    }
    static std::string data_of(const std::filesystem::path& path) {
        const auto model = read_file(path);
        const auto bytes = model.graph.tensor(tensor(model, "w")).constant->bytes();
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    test::Folder folder_;
    test::Folder other_;
    std::string bytes_;
};

TEST_F(External, IsCopiedBesideTheNewFile) {
    const auto model = read_file(folder_ / "m.onnx");
    write_file(model, other_ / "m.onnx", {});
    EXPECT_EQ(trocar::read_file(other_ / "m.onnx"), bytes_);
    EXPECT_EQ(trocar::read_file(other_ / "w.bin"), "....abcdefgh");
    write_file(model, other_ / "m.onnx", {});  // the same again is no conflict
    write_file(model, folder_ / "copy.onnx", {});
    EXPECT_EQ(data_of(folder_ / "copy.onnx"), "abcdefgh");
    trocar::write_file(other_ / "w.bin", "something else");
    EXPECT_THROW(write_file(model, other_ / "m.onnx", {}), Error);
    EXPECT_THROW(write_file(model, folder_ / "w.bin", {}), Error);
    EXPECT_EQ(trocar::read_file(folder_ / "w.bin"), "....abcdefgh");
}

TEST_F(External, IsReferredToInlinedOrMovedAsAsked) {
    const auto model = read_file(folder_ / "m.onnx");
    write_file(model, other_ / "m.onnx", {.external = ExternalPolicy::reference});
    EXPECT_EQ(trocar::read_file(other_ / "m.onnx"), bytes_);
    EXPECT_FALSE(std::filesystem::exists(other_ / "w.bin"));
    write_file(model, other_ / "i.onnx", {.external = ExternalPolicy::inlined});
    EXPECT_EQ(data_of(other_ / "i.onnx"), "abcdefgh");
    EXPECT_EQ(read_file(other_ / "i.onnx").external_bytes, 0U);
    EXPECT_NE(encode(model, {}).bytes.find("abcdefgh"), std::string::npos);
}

TEST_F(External, SmallConstantsStayWhenDataIsSeparated) {
    auto model = read_file(folder_ / "m.onnx");
    const auto big = model.graph.add_constant(
        "big", Constant::copy(DType::u8, {2048}, std::vector<std::byte>(2048, std::byte{7})));
    write_file(model, other_ / "s.onnx", {.external = ExternalPolicy::separate});
    const auto again = read_file(other_ / "s.onnx");
    EXPECT_FALSE(again.graph.tensor(tensor(again, "w")).constant->external());
    const auto& moved = *again.graph.tensor(tensor(again, "big")).constant;
    ASSERT_TRUE(moved.external());
    EXPECT_EQ(moved.external()->location, "s.onnx.data");
    EXPECT_EQ(moved.bytes()[2047], std::byte{7});
    EXPECT_EQ(moved.bytes().size(), model.graph.tensor(big).constant->bytes().size());
}

TEST_F(External, AModelIsWrittenOverItself) {
    auto model = read_file(folder_ / "m.onnx");
    model.graph.rename(model.graph.first(), "sum");
    write_file(model, folder_ / "m.onnx", {});
    const auto again = read_file(folder_ / "m.onnx");
    EXPECT_EQ(again.graph.op(again.graph.first()).name, "sum");
    EXPECT_EQ(data_of(folder_ / "m.onnx"), "abcdefgh");
    EXPECT_EQ(written(model), trocar::read_file(folder_ / "m.onnx"));
}

}  // namespace
}  // namespace trocar::onnx
