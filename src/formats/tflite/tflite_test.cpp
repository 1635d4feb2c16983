#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "formats/tflite/archive.h"
#include "formats/tflite/test_models.h"
#include "trocar/counting.h"
#include "trocar/error.h"
#include "trocar/format.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar::tflite {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Op& first_op(const Model& model) {
    return model.graph.op(model.graph.first());
}

const Tensor& tensor(const Model& model, std::string_view name) {
    return model.graph.tensor(*model.graph.find_tensor(name));
}

std::string all_problems(const Graph& graph) {
    std::string text;
    for (const auto& problem : graph.verify()) {
        text += problem.where + " " + problem.what + "\n";
    }
    return text;
}

TEST(TfliteModel, BuiltInMemoryIsReadBack) {
    const auto model = reread(add_model());
    EXPECT_EQ(model.dialect, "tflite");
    EXPECT_EQ(model.ir_version, 3);
    EXPECT_EQ(model.doc, "made for a test");
    EXPECT_EQ(model.graph.name, "main");
    EXPECT_EQ(first_op(model).type, "ADD");
    EXPECT_EQ(first_op(model).name, "y");
    EXPECT_EQ(first_op(model).text("fused_activation_function", ""), "RELU");
    EXPECT_EQ(first_op(model).integer("pot_scale_int16", 1), 0);
    EXPECT_EQ(type_text(tensor(model, "x").type), "f32[1,4]");
    EXPECT_EQ(all_problems(model.graph), "");
}

TEST(TfliteModel, UneditedIsWrittenByteForByte) {
    const TestFolder folder;
    const auto path = folder / "a.tflite";
    trocar::save(two_signatures(), path);
    const auto bytes = trocar::read_file(path);
    const auto model = trocar::load(path);
    EXPECT_TRUE(model.intact());
    trocar::save(model, folder / "b.tflite");
    EXPECT_EQ(trocar::read_file(folder / "b.tflite"), bytes);
    EXPECT_EQ(find_format("tflite")->encode(model, {}).bytes, bytes);
}

TEST(TfliteModel, EditedMetadataIsWritten) {
    auto model = reread(two_signatures());
    ASSERT_EQ(model.metadata.size(), 1U);
    EXPECT_EQ(model.metadata[0].value, std::string("1.5.0\0\0", 7));
    model.metadata.push_back({"mine", "a note"});
    const auto bytes = encode(model, {}).bytes;
    EXPECT_NE(std::as_bytes(std::span(bytes)).size(), model.source.bytes.size());
    auto kept = std::make_shared<std::string>(bytes);
    const auto again = read_bytes(std::as_bytes(std::span(*kept)), kept, {});
    EXPECT_EQ(again.metadata, model.metadata);
    EXPECT_EQ(again.signatures, model.signatures);
}

TEST(TfliteModel, SignaturesLeadIntoGraphAndFunction) {
    const auto model = reread(two_signatures());
    ASSERT_EQ(model.signatures.size(), 2U);
    EXPECT_EQ(model.signatures[0].function, Signature::main_graph);
    EXPECT_EQ(model.graph.tensor(model.signatures[0].inputs[0].tensor).name, "x");
    ASSERT_EQ(model.functions.size(), 1U);
    EXPECT_EQ(model.functions[0]->name, "other");
    EXPECT_EQ(model.signatures[1].function, 0U);
    EXPECT_EQ(model.signatures[1].outputs[0].name, "product");
    EXPECT_EQ(all_problems(model.functions[0]->body), "");
}

TEST(TfliteModel, RenamedTensorsKeepTheirSignature) {
    auto model = reread(two_signatures());
    model.graph.rename(model.graph.inputs()[0], "renamed");
    const auto again = reread(model);
    EXPECT_EQ(again.graph.tensor(again.signatures[0].inputs[0].tensor).name, "renamed");
    EXPECT_EQ(again.signatures[0].inputs[0].name, "left");
}

