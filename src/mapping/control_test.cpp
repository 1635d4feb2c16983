#include "mapping/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "trocar/engine.h"
#include "trocar/mapping.h"

namespace trocar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Type floats() {
    return Type::tensor(DType::f32, Shape{2});
}

Attribute text(const std::string& name, const std::string& value) {
    return {.name = name, .value = value, .reference = {}, .source = {}};
}

// y = f(x), by an op that has one body for both cases.
void choose(Graph& graph, const std::string& name, const std::string& body, TensorId flag,
            TensorId x) {
    OpSpec spec;
    spec.type = "StatelessIf";
    spec.name = name;
    spec.inputs = {flag, x};
    spec.outputs = {graph.add_tensor(name, floats())};
    spec.attributes = {text("then_branch", body), text("else_branch", body)};
    graph.append(std::move(spec));
}

// A function that chooses `times` times what another one does.
std::shared_ptr<Function> function(const std::string& name, const std::string& body, int times) {
    auto made = std::make_shared<Function>();
    made->name = name;
    auto& graph = made->body;
    const auto flag =
        graph.add_constant("flag", Constant::of(DType::i32, {}, std::vector<std::int32_t>{1}));
    auto x = graph.add_input("x", floats());
    OpSpec less;
    less.type = "LogicalNot";
    less.inputs = {flag};
    less.outputs = {graph.add_tensor("not", Type::tensor(DType::boolean, Shape{}))};
    const auto open = less.outputs[0];
    graph.append(std::move(less));
    for (int i = 0; i < times; ++i) {
        const auto step = "step" + std::to_string(i);
        choose(graph, step, body, open, x);
        x = *graph.find_tensor(step);
    }
    graph.set_outputs({x});
    return made;
}

Model calling(const std::string& body) {
    Model model;
    model.dialect = "tf";
    const auto flag = model.graph.add_input("flag", Type::tensor(DType::boolean, Shape{}));
    const auto x = model.graph.add_input("x", floats());
    choose(model.graph, "y", body, flag, x);
    model.graph.set_outputs({*model.graph.find_tensor("y")});
    return model;
}

TEST(Control, FunctionsThatNameThemselvesAreNotMapped) {
    auto model = calling("again");
    model.functions = {function("again", "again", 1)};
    const auto mapped = map_model(model, "onnx");
    EXPECT_FALSE(mapped.complete());
    EXPECT_THAT(mapped.ops.at(0).why, HasSubstr("deep"));
}

TEST(Control, AFewFunctionsDoNotBecomeMillionsOfOps) {
    auto model = calling("f0");
    for (int i = 0; i < 30; ++i) {
        model.functions.push_back(
            function("f" + std::to_string(i), "f" + std::to_string(i + 1), 8));
    }
    model.functions.push_back(function("f30", "", 0));
    const auto mapped = map_model(model, "onnx");
    EXPECT_FALSE(mapped.complete());
    EXPECT_THAT(mapped.ops.at(0).why, HasSubstr("ops together"));
}

TEST(Control, AFunctionThatIsNotThereIsSaid) {
    const auto mapped = map_model(calling("gone"), "onnx");
    ASSERT_FALSE(mapped.complete());
    EXPECT_EQ(mapped.ops.at(0).why, "its then_branch is 'gone', and there is no such function");
}

TEST(Control, AChoiceAmongNoneIsSaid) {
    Model model;
    model.dialect = "tf";
    auto& graph = model.graph;
    OpSpec spec;
    spec.type = "Case";
    spec.name = "y";
    spec.inputs = {graph.add_input("which", Type::tensor(DType::i32, Shape{}))};
    spec.outputs = {graph.add_tensor("y", floats())};
    spec.attributes = {{"branches", std::vector<std::string>(), {}, {}}};
    graph.append(std::move(spec));
    graph.set_outputs({*graph.find_tensor("y")});
    const auto mapped = map_model(model, "onnx");
    ASSERT_FALSE(mapped.complete());
    EXPECT_THAT(mapped.ops.at(0).why, HasSubstr("branches"));
}

