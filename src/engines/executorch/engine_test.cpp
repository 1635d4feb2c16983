#include "trocar/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "trocar/error.h"
#include "trocar/format.h"
#include "trocar/mapping.h"
#include "trocar/model.h"
#include "trocar/selector.h"
#include "trocar/session.h"

namespace trocar {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string folder = TROCAR_SOURCE_DIR "/.deps/executorch-1.5.1";
const std::string samples = TROCAR_SOURCE_DIR "/tests/formats/executorch/";

EngineOptions options_of(int threads = 1) {
    EngineOptions options;
    options.name = "executorch";
    options.path = folder;
    options.search = {TROCAR_SOURCE_DIR "/.deps"};
    options.threads = threads;
    return options;
}

class EtEngine : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fs::exists(folder)) {
            GTEST_SKIP() << "no ExecuTorch in the dependency folder";
        }
    }
};

Value npy(const std::string& name) {
    return load_values(samples + name).front().value;
}

std::vector<Value> run(const Model& model, std::vector<Value> inputs) {
    const auto program = open_engine(options_of())->compile(model, {});
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

void expect_near(const Value& a, const Value& b, float by) {
    ASSERT_EQ(a.shape(), b.shape());
    const auto left = a.as<float>();
    const auto right = b.as<float>();
    for (std::size_t i = 0; i < left.size(); ++i) {
        EXPECT_NEAR(left[i], right[i], by) << i;
    }
}

TEST_F(EtEngine, IsFoundAndTellsItsVersion) {
    for (const auto* kind : engine_kinds()) {
        if (kind->name != std::string("executorch")) {
            continue;
        }
        const auto found = kind->find(options_of());
        ASSERT_EQ(found.size(), 1U);
        EXPECT_TRUE(found[0].available) << found[0].missing;
        EXPECT_EQ(found[0].version, "1.5.1");
        auto nowhere = options_of();
        nowhere.path = "/nowhere";
        EXPECT_THAT(kind->find(nowhere).at(0).missing, HasSubstr("no ExecuTorch at '/nowhere'"));
    }
}

TEST_F(EtEngine, GivesWhatTorchGives) {
    expect_near(run(load(samples + "net.pte"), {npy("net_x.npy")})[0], npy("net_y.npy"), 1e-5F);
}

TEST_F(EtEngine, RunsDelegatesBranchesAndState) {
    if (TROCAR_SANITIZED == 0) {  // see library.cpp
        expect_near(run(load(samples + "delegate.pte"), {npy("net_x.npy")})[0], npy("net_y.npy"),
                    1e-5F);
    }
    const std::vector<float> ones(6, 1.0F);
    const std::vector<float> less(6, -1.0F);
    const auto give = [](const std::vector<float>& numbers) {
        return Value::copy(DType::f32, {2, 3}, std::as_bytes(std::span(numbers)));
    };
    EXPECT_THAT(run(load(samples + "branches.pte"), {give(ones)})[0].as<float>(),
                ElementsAre(2, 2, 2, 2, 2, 2));
    EXPECT_THAT(run(load(samples + "branches.pte"), {give(less)})[0].as<float>(),
                ElementsAre(-2, -2, -2, -2, -2, -2));
    const auto program = open_engine(options_of())->compile(load(samples + "state.pte"), {});
    std::vector<Value> outputs(1);
    for (const float expected : {2.0F, 3.0F}) {
        program->run(std::vector{give(ones)}, outputs);
        EXPECT_EQ(outputs[0].as<float>()[0], expected);
    }
}

// Files that our writer made anew: memory plan, constants and calls are ours.
TEST_F(EtEngine, RunsWhatOurWriterWrote) {
    for (const auto* name : {"net.pte", "delegate.pte"}) {
        if (TROCAR_SANITIZED != 0 && name == std::string("delegate.pte")) {
            continue;
        }
        auto model = load(samples + name);
        model.graph.rename(model.graph.outputs()[0], "result");
        ASSERT_FALSE(model.intact());
        expect_near(run(model, {npy("net_x.npy")})[0], npy("net_y.npy"), 1e-5F);
    }
}

TEST_F(EtEngine, RunsProgramsOfTorchExport) {
    expect_near(run(load(samples + "net.pt2"), {npy("net_x.npy")})[0], npy("net_y.npy"), 1e-5F);
}

TEST_F(EtEngine, RunsOnnxWithoutShapesAndOpByOp) {
    if (!fs::exists(TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1")) {
        GTEST_SKIP() << "no ONNX Runtime in the dependency folder";
    }
    const auto model = load(TROCAR_SOURCE_DIR "/models/digits.onnx");
    const std::vector<NamedValue> inputs{{"image", Value::tensor(DType::f32, {2, 1, 8, 8})}};
    for (const bool cut : {false, true}) {
        SessionOptions options;
        if (cut) {
            options.cut = every_op();
        }
        Session here(model, open_engine(options_of()), options);
        EngineOptions other;
        other.search = {TROCAR_SOURCE_DIR "/.deps"};
        Session there(model, open_engine(other), {});
        expect_near(here.run(inputs)[0].value, there.run(inputs)[0].value, 1e-5F);
    }
}

TEST_F(EtEngine, TimesItsInstructions) {
    CompileOptions how;
    how.time_kernels = true;
    const auto model = load(samples + "net.pte");
    const auto program = open_engine(options_of())->compile(model, how);
    std::vector<Value> outputs(1);
    program->run(std::vector{npy("net_x.npy")}, outputs);
    const auto times = program->take_times();
    ASSERT_EQ(times.runs.size(), 1U);
    EXPECT_EQ(times.runs[0].kernels.size(), 11U);
    EXPECT_EQ(times.runs[0].kernels[0].op, model.graph.op(model.graph.first()).name);
    EXPECT_GT(times.runs[0].kernels[0].spent_ns, 0);
}

TEST_F(EtEngine, AKernelThatStopsIsAnErrorOfTheRun) {
    Model model;
    model.dialect = "aten";
    OpSpec spec;  // its kernel takes the argument for granted that is left out
    spec.type = "gelu";
    spec.overload = "default";
    spec.inputs = {model.graph.add_input("x", Type::tensor(DType::f32, Shape{2}))};
    spec.outputs = {model.graph.add_tensor("y", Type::tensor(DType::f32, Shape{2}))};
    const auto y = spec.outputs[0];
    model.graph.append(std::move(spec));
    model.graph.set_outputs({y});
    const auto x = Value::tensor(DType::f32, {2});
    for (int i = 0; i < 2; ++i) {
        EXPECT_THAT(failure([&] { run(model, {x}); }), HasSubstr("not a String"));
    }
}

TEST_F(EtEngine, SaysWhatItCannotDo) {
    const auto model = load(samples + "net.pte");
    EXPECT_THAT(failure([&] {
                    run(model, {Value::tensor(DType::f32, {1, 3, 8, 8})});
                }),
                HasSubstr("but the program takes f32[2,3,8,8]"));
    EXPECT_THAT(failure([&] {
                    run(model, {Value::tensor(DType::i64, {2, 3, 8, 8})});
                }),
                HasSubstr("but the program takes"));
    auto options = options_of();
    options.options = {{"speed", "much"}};
    EXPECT_THAT(failure([&] { open_engine(options); }), HasSubstr("no option 'speed'"));
    options = options_of();
    options.path = "/nowhere";
    EXPECT_THAT(failure([&] { open_engine(options); }), HasSubstr("no ExecuTorch at"));
}

}  // namespace
}  // namespace trocar