TEST(TfliteQuantization, PerChannelIsKept) {
    const auto model = reread(quantized_conv());
    const auto& w = *tensor(model, "w").quantization;
    EXPECT_THAT(w.scales, ElementsAre(0.25F, 0.125F));
    EXPECT_EQ(w.axis, 0);
    EXPECT_EQ(quantization_text(w), "2 scales along axis 0, 0.125 to 0.25");
    EXPECT_EQ(quantization_text(*tensor(model, "x").quantization), "0.5 × (q + 3)");
    EXPECT_EQ(quantization_text(*tensor(model, "y").quantization), "2 × (q - 4)");
    EXPECT_EQ(first_op(model).text("padding", ""), "VALID");
    EXPECT_EQ(first_op(model).metadata[0].value, "3");
    EXPECT_EQ(tensor(model, "w").constant->dtype(), DType::i8);
}

TEST(TfliteQuantization, BlocksAndCustomSchemesAreKept) {
    auto model = add_model();
    auto blocks = std::make_shared<Quantization>();
    blocks->blocks = {.scales = Constant::of(DType::f16, {2}, std::vector<std::uint16_t>{1, 2}),
                      .zero_points = {},
                      .size = 32};
    model.graph.set_quantization(model.graph.inputs()[0], blocks);
    auto custom = std::make_shared<Quantization>();
    custom->custom = Constant::of(DType::u8, {3}, std::vector<std::uint8_t>{1, 2, 3});
    model.graph.set_quantization(model.graph.outputs()[0], custom);
    const auto again = reread(model);
    const auto& x = *again.graph.tensor(again.graph.inputs()[0]).quantization;
    ASSERT_TRUE(x.blocks);
    EXPECT_EQ(x.blocks->size, 32);
    EXPECT_EQ(x.blocks->scales.dtype(), DType::f16);
    EXPECT_EQ(x.blocks->zero_points.dtype(), DType::undefined);
    const auto& y = *again.graph.tensor(again.graph.outputs()[0]).quantization;
    ASSERT_TRUE(y.custom);
    EXPECT_EQ(y.custom->bytes().size(), 3U);
    // A second time there is nothing new to write.
    EXPECT_EQ(rebuild(reread(again)), rebuild(again));
}

TEST(TfliteSubgraphs, BranchesAreGraphsOfTheirOp) {
    const auto model = reread(branching());
    const auto graphs = first_op(model).subgraphs();
    ASSERT_EQ(graphs.size(), 2U);
    EXPECT_EQ(graphs[0]->name, "then");
    EXPECT_EQ(graphs[1]->op(graphs[1]->first()).type, "ADD");
    EXPECT_THAT(model.functions, IsEmpty());
    EXPECT_EQ(all_problems(model.graph), "");
}

TEST(TfliteSubgraphs, LoopsAreReadEditedAndWritten) {
    auto model = reread(looping());
    auto graphs = first_op(model).subgraphs();
    ASSERT_EQ(graphs.size(), 2U);
    EXPECT_EQ(graphs[0]->name, "cond");
    auto& step = *graphs[1];
    step.rename(*step.find_tensor("twice"), "doubled");
    EXPECT_FALSE(model.intact());
    const auto again = reread(model);
    EXPECT_TRUE(first_op(again).subgraphs()[1]->find_tensor("doubled"));
}

TEST(TfliteSubgraphs, OneThatTwoOpsShareIsWrittenOnce) {
    auto model = branching();
    auto& g = model.graph;
    const auto once = reread(model);
    auto doubled = reread(model);
    auto& graph = doubled.graph;
    const auto& op = graph.op(graph.first());
    const auto z = graph.add_tensor("z", floats({1, 4}));
    OpSpec second = op;
    second.outputs = {z};
    graph.append(second);
    graph.set_outputs({g.outputs()[0], z});
    EXPECT_LT(rebuild(doubled).size(), rebuild(once).size() * 2);
    EXPECT_EQ(reread(doubled).graph.op_count(), 2U);
}

