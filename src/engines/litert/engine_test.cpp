#include "trocar/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>

#include "trocar/error.h"
#include "trocar/model.h"
#include "trocar/selector.h"
#include "trocar/session.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string folder = TROCAR_SOURCE_DIR "/.deps/litert-2.3.0";

EngineOptions options_of(const std::string& kernels = "delegate", int threads = 1) {
    EngineOptions options;
    options.name = "litert";
    options.path = folder;
    options.threads = threads;
    options.options = {{"kernels", kernels}};
    return options;
}

class LtEngine : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fs::exists(folder)) {
            GTEST_SKIP() << "no LiteRT in the dependency folder";
        }
    }
};

// The small models that the reader's fuzz target begins with.
Model seed(const std::string& name) {
    return load(TROCAR_SOURCE_DIR "/fuzz/tflite_reader_seeds/" + name, "tflite");
}

Value ones(const Shape& shape, float with = 1) {
    auto value = Value::tensor(DType::f32, shape);
    auto* at = reinterpret_cast<float*>(value.mutable_bytes().data());
    std::fill(at, at + value.element_count(), with);
    return value;
}

template <class T>
Value number(DType dtype, const Shape& shape, T with) {
    return Value::copy(dtype, shape, std::as_bytes(std::span(&with, 1)));
}

std::vector<Value> run(const Model& model, std::vector<Value> inputs,
                       const EngineOptions& options = options_of()) {
    const auto program = open_engine(options)->compile(model, {});
    std::vector<Value> outputs(program->output_names().size());
    program->run(inputs, outputs);
    return outputs;
}

std::string failure(const std::function<void()>& what) {
    try {
        what();
    } catch (const Error& e) {
        return e.what();
    }
    return {};
}

TEST_F(LtEngine, ComputesWithAllKernels) {
    for (const auto* kernels : {"delegate", "builtin", "reference"}) {
        const auto outputs = run(seed("add"), {ones({1, 4}, 3)}, options_of(kernels));
        ASSERT_EQ(outputs.size(), 1U);
        EXPECT_THAT(outputs[0].as<float>(), ElementsAre(6, 6, 6, 6)) << kernels;
    }
}

TEST_F(LtEngine, ComputesQuantizedSparseAndControlFlow) {
    EXPECT_THAT(run(seed("quantized"), {Value::copy(DType::i8, {1, 3, 3, 2},
                                                    std::vector<std::byte>(18, std::byte{1}))})[0]
                    .as<std::int8_t>(),
                ElementsAre(-41, 21, -41, 21, -41, 21, -41, 21));
    EXPECT_THAT(run(seed("sparse"), {ones({1, 4})})[0].as<float>(), ElementsAre(3, 0, 7, 0));
    EXPECT_THAT(
        run(seed("branches"), {number(DType::boolean, {}, true), ones({1, 4}, 3)})[0].as<float>(),
        ElementsAre(9, 9, 9, 9));
    EXPECT_THAT(
        run(seed("branches"), {number(DType::boolean, {}, false), ones({1, 4}, 3)})[0].as<float>(),
        ElementsAre(6, 6, 6, 6));
    const auto looped = run(seed("loop"), {number(DType::i32, {1}, 0), ones({1, 4})});
    EXPECT_THAT(looped[1].as<float>(), ElementsAre(8, 8, 8, 8));
}

TEST_F(LtEngine, TakesOtherShapesThanTheFileDeclares) {
    auto model = seed("add");
    auto type = model.graph.tensor(model.graph.inputs()[0]).type;
    (*type.dims)[0] = {};
    model.graph.set_type(model.graph.inputs()[0], type);
    const auto program = open_engine(options_of())->compile(model, {});
    for (const std::int64_t rows : {3, 1, 5, 3}) {
        std::vector<Value> outputs(1);
        const std::vector<Value> inputs{ones({rows, 4}, 2)};
        program->run(inputs, outputs);
        EXPECT_EQ(outputs[0].shape(), (Shape{rows, 4}));
        EXPECT_EQ(outputs[0].as<float>().back(), 4);
    }
}

