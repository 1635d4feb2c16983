#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "formats/executorch/kernels.h"
#include "formats/executorch/memory_plan.h"
#include "formats/executorch/reader.h"
#include "formats/executorch/writer.h"
#include "trocar/error.h"
#include "trocar/mapping.h"
#include "util/files.h"
#include "util/test_folder.h"

namespace trocar::executorch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Programs that ExecuTorch's own exporter wrote.
Model sample(const std::string& name) {
    return load(TROCAR_SOURCE_DIR "/tests/formats/executorch/" + name);
}

std::vector<std::string> types_of(const Graph& graph) {
    std::vector<std::string> types;
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        types.push_back(fmt::format("{}{}{}.{}", op.domain, op.domain.empty() ? "" : "::", op.type,
                                    op.overload));
    }
    return types;
}

const Op& op_of(const Graph& graph, std::string_view type) {
    for (const auto id : graph.ops()) {
        if (graph.op(id).type == type) {
            return graph.op(id);
        }
    }
    throw Error(Fault::usage, fmt::format("there is no {}", type));
}

Model reread(const std::string& bytes) {
    const auto kept = std::make_shared<std::string>(bytes);
    return read_bytes(std::as_bytes(std::span(*kept)), kept, "made.pte");
}

std::string failure(const std::string& bytes) {
    try {
        reread(bytes);
    } catch (const Error& e) {
        return e.what();
    }
    return "none";
}

Attribute attribute(std::string name, Attribute::Value value) {
    return {.name = std::move(name), .value = std::move(value), .reference = {}, .source = {}};
}

// y = relu(x) + w
Model small_model() {
    Model model;
    model.dialect = "aten";
    auto& graph = model.graph;
    const auto type = Type::tensor(DType::f32, Shape{1, 4});
    const auto x = graph.add_input("x", type);
    const auto r = graph.add_tensor("r", type);
    const auto y = graph.add_tensor("y", type);
    const auto w =
        graph.add_constant("w", Constant::of(DType::f32, {4}, std::vector<float>{1, 2, 3, 4}));
    graph.append({.type = "relu", .overload = "default", .inputs = {x}, .outputs = {r}});
    graph.append({.type = "add",
                  .overload = "Tensor",
                  .inputs = {r, w},
                  .outputs = {y},
                  .attributes = {attribute("alpha", std::int64_t{2})}});
    graph.set_outputs({y});
    return model;
}

TEST(ExecutorchReader, ShowsTheOpsThatMakeTheirResults) {
    const auto model = sample("net.pte");
    EXPECT_EQ(model.format, "executorch");
    EXPECT_EQ(model.dialect, "aten");
    EXPECT_THAT(types_of(model.graph),
                ElementsAre("convolution.default", "_native_batch_norm_legit_no_training.default",
                            "relu.default", "max_pool2d_with_indices.default", "add.Tensor",
                            "split_with_sizes_copy.default", "cat.default", "permute_copy.default",
                            "view_copy.default", "addmm.default", "native_layer_norm.default",
                            "_softmax.default"));
    EXPECT_TRUE(model.graph.verify().empty());
    const auto& conv = op_of(model.graph, "convolution");
    EXPECT_EQ(conv.inputs.size(), 3U);
    EXPECT_EQ(conv.outputs.size(), 1U);
    EXPECT_THAT(conv.integers("padding"), ElementsAre(1, 1));
    EXPECT_EQ(conv.integer("groups", 0), 1);
    EXPECT_THAT(conv.origin.source, HasSubstr("/home/me/net.py:42"));
    const auto& weight = model.graph.tensor(conv.inputs[1]);
    ASSERT_TRUE(weight.constant);
    EXPECT_EQ(weight.constant->shape(), (Shape{4, 3, 3, 3}));
    EXPECT_EQ(op_of(model.graph, "split_with_sizes_copy").outputs.size(), 2U);
    EXPECT_EQ(type_text(model.graph.tensor(model.graph.outputs()[0]).type), "f32[2,5]");
}

TEST(ExecutorchReader, ConstantsAreViewsOfTheFile) {
    const auto path = TROCAR_SOURCE_DIR "/tests/formats/executorch/net.pte";
    const auto file = std::make_shared<std::string>(trocar::read_file(path));
    const auto model = read_bytes(std::as_bytes(std::span(*file)), file, path);
    const auto& conv = op_of(model.graph, "convolution");
    const auto* data = model.graph.tensor(conv.inputs[1]).constant->bytes().data();
    EXPECT_GE(data, reinterpret_cast<const std::byte*>(file->data()));
    EXPECT_LT(data, reinterpret_cast<const std::byte*>(file->data() + file->size()));
}