TEST(TfliteSubgraphs, CapturesCannotBeWritten) {
    auto model = branching();
    auto inner = std::make_shared<Graph>();
    const auto x = inner->add_capture("x");
    const auto y = inner->add_tensor("out", floats({1, 4}));
    inner->append({.type = "NEG", .inputs = {x}, .outputs = {y}});
    inner->set_outputs({y});
    model.graph.set_attribute(model.graph.first(), "then_subgraph", inner);
    EXPECT_THROW(rebuild(model), Error);
}

TEST(TfliteSparsity, IsDecodedWhenAskedForAndWrittenAsItWas) {
    const auto model = reread(sparse_model());
    const auto& constant = *tensor(model, "w").constant;
    EXPECT_EQ(constant.stored_bytes(), 16U + 5U + 2U);
    EXPECT_EQ(constant.form()->text(), "sparse in blocks of 2, 25 % of the elements stored");
    std::vector<float> numbers(16);
    std::memcpy(numbers.data(), constant.bytes().data(), 64);
    EXPECT_EQ(numbers, dense_values());
    const auto again = reread(model);
    EXPECT_EQ(tensor(again, "w").constant->stored_bytes(), constant.stored_bytes());
    EXPECT_EQ(rebuild(again), rebuild(model));
}

TEST(TfliteSparsity, BrokenOnesAreRefused) {
    const auto decode = [](const Sparsity& how, const Shape& shape, std::vector<float> values) {
        return sparse_constant(how, DType::f32, shape, std::as_bytes(std::span(values)), nullptr)
            .bytes()
            .size();
    };
    auto how = block_sparsity();
    EXPECT_EQ(decode(how, {4, 4}, sparse_values()), 64U);
    EXPECT_THROW(decode(how, {4, 4}, {1, 2, 3}), Error);
    EXPECT_THROW(decode(how, {4, 4}, {1, 2, 3, 4, 5, 6}), Error);
    EXPECT_THROW(decode(how, {4, 3}, sparse_values()), Error);
    EXPECT_THROW(decode(how, {4, 4, 4}, sparse_values()), Error);
    how.levels[1].places[0] = 2;
    EXPECT_THROW(decode(how, {4, 4}, sparse_values()), Error);
    how = block_sparsity();
    how.levels[1].segments = {0, 1, 1, 9, 9};
    EXPECT_THROW(decode(how, {4, 4}, sparse_values()), Error);
    how.levels[1].segments = {0, 1};
    EXPECT_THROW(decode(how, {4, 4}, sparse_values()), Error);
    how = block_sparsity();
    how.order = {0, 1, 1};
    EXPECT_THROW(decode(how, {4, 4}, sparse_values()), Error);
}

TEST(TfliteOps, CustomOnesKeepTheirOptions) {
    const auto model = reread(custom_model());
    const auto& op = first_op(model);
    EXPECT_EQ(op.type, "Mine");
    EXPECT_EQ(op.domain, "custom");
    const auto& options = std::get<Constant>(op.attribute("custom_options")->value);
    EXPECT_EQ(options.bytes().size(), 12U);
    ASSERT_EQ(op.metadata.size(), 1U);
    EXPECT_THAT(op.metadata[0].value, HasSubstr("7"));
    EXPECT_EQ(rebuild(reread(model)), rebuild(model));
}

// Runtimes have no kernel for version 1 of BROADCAST_TO. Versions from a file are kept.
TEST(TfliteOps, HaveAVersionThatRuntimesKnow) {
    for (const auto* const version : {"", "1", "3"}) {
        auto model = empty_model();
        auto& g = model.graph;
        const auto x = g.add_input("x", floats({1, 4}));
        const auto shape =
            g.add_constant("shape", Constant::of(DType::i32, {2}, std::vector<std::int32_t>{3, 4}));
        const auto y = g.add_tensor("y", floats({3, 4}));
        OpSpec spec{.type = "BROADCAST_TO", .inputs = {x, shape}, .outputs = {y}};
        if (*version != 0) {
            spec.metadata = {{"version", version}};
        }
        const auto given = spec.metadata;
        g.append(std::move(spec));
        g.set_outputs({y});
        EXPECT_EQ(first_op(reread(model)).metadata, given);
    }
}

