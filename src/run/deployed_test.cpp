#include "trocar/deployed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "trocar/error.h"
#include "trocar/inputs.h"
#include "trocar/session.h"

namespace trocar {
namespace {

using ::testing::ElementsAre;

const std::string newest = "1.31.1";
const std::string oldest = "1.20.1";

std::shared_ptr<Engine> engine(const std::string& version) {
    EngineOptions options;
    options.path = TROCAR_SOURCE_DIR "/.deps/onnxruntime-" + version;
    options.threads = 1;
    return open_engine(options);
}

std::vector<NamedValue> inputs_of(const Model& model) {
    InputSpec spec;
    spec.fill = "random";
    spec.unknown_dims = 2;
    spec.seed = 5;
    const auto name = model.path.filename().string();
    if (name.starts_with("silero")) {
        spec.shapes = {"input=1,576", "state=2,1,128"};
        spec.sources = {"sr=16000"};
    } else if (name.starts_with("ppocr")) {
        spec.shapes = {"x=1,3,64,64"};
    }
    return make_inputs(model, spec).values;
}

// Every tensor of a run without optimisation, op by op.
std::map<std::string, Value> all_values(const Model& model, const std::shared_ptr<Engine>& with,
                                        const std::vector<NamedValue>& inputs) {
    SessionOptions options;
    options.cut = every_op();
    options.compile.optimize = CompileOptions::Optimize::none;
    Session session(model, with, options);
    std::map<std::string, Value> values;
    session.run(inputs, [&](const SegmentRun& run) {
        for (std::size_t i = 0; i < run.outputs.size(); ++i) {
            values[model.graph.tensor(run.segment.outputs[i]).name] = run.outputs[i];
        }
    });
    return values;
}

// The largest difference of two tensors relative to the largest element; NaN: not comparable.
double distance(const Value& a, const Value& b) {
    if (a.kind() != b.kind() || a.dtype() != b.dtype() || a.shape() != b.shape()) {
        return std::nan("");
    }
    if (a.dtype() != DType::f32) {
        return a.is_tensor() && a.dtype() != DType::string && a.dtype() != DType::f16 &&
                       std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) != 0
                   ? 1.0
                   : 0.0;
    }
    const auto x = a.as<float>();
    const auto y = b.as<float>();
    double worst = 0;
    double largest = 1e-3;
    for (std::size_t i = 0; i < x.size(); ++i) {
        worst = std::max(worst, std::abs(double{x[i]} - double{y[i]}));
        largest = std::max(largest, std::abs(double{x[i]}));
    }
    return worst / largest;
}

// What a deployed model must be, whatever the model.
struct Checked {
    std::size_t mapped = 0;   // tensors with a value of the model
    std::size_t unknown = 0;  // and without
    std::size_t blocked = 0;
};

Checked check(const Model& model, const std::string& version) {
    const auto with = engine(version);
    const auto deployed = deploy(model, *with);
    const auto inputs = inputs_of(model);

    // The same bits as the whole model.
    SessionOptions as_it_is;
    as_it_is.compile.optimize = CompileOptions::Optimize::none;
    const auto whole = Session(model, with).run(inputs);
    const auto made = Session(deployed.model, with, as_it_is).run(inputs);
    EXPECT_EQ(whole.size(), made.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(whole[i].name, made[i].name);
        EXPECT_EQ(0, std::memcmp(whole[i].value.bytes().data(), made[i].value.bytes().data(),
                                 whole[i].value.bytes().size()))
            << whole[i].name;
    }

    // Every op of the model in one place.
    std::vector<int> places(model.graph.op_limit());
    for (const auto& sources : deployed.sources) {
        for (const auto id : sources) {
            ++places[index(id)];
        }
    }
    for (const auto id : deployed.folded) {
        ++places[index(id)];
    }
    for (const auto id : model.graph.ops()) {
        EXPECT_EQ(1, places[index(id)]) << model.graph.describe(id);
    }

    // Every tensor that is mapped has the value of the one it is mapped to.
    const auto expected = all_values(model, with, inputs);
    const auto values = all_values(deployed.model, with, inputs);
    Checked checked;
    for (const auto id : deployed.model.graph.tensors()) {
        const auto& tensor = deployed.model.graph.tensor(id);
        const auto value = values.find(tensor.name);
        if (tensor.producer == OpId::none || value == values.end()) {
            continue;
        }
        const auto source = deployed.source_tensors[index(id)];
        const auto& layout = deployed.layouts[index(id)];
        if (source == TensorId::none) {
            ++checked.unknown;
            continue;
        }
        const auto name = model.graph.tensor(source).name;
        const auto wanted = expected.find(name);
        if (wanted == expected.end()) {
            continue;
        }
        ++checked.mapped;
        checked.blocked += layout.block != 0 ? 1 : 0;
        EXPECT_LT(distance(wanted->second, to_plain(value->second, layout)), 1e-3)
            << tensor.name << " is not " << name << ": " << value_text(value->second) << ", "
            << value_text(wanted->second);
    }
    return checked;
}

struct Case {
    std::string file;
    std::string version;
    std::size_t unknown = 0;  // tensors of the engine's own that may be there
};
class Deploy : public testing::TestWithParam<Case> {};

std::string path_of(const std::string& file) {
    const std::string made = TROCAR_SOURCE_DIR "/build/test-models/" + file;
    return std::filesystem::exists(made) ? made : TROCAR_SOURCE_DIR "/.deps/models/" + file;
}

bool is_there(const std::string& file, const std::string& version) {
    return std::filesystem::exists(path_of(file)) &&
           std::filesystem::exists(TROCAR_SOURCE_DIR "/.deps/onnxruntime-" + version);
}

TEST_P(Deploy, GivesTheModelsBitsAndMapsToItsValues) {
    const auto& [file, version, unknown] = GetParam();
    if (!is_there(file, version)) {
        GTEST_SKIP() << "no " << file << " or no ONNX Runtime " << version;
    }
    const auto checked = check(load(path_of(file)), version);
    EXPECT_GT(checked.mapped, 0U);
    EXPECT_LE(checked.unknown, unknown);
}

std::vector<Case> cases() {
    const std::vector<std::pair<const char*, std::size_t>> files{
        {"resnet18.onnx", 0},
        {"mobilenet_v2.onnx", 0},
        {"resnet50.onnx", 0},
        {"transformer.onnx", 0},
        {"lstm.onnx", 0},
        {"lstm_unrolled.onnx", 32},  // a Split in the place of 32 Gathers
        {"silero_vad.onnx", 0},
        {"silero_vad_op18_ifless.onnx", 0},
        {"magika.onnx", 0},
        {"nmp.onnx", 4},         // transposed by another op than in the model
        {"ppocr_cls.onnx", 24},  // sums with the block as a dimension: 18 in blocks of 8, 21 of 16
        {"ppocr_det.onnx", 0},
        {"ppocr_rec.onnx", 4},  // transposed
        {"dynamo.onnx", 0},
        {"functions.onnx", 2},  // inside functions
        {"if.onnx", 0},
        {"loop.onnx", 0},
        {"half.onnx", 3},  // in f32
        {"quantized.onnx", 0},
        {"constant_chain.onnx", 0},
        {"shared_initializer.onnx", 0}};
    std::vector<Case> all;
    for (const auto& version : {newest, oldest}) {
        for (const auto& [file, unknown] : files) {
            all.push_back({file, version, unknown});
        }
    }
    return all;
}
INSTANTIATE_TEST_SUITE_P(Models, Deploy, testing::ValuesIn(cases()), [](const auto& made) {
    auto name = made.param.file.substr(0, made.param.file.find('.')) + "_" + made.param.version;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
});

// The op of the deployed graph that computes the model's op of this name.
OpId computed_by(const Model& model, const Deployed& deployed, const std::string& name) {
    const auto wanted = model.graph.find_op(name).value();
    for (const auto id : deployed.model.graph.ops()) {
        const auto& sources = deployed.sources[index(id)];
        if (std::find(sources.begin(), sources.end(), wanted) != sources.end()) {
            return id;
        }
    }
    return OpId::none;
}

TEST(Deployed, BlockOfAResidualNetworkIsOneOp) {
    if (!is_there("resnet18.onnx", newest)) {
        GTEST_SKIP() << "no resnet18.onnx";
    }
    const auto model = load(path_of("resnet18.onnx"));
    const auto with = engine(newest);
    const auto deployed = deploy(model, *with);
    const auto last = computed_by(model, deployed, "/layer1/layer1.0/conv2/Conv");
    EXPECT_EQ(last, computed_by(model, deployed, "/layer1/layer1.0/Add"));
    EXPECT_EQ(last, computed_by(model, deployed, "/layer1/layer1.0/relu_1/Relu"));
    EXPECT_NE(last, computed_by(model, deployed, "/layer1/layer1.0/conv1/Conv"));
    EXPECT_TRUE(deployed.model.path.empty());
    EXPECT_TRUE(deployed.model.graph.verify().empty());
}

TEST(Deployed, EditedModelIsDeployedAsItIs) {
    if (!is_there("resnet18.onnx", newest)) {
        GTEST_SKIP() << "no resnet18.onnx";
    }
    auto model = load(path_of("resnet18.onnx"));
    const auto relu = model.graph.find_op("/layer1/layer1.0/relu/Relu").value();
    model.graph.remove(relu);
    const auto checked = check(model, newest);
    EXPECT_EQ(0U, checked.unknown);
}

Value numbered(Shape shape) {
    auto value = Value::tensor(DType::f32, std::move(shape));
    auto bytes = value.mutable_bytes();
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
        const auto number = static_cast<float>(i);
        std::memcpy(bytes.data() + i * sizeof(float), &number, sizeof number);
    }
    return value;
}