// The condition of TorchScript's choices is a truth, not only a number.
TEST(Control, AKnownConditionChoosesItsBody) {
    for (const bool truth : {true, false}) {
        Model model;
        model.dialect = "aten";
        auto& graph = model.graph;
        const auto x = graph.add_input("x", floats());
        const auto body = [](const std::string& type) {
            auto made = std::make_shared<Graph>();
            OpSpec spec;
            spec.domain = "aten";
            spec.type = type;
            spec.overload = "default";
            spec.inputs = {made->add_capture("x")};
            spec.outputs = {made->add_tensor(type, floats())};
            made->append(std::move(spec));
            made->set_outputs({*made->find_tensor(type)});
            return made;
        };
        OpSpec spec;
        spec.domain = "prim";
        spec.type = "If";
        const std::byte bit{truth};
        spec.inputs = {graph.add_constant("c", Constant::copy(DType::boolean, {}, {&bit, 1}))};
        spec.outputs = {graph.add_tensor("y", floats())};
        spec.attributes = {{"then_branch", body("relu"), {}, {}},
                           {"else_branch", body("neg"), {}, {}}};
        graph.append(std::move(spec));
        graph.set_outputs({*graph.find_tensor("y")});
        ASSERT_TRUE(graph.contains(x));
        const auto mapped = map_model(model, "onnx");
        ASSERT_TRUE(mapped.complete()) << mapped.ops.at(0).why;
        EXPECT_EQ(mapped.model.graph.op(mapped.model.graph.first()).type, truth ? "Relu" : "Neg");
    }
}

// The models with bodies that the reader's fuzz target begins with, on LiteRT and mapped.
class LiteBodies : public testing::Test {
protected:
    static std::vector<Value> run(const std::string& seed, const std::string& engine,
                                  const std::vector<Value>& inputs) {
        const auto model = load(TROCAR_SOURCE_DIR "/fuzz/tflite_reader_seeds/" + seed, "tflite");
        EngineOptions options;
        options.name = engine;
        options.search = {TROCAR_SOURCE_DIR "/.deps"};
        options.threads = 1;
        const auto program = open_engine(options)->compile(model, {});
        std::vector<Value> outputs(program->output_names().size());
        program->run(inputs, outputs);
        return outputs;
    }
    template <class T>
    static Value value(DType dtype, const Shape& shape, const std::vector<T>& items) {
        return Value::copy(dtype, shape, std::as_bytes(std::span(items)));
    }
    void SetUp() override {
        if (!std::filesystem::exists(TROCAR_SOURCE_DIR "/.deps/litert-2.3.0")) {
            GTEST_SKIP() << "scripts/setup gets the engines";
        }
    }
};

TEST_F(LiteBodies, ChoicesAndLoopsGiveTheSameMapped) {
    const auto x = value<float>(DType::f32, {1, 4}, {1, -2, 3, 0.5F});
    for (const char* engine : {"litert", "onnxruntime"}) {
        for (const std::uint8_t flag : {std::uint8_t{0}, std::uint8_t{1}}) {
            const auto given = value<std::uint8_t>(DType::boolean, {}, {flag});
            const auto chosen = run("branches", engine, {given, x});
            if (flag != 0) {
                EXPECT_THAT(chosen[0].as<float>(), ElementsAre(1, 4, 9, 0.25F)) << engine;
            } else {
                EXPECT_THAT(chosen[0].as<float>(), ElementsAre(2, -4, 6, 1)) << engine;
            }
        }
        // Three rounds at most, less what is counted already; none is a loop too.
        for (const std::int32_t from : {0, 2, 3}) {
            const auto looped =
                run("loop", engine, {value<std::int32_t>(DType::i32, {1}, {from}), x});
            const auto times = static_cast<float>(1 << (3 - from));
            EXPECT_THAT(looped[0].as<std::int32_t>(), ElementsAre(3)) << engine;
            EXPECT_THAT(looped[1].as<float>(), ElementsAre(times, -2 * times, 3 * times, times / 2))
                << engine;
        }
    }
}

}  // namespace
}  // namespace trocar