TEST(TfliteOps, UnknownTypesAndOptionsAreRefused) {
    auto model = add_model();
    const auto refused = [](const Model& bad) -> std::string {
        try {
            rebuild(bad);
        } catch (const Error& e) {
            EXPECT_EQ(e.fault(), Fault::unsupported);
            return e.what() + std::string(" ") + e.hint();
        }
        return {};
    };
    const auto id = model.graph.first();
    model.graph.set_attribute(id, "fused_activation", std::string("RELU"));
    EXPECT_THAT(refused(model), HasSubstr("fused_activation_function"));
    model.graph.remove_attribute(id, "fused_activation");
    model.graph.set_attribute(id, "fused_activation_function", std::string("SOMETHING"));
    EXPECT_THAT(refused(model), HasSubstr("fused_activation_function"));
    model.graph.set_attribute(id, "fused_activation_function", std::string("NONE"));
    EXPECT_EQ(refused(model), "");
    OpSpec other = model.graph.op(id);
    other.type = "Conv";
    other.attributes.clear();
    model.graph.replace(id, other);
    EXPECT_THAT(refused(model), HasSubstr("no op of that type"));
}

TEST(TfliteOps, OfNumbersThatAreNewAreKept) {
    auto model = add_model();
    OpSpec other = model.graph.op(model.graph.first());
    other.type = "BUILTIN_999";
    other.attributes.clear();
    model.graph.replace(model.graph.first(), other);
    EXPECT_EQ(first_op(reread(model)).type, "BUILTIN_999");
}

TEST(TfliteTensors, TextsAreReadAndWritten) {
    const auto model = reread(string_model());
    EXPECT_THAT(tensor(model, "words").constant->string_values(), ElementsAre("one", "", "three"));
}

TEST(TfliteTensors, NamesThatRepeatOrLackAreMadeUniqueAndWrittenAsTheyWere) {
    auto model = add_model();
    auto& g = model.graph;
    auto& x = g.tensor_from_file(g.inputs()[0]);
    x.metadata.push_back({"name", ""});
    g.rename(g.inputs()[0], "#7");
    auto& y = g.tensor_from_file(g.outputs()[0]);
    y.metadata.push_back({"name", ""});
    g.rename(g.outputs()[0], "#8");
    auto again = reread(model);
    EXPECT_EQ(again.graph.tensor(again.graph.inputs()[0]).name, "#0");
    EXPECT_EQ(again.graph.tensor(again.graph.outputs()[0]).name, "#1");
    // A name that somebody gave is a name.
    again.graph.rename(again.graph.inputs()[0], "given");
    EXPECT_EQ(rebuild(again).find("#1"), std::string::npos);
    EXPECT_EQ(reread(again).graph.tensor(again.graph.inputs()[0]).name, "given");
}

TEST(TfliteTensors, OpenDimensionsKeepTheirUsualSize) {
    auto model = add_model();
    auto& g = model.graph;
    auto type = g.tensor(g.inputs()[0]).type;
    (*type.dims)[0] = {};
    g.set_type(g.inputs()[0], type);
    auto again = reread(model);
    const auto& x = again.graph.tensor(again.graph.inputs()[0]);
    EXPECT_EQ(type_text(x.type), "f32[?,4]");
    ASSERT_EQ(x.metadata.size(), 1U);
    EXPECT_EQ(x.metadata[0].value, "1x4");
    EXPECT_EQ(rebuild(reread(again)), rebuild(again));
}

TEST(TfliteTensors, VariablesAreZerosThatAreNotInTheFile) {
    auto model = add_model();
    auto& g = model.graph;
    const auto state = g.add_tensor("state", floats({1, 4}));
    g.tensor_from_file(state).metadata.push_back({"variable", "true"});
    g.tensor_from_file(state).is_captured = true;  // for the edit's sake: nothing writes it
    g.set_input(g.first(), 1, state);
    g.tensor_from_file(state).is_captured = false;
    const auto again = reread(model);
    const auto& read = tensor(again, "state");
    ASSERT_TRUE(read.constant);
    EXPECT_EQ(read.constant->stored_bytes(), 0U);
    EXPECT_EQ(read.constant->bytes().size(), 16U);
    EXPECT_EQ(rebuild(reread(again)), rebuild(again));
}