// RESHAPE by a shape that is an input: nobody knows the output's shape before it runs.
TEST_F(LtEngine, GivesOutputsWhoseShapesShowInARun) {
    Model model;
    model.dialect = "tflite";
    auto& g = model.graph;
    const auto floats = Type::tensor(DType::f32, Shape{1, 4});
    const auto x = g.add_input("x", floats);
    const auto to = g.add_input("to", Type::tensor(DType::i32, Shape{2}));
    const auto y = g.add_tensor("y", floats);
    g.append({.type = "RESHAPE", .inputs = {x, to}, .outputs = {y}});
    g.set_outputs({y});
    const auto program = open_engine(options_of())->compile(model, {});
    const auto shape = [](std::int32_t rows, std::int32_t columns) {
        const std::int32_t both[]{rows, columns};
        return Value::copy(DType::i32, {2}, std::as_bytes(std::span(both)));
    };
    for (const auto& [rows, columns] : {std::pair{2, 2}, std::pair{4, 1}, std::pair{4, 1}}) {
        std::vector<Value> outputs(1);
        const std::vector<Value> inputs{ones({1, 4}, 5), shape(rows, columns)};
        program->run(inputs, outputs);
        EXPECT_EQ(outputs[0].shape(), (Shape{rows, columns}));
        EXPECT_THAT(outputs[0].as<float>(), ElementsAre(5, 5, 5, 5));
    }
}

TEST_F(LtEngine, SaysWhyItCannotCompile) {
    EXPECT_THAT(failure([] { run(seed("custom"), {ones({1, 4})}); }), HasSubstr("Mine"));
    EXPECT_THAT(failure([] { run(seed("texts"), {number(DType::i32, {1}, 0)}); }),
                HasSubstr("string"));
    Model other = seed("add");
    other.dialect = "caffe";
    EXPECT_THAT(failure([&] { run(other, {ones({1, 4})}); }), HasSubstr("dialect"));
}

TEST_F(LtEngine, RefusesBadInputs) {
    EXPECT_THAT(failure([] { run(seed("add"), {}); }), HasSubstr("takes 1 inputs"));
    EXPECT_THAT(failure([] { run(seed("add"), {number(DType::i32, {1}, 0)}); }),
                HasSubstr("takes f32"));
    EXPECT_THAT(failure([] { run(seed("add"), {Value()}); }), HasSubstr("tensors only"));
}

TEST_F(LtEngine, GivesInputsAndConstantsThatAreOutputs) {
    auto model = seed("add");
    auto& g = model.graph;
    const auto c = g.add_constant("c", Constant::of(DType::f32, {1}, std::vector<float>{7}));
    g.set_outputs({c, g.inputs()[0], g.outputs()[0], g.outputs()[0]});
    const auto outputs = run(model, {ones({1, 4})});
    EXPECT_THAT(outputs[0].as<float>(), ElementsAre(7));
    EXPECT_THAT(outputs[1].as<float>(), ElementsAre(1, 1, 1, 1));
    EXPECT_THAT(outputs[2].as<float>(), ElementsAre(2, 2, 2, 2));
    EXPECT_THAT(outputs[3].as<float>(), ElementsAre(2, 2, 2, 2));
}

// LiteRT counts in microseconds and leaves out what takes none: an op that takes some.
TEST_F(LtEngine, TimesOps) {
    const auto path = fs::path(TROCAR_SOURCE_DIR "/.deps/models/face_short.tflite");
    if (!fs::exists(path)) {
        GTEST_SKIP() << "the package's models are not there";
    }
    const auto model = load(path);
    const auto program = open_engine(options_of("builtin"))->compile(model, {.time_kernels = true});
    const std::vector<Value> inputs{ones({1, 128, 128, 3})};
    std::vector<Value> outputs(2);
    program->run(inputs, outputs);
    program->run(inputs, outputs);
    const auto times = program->take_times();
    ASSERT_EQ(times.runs.size(), 2U);
    std::size_t seen = 0;
    for (const auto& timed : times.runs) {
        for (const auto& kernel : timed.kernels) {
            EXPECT_TRUE(model.graph.find_op(kernel.op)) << kernel.op;
            ++seen;
        }
    }
    EXPECT_GT(seen, 0U);
}