TEST(ExecutorchReader, KeepsDelegatesAsOpsOfTheirOwn) {
    const auto model = sample("delegate.pte");
    const auto types = types_of(model.graph);
    EXPECT_EQ(std::count(types.begin(), types.end(), "delegate::XnnpackBackend."), 3);
    const auto& op = op_of(model.graph, "XnnpackBackend");
    const auto* data = op.attribute("processed");
    ASSERT_NE(data, nullptr);
    EXPECT_GT(std::get<Constant>(data->value).bytes().size(), 100U);
    EXPECT_EQ(op.inputs.size(), 2U);
    EXPECT_EQ(op.outputs.size(), 1U);
}

TEST(ExecutorchReader, ShowsJumpsMovesStateAndOpenShapes) {
    EXPECT_THAT(types_of(sample("branches.pte").graph),
                testing::IsSupersetOf({"executorch::jump_false.", "executorch::move."}));
    const auto state = sample("state.pte");
    const auto& copy = op_of(state.graph, "copy_");
    EXPECT_EQ(copy.outputs.size(), 1U);
    EXPECT_EQ(state.graph.tensor(copy.inputs[0]).metadata.back(), (Property{"kind", "state"}));
    const auto open = sample("open.pte");
    EXPECT_EQ(type_text(open.graph.tensor(open.graph.inputs()[0]).type), "f32[?,?,?,?]");
    EXPECT_EQ(op_of(open.graph, "sym_size").outputs.size(), 1U);
    for (const auto* name : {"branches.pte", "state.pte", "open.pte", "delegate.pte"}) {
        EXPECT_TRUE(sample(name).graph.verify().empty()) << name;
    }
}

TEST(ExecutorchReader, MapsToOnnx) {
    const auto mapped = map_model(sample("net.pte"), "onnx");
    for (const auto& op : mapped.ops) {
        EXPECT_EQ(op.state, MappedOp::State::mapped) << op.type << ": " << op.why;
    }
}

TEST(ExecutorchWriter, UneditedIsWrittenByteForByte) {
    const TestFolder folder;
    for (const auto* name : {"net.pte", "branches.pte", "state.pte", "delegate.pte", "open.pte"}) {
        trocar::save(sample(name), folder / name);
        EXPECT_EQ(trocar::read_file(folder / name),
                  trocar::read_file(
                      fmt::format("{}/tests/formats/executorch/{}", TROCAR_SOURCE_DIR, name)));
    }
}

TEST(ExecutorchWriter, WhatItWritesIsReadBack) {
    const auto model = reread(rebuild(small_model()));
    EXPECT_THAT(types_of(model.graph), ElementsAre("relu.default", "add.Tensor"));
    const auto& add = op_of(model.graph, "add");
    EXPECT_EQ(add.integer("alpha", 0), 2);
    EXPECT_EQ(add.name, "y");
    EXPECT_EQ(model.graph.tensor(model.graph.inputs()[0]).name, "x");
    const auto& w = model.graph.tensor(add.inputs[1]);
    EXPECT_EQ(w.name, "w");
    EXPECT_EQ(w.constant->bytes().size(), 16U);
    EXPECT_EQ(model.graph.tensor(model.graph.outputs()[0]).type,
              Type::tensor(DType::f32, Shape{1, 4}));
    EXPECT_TRUE(model.graph.verify().empty());
    // And once more, the same.
    EXPECT_EQ(rebuild(model), rebuild(reread(rebuild(model))));
}

TEST(ExecutorchWriter, RebuildsWhatTheExporterWrote) {
    for (const auto* name : {"net.pte", "delegate.pte"}) {
        const auto model = sample(name);
        const auto again = reread(rebuild(model));
        EXPECT_EQ(types_of(again.graph), types_of(model.graph)) << name;
    }
}