TEST(TfliteWriter, PutsDataBehindTheFlatbufferWhereItIsTooLarge) {
    const auto model = quantized_conv();
    const auto outside = std::make_shared<std::string>(rebuild(model, 8));
    const auto again = read_bytes(std::as_bytes(std::span(*outside)), outside, {});
    const auto bytes = tensor(again, "w").constant->bytes();
    const auto offset = reinterpret_cast<const char*>(bytes.data()) - outside->data();
    EXPECT_EQ(offset % 16, 0);
    EXPECT_EQ(tensor(again, "b").constant->bytes().size(), 8U);
    EXPECT_TRUE(
        std::equal(bytes.begin(), bytes.end(), tensor(model, "w").constant->bytes().begin()));
    // And back inside again.
    EXPECT_EQ(rebuild(again), rebuild(reread(model)));
}

TEST(TfliteWriter, PartsAreModels) {
    const auto model = reread(sparse_model());
    const auto part = extract_ops(model, std::vector{model.graph.last()}, model.graph.outputs());
    const auto again = reread(part);
    EXPECT_EQ(again.graph.op_count(), 1U);
    EXPECT_EQ(again.graph.inputs().size(), 2U);
    const auto quantized = reread(quantized_conv());
    const auto whole = extract(quantized, {}, quantized.graph.outputs());
    const auto read = reread(whole);
    EXPECT_TRUE(tensor(read, "w").quantization);
    EXPECT_EQ(read.ir_version, 3);
}

TEST(TfliteReader, RefusesWhatIsBroken) {
    const auto good = rebuild(sparse_model());
    const auto fault = [](std::string bytes) {
        auto kept = std::make_shared<std::string>(std::move(bytes));
        try {
            read_bytes(std::as_bytes(std::span(*kept)), kept, {});
        } catch (const Error& e) {
            return e.fault();
        }
        return Fault::internal;
    };
    EXPECT_EQ(fault(""), Fault::input);
    EXPECT_EQ(fault(good.substr(0, 8)), Fault::input);
    EXPECT_EQ(fault(good.substr(0, good.size() / 2)), Fault::input);
    auto other = good;
    other[7] = '2';
    EXPECT_EQ(fault(other), Fault::unsupported);
    EXPECT_EQ(fault("no model at all, but a text"), Fault::input);
    EXPECT_TRUE(matches(std::as_bytes(std::span(good)), "any.name"));
    const std::string text = "no model";
    EXPECT_FALSE(matches(std::as_bytes(std::span(text)), "a.tflite"));
}

TEST(TfliteReader, AnArchiveBehindTheModelIsKept) {
    // One stored file "a" with the text "hi", as `zip` writes it behind a model.
    auto bytes = rebuild(add_model());
    const auto begin = bytes.size();
    const auto number = [](std::uint64_t value, std::size_t size) {
        return std::string(reinterpret_cast<const char*>(&value), size);
    };
    const std::string common = number(20, 2) + number(0, 2) + number(0, 2) + number(0, 4) +
                               number(0xd8932aac, 4) + number(2, 4) + number(2, 4) + number(1, 2) +
                               number(0, 2);
    const auto local = "PK\x03\x04" + common + "ahi";
    const auto entry = "PK\x01\x02" + number(20, 2) + common + number(0, 2) + number(0, 2) +
                       number(0, 2) + number(0, 4) + number(begin, 4) + "a";
    const auto end = "PK\x05\x06" + number(0, 2) + number(0, 2) + number(1, 2) + number(1, 2) +
                     number(entry.size(), 4) + number(begin + local.size(), 4) + number(0, 2);
    auto kept = std::make_shared<std::string>(bytes + local + entry + end);
    auto model = read_bytes(std::as_bytes(std::span(*kept)), kept, {});
    model.graph.rename(model.graph.inputs()[0], "a name that is much longer than before");
    const auto written = rebuild(model);
    const auto found = appended_archive(std::as_bytes(std::span(written)));
    ASSERT_EQ(found.size(), local.size() + entry.size() + end.size());
    EXPECT_NE(
        static_cast<std::size_t>(reinterpret_cast<const char*>(found.data()) - written.data()),
        begin);
}