TEST_F(LtEngine, OtherVersionsAndOptionsAreRefused) {
    EXPECT_THAT(failure([] { open_engine(options_of("fast")); }), HasSubstr("kernels=fast"));
    auto options = options_of();
    options.options = {{"tea", "1"}};
    EXPECT_THAT(failure([&] { open_engine(options); }), HasSubstr("no option 'tea'"));
    const TestFolder other;
    fs::create_directories(other / "ai_edge_litert");
    fs::create_directories(other / "ai_edge_litert-2.4.0.dist-info");
    fs::copy_file(folder + "/ai_edge_litert/libLiteRt.so", other / "ai_edge_litert/libLiteRt.so");
    options = options_of();
    options.path = other.path().string();
    EXPECT_THAT(failure([&] { open_engine(options); }), HasSubstr("2.4.0"));
    options.path = "/nowhere";
    EXPECT_THAT(failure([&] { open_engine(options); }), HasSubstr("no LiteRT"));
}

TEST_F(LtEngine, IsChosenForModelsOfItsDialect) {
    EngineOptions options;
    options.search = {folder};
    EXPECT_EQ(engine_for("tflite", options), "litert");
    EXPECT_EQ(engine_for("something else", options), "onnxruntime");
}

class LtPackageModel : public ::testing::TestWithParam<const char*> {};

// Whole and op by op agree; the engine fuses otherwise when ops stand alone, so not in bits.
TEST_P(LtPackageModel, CutAtEveryOpComputesTheSame) {
    const auto path = fs::path(TROCAR_SOURCE_DIR "/.deps/models") / GetParam();
    if (!fs::exists(folder) || !fs::exists(path)) {
        GTEST_SKIP() << "scripts/setup gets it";
    }
    const auto model = load(path);
    const auto engine = open_engine(options_of());
    std::vector<NamedValue> inputs;
    for (const auto id : model.graph.inputs()) {
        const auto& tensor = model.graph.tensor(id);
        Shape shape;
        for (const auto& dim : *tensor.type.dims) {
            shape.push_back(std::max<std::int64_t>(dim.value, 1));
        }
        auto value = Value::tensor(DType::f32, shape);
        auto* at = reinterpret_cast<float*>(value.mutable_bytes().data());
        for (std::size_t i = 0; i < value.element_count(); ++i) {
            at[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.37));
        }
        inputs.push_back({tensor.name, value});
    }
    Session whole(model, engine);
    SessionOptions options;
    options.cut = every_op();
    options.streaming = true;
    Session cut(model, engine, options);
    const auto expected = whole.run(inputs);
    const auto got = cut.run(inputs);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].value.shape(), expected[i].value.shape());
        const auto a = got[i].value.as<float>();
        const auto b = expected[i].value.as<float>();
        double most = 0;
        double scale = 0;
        for (std::size_t k = 0; k < a.size(); ++k) {
            most = std::max(most, std::abs(static_cast<double>(a[k]) - b[k]));
            scale = std::max(scale, std::abs(static_cast<double>(b[k])));
        }
        EXPECT_LE(most, 1e-4 * scale + 1e-6) << got[i].name;
    }
}

INSTANTIATE_TEST_SUITE_P(All, LtPackageModel,
                         ::testing::Values("nmp.tflite", "face_short.tflite",
                                           "face_full_sparse.tflite", "iris_landmark.tflite"));

}  // namespace
}  // namespace trocar