TEST(ExecutorchWriter, SaysWhatItCannotWrite) {
    const auto why = [](const Model& model) -> std::string {
        try {
            rebuild(model);
        } catch (const Error& e) {
            EXPECT_EQ(e.fault(), Fault::unsupported);
            return e.what();
        }
        return "none";
    };
    auto model = small_model();
    model.dialect = "onnx";
    EXPECT_THAT(why(model), HasSubstr("dialect 'onnx'"));
    model = small_model();
    model.graph.op_from_file(model.graph.first()).type = "conv2d";
    EXPECT_THAT(why(model), HasSubstr("no kernel for aten::conv2d.default"));
    model = small_model();
    model.graph.set_type(*model.graph.find_tensor("r"), Type::tensor(DType::f32));
    EXPECT_THAT(why(model), HasSubstr("the shape of 'r' is not known"));
    model = small_model();
    model.graph.set_attribute(model.graph.first(), "speed", std::int64_t{1});
    EXPECT_THAT(why(model), HasSubstr("no argument 'speed'"));
    model = small_model();
    model.graph.set_attribute(model.graph.last(), "alpha", std::string("much"));
    EXPECT_THAT(why(model), HasSubstr("'alpha' is of another kind"));
    EXPECT_THAT(why(sample("branches.pte")), HasSubstr("cannot be written anew"));
    EXPECT_THAT(why(sample("state.pte")), HasSubstr("in place"));
}

TEST(ExecutorchReader, RefusesWhatIsBroken) {
    const auto good = rebuild(small_model());
    EXPECT_EQ(failure(good), "none");
    EXPECT_THAT(failure(""), HasSubstr("no ExecuTorch program"));
    auto other = good;
    other.replace(4, 4, "ET13");
    EXPECT_THAT(failure(other), HasSubstr("version 'ET13'"));
    EXPECT_THAT(failure(good.substr(0, good.size() / 2)), testing::Ne("none"));
    auto far = good;
    const std::uint64_t huge = 1ULL << 60U;
    std::memcpy(far.data() + 16, &huge, sizeof huge);
    EXPECT_THAT(failure(far), HasSubstr("header"));
    // The constants end before their segment does.
    EXPECT_THAT(failure(good.substr(0, good.size() - 1)), HasSubstr("outside"));
}

TEST(ExecutorchReader, SurvivesEveryChangedByte) {
    for (const auto& good :
         {rebuild(small_model()),
          trocar::read_file(TROCAR_SOURCE_DIR "/tests/formats/executorch/branches.pte")}) {
        for (std::size_t at = 0; at < good.size(); ++at) {
            for (const auto change : {0x01, 0x80, 0xff}) {
                auto bytes = good;
                bytes[at] = static_cast<char>(bytes[at] ^ change);
                failure(bytes);
            }
        }
    }
}

TEST(ExecutorchMemory, TensorsThatLiveTogetherLieApart) {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<Lifetime> tensors(random() % 60 + 1);
        for (auto& one : tensors) {
            one.first = random() % 40;
            one.last = one.first + random() % 6;
            one.bytes = random() % 500;
        }
        const auto plan = plan_memory(tensors);
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            EXPECT_EQ(plan.offsets[i] % tensor_alignment, 0U);
            EXPECT_LE(plan.offsets[i] + tensors[i].bytes, plan.size);
            for (std::size_t j = 0; j < i; ++j) {
                const bool together =
                    tensors[i].first <= tensors[j].last && tensors[j].first <= tensors[i].last;
                const bool apart = plan.offsets[i] + tensors[i].bytes <= plan.offsets[j] ||
                                   plan.offsets[j] + tensors[j].bytes <= plan.offsets[i];
                EXPECT_TRUE(!together || apart || tensors[i].bytes == 0 || tensors[j].bytes == 0);
            }
        }
    }
}

TEST(ExecutorchMemory, AChainTakesTwoPlaces) {
    std::vector<Lifetime> chain;
    for (std::size_t i = 0; i < 100; ++i) {
        chain.push_back({1024, i, i + 1});
    }
    EXPECT_EQ(plan_memory(chain).size, 2048U);
}

TEST(ExecutorchKernels, AreFoundBothWays) {
    const auto* kernel = find_kernel("aten::add", "out");
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(kernel->overload, "Tensor");
    EXPECT_EQ(kernel->arguments.size(), 3U);
    EXPECT_EQ(kernel->results.size(), 1U);
    EXPECT_EQ(kernel_for("", "add", "Tensor"), kernel);
    EXPECT_EQ(kernel_for("aten", "add", "Tensor"), kernel);
    EXPECT_EQ(find_kernel("aten::add", "nowhere"), nullptr);
    EXPECT_EQ(find_kernel("add", "out"), nullptr);
    const auto* pool = kernel_for("", "max_pool2d_with_indices", "default");
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(*pool->arguments[4].otherwise, "[1,1]");
}

}  // namespace
}  // namespace trocar::executorch