TEST(Layout, BlocksHoldNeighbouringChannels) {
    const auto plain = numbered({1, 3, 1, 2});
    auto blocked = Value::tensor(DType::f32, {1, 4, 1, 2});
    to_blocked(plain, {.block = 2, .channels = 3}, blocked.mutable_bytes());
    EXPECT_THAT(blocked.as<float>(), ElementsAre(0, 2, 1, 3, 4, 0, 5, 0));
    const auto back = to_plain(blocked, {.block = 2, .channels = 3});
    EXPECT_EQ((Shape{1, 3, 1, 2}), back.shape());
    EXPECT_THAT(back.as<float>(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Layout, PlainTensorsAreLeftAsTheyAre) {
    const auto plain = numbered({2, 3});
    EXPECT_EQ(plain.body(), to_plain(plain, {}).body());
}

TEST(Layout, WhatDoesNotFitIsAnError) {
    const auto plain = numbered({1, 3, 1, 2});
    std::vector<std::byte> small(8);
    EXPECT_THROW(to_blocked(plain, {.block = 2, .channels = 3}, small), Error);
    EXPECT_THROW(to_blocked(plain, {}, small), Error);
    EXPECT_THROW(to_plain(plain, {.block = 2, .channels = 9}), Error);
    EXPECT_THROW(to_plain(numbered({3}), {.block = 2, .channels = 2}), Error);
}

}  // namespace
}  // namespace trocar