TEST(TfliteCounting, KnowsTheCommonOps) {
    const auto model = reread(quantized_conv());
    const auto& op = first_op(model);
    OpFacts facts;
    facts.op = &op;
    facts.dialect = "tflite";
    for (const auto id : op.inputs) {
        const auto& t = model.graph.tensor(id);
        facts.inputs.push_back({.dtype = t.type.dtype, .shape = t.type.shape()});
    }
    facts.outputs.push_back({.dtype = DType::i8, .shape = Shape{1, 2, 2, 2}});
    const auto counted = count(facts);
    EXPECT_EQ(counted.macs, 8U * 8U);
    EXPECT_EQ(counted.other_flops, 8U);
    EXPECT_EQ(role(op, 1, DType::i8, Shape{2, 2, 2, 2}, "tflite"), Role::weight);
    EXPECT_EQ(role(op, 2, DType::i32, Shape{2}, "tflite"), Role::vector);
}

class TflitePackageModel : public ::testing::TestWithParam<const char*> {};

TEST_P(TflitePackageModel, IsReadWrittenAndRebuilt) {
    const auto path =
        std::filesystem::path(TROCAR_SOURCE_DIR "/.deps/models") / (std::string(GetParam()));
    if (!std::filesystem::exists(path)) {
        GTEST_SKIP() << "scripts/setup gets it";
    }
    const auto model = trocar::load(path);
    EXPECT_EQ(all_problems(model.graph), "");
    const TestFolder folder;
    trocar::save(model, folder / "same.tflite");
    EXPECT_EQ(trocar::read_file(folder / "same.tflite"), trocar::read_file(path));
    const auto once = reread(model);
    EXPECT_EQ(once.graph.op_count(), model.graph.op_count());
    EXPECT_EQ(once.graph.tensor_count(), model.graph.tensor_count());
    // What is rebuilt says the same: building it again changes nothing.
    EXPECT_EQ(rebuild(once), rebuild(model));
    for (const auto id : model.graph.tensors()) {
        const auto& a = model.graph.tensor(id);
        const auto& b = once.graph.tensor(id);
        ASSERT_EQ(a.name, b.name);
        ASSERT_EQ(a.type, b.type) << a.name;
        ASSERT_EQ(a.metadata, b.metadata) << a.name;
        ASSERT_EQ(a.constant.has_value(), b.constant.has_value()) << a.name;
        if (a.constant && bits(a.constant->dtype()) != 0) {
            const auto x = a.constant->bytes();
            const auto y = b.constant->bytes();
            ASSERT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end())) << a.name;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, TflitePackageModel,
                         ::testing::Values("nmp.tflite", "face_back.tflite", "face_front.tflite",
                                           "face_full.tflite", "face_full_sparse.tflite",
                                           "face_short.tflite", "face_landmark.tflite",
                                           "iris_landmark.tflite"));
INSTANTIATE_TEST_SUITE_P(
    Mediapipe, TflitePackageModel,
    ::testing::Values("mediapipe/face_detection_full_range_sparse.tflite",
                      "mediapipe/face_detection_short_range.tflite",
                      "mediapipe/face_landmark.tflite",
                      "mediapipe/face_landmark_with_attention.tflite",
                      "mediapipe/hand_landmark_full.tflite", "mediapipe/hand_landmark_lite.tflite",
                      "mediapipe/hand_recrop.tflite", "mediapipe/iris_landmark.tflite",
                      "mediapipe/palm_detection_full.tflite",
                      "mediapipe/palm_detection_lite.tflite", "mediapipe/pose_detection.tflite",
                      "mediapipe/pose_landmark_full.tflite", "mediapipe/selfie_segmentation.tflite",
                      "mediapipe/selfie_segmentation_landscape.tflite"));

}  // namespace
}  // namespace trocar::tflite
