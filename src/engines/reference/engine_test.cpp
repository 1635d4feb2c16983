#include "trocar/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "trocar/error.h"
#include "trocar/inputs.h"
#include "trocar/session.h"
#include "util/elements.h"

namespace trocar {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<Engine> reference() {
    EngineOptions options;
    options.name = "reference";
    return open_engine(options);
}

// One op that reads constants and writes one output, which is the model's.
Model one_op(const std::string& type, const std::vector<Constant>& inputs,
             std::vector<Attribute> attributes = {}, std::int64_t opset = 17) {
    Model model;
    model.format = "onnx";
    model.dialect = "onnx";
    model.ir_version = 8;
    model.opsets = {{"", opset}};
    OpSpec spec;
    spec.type = type;
    spec.name = "the_op";
    spec.attributes = std::move(attributes);
    for (const auto& input : inputs) {
        spec.inputs.push_back(model.graph.add_constant("", input));
    }
    spec.outputs = {model.graph.add_tensor("y", {})};
    const auto written = spec.outputs;
    model.graph.append(std::move(spec));
    model.graph.set_outputs(written);
    return model;
}

Attribute attribute(const std::string& name, Attribute::Value value) {
    Attribute made;
    made.name = name;
    made.value = std::move(value);
    return made;
}

Value run(const Model& model) {
    const auto program = reference()->compile(model, {});
    std::vector<Value> outputs(1);
    program->run({}, outputs);
    return outputs[0];
}

Constant floats(const Shape& shape, float number = 1) {
    return Constant::of(DType::f32, shape, std::vector<float>(element_count(shape), number));
}

Constant integers(const std::vector<std::int64_t>& numbers) {
    return Constant::of(DType::i64, {static_cast<std::int64_t>(numbers.size())}, numbers);
}

using Int64s = std::vector<std::int64_t>;

// Empty when it runs.
std::string failure_of(const Model& model) {
    try {
        run(model);
    } catch (const Error& e) {
        return e.what();
    }
    return {};
}

TEST(ReferenceEngine, IsAlwaysThere) {
    for (const auto* kind : engine_kinds()) {
        if (std::string_view(kind->name) == "reference") {
            const auto found = kind->find({});
            ASSERT_EQ(found.size(), 1U);
            EXPECT_TRUE(found[0].available);
            EXPECT_TRUE(found[0].can.deterministic);
            return;
        }
    }
    FAIL() << "it is not among the engines";
}

TEST(ReferenceEngine, TakesNeitherPathNorOptions) {
    EXPECT_THROW(open_engine(parse_engine("reference:/tmp")), Error);
    EXPECT_THROW(open_engine(parse_engine("reference,provider=cuda")), Error);
}

TEST(ReferenceEngine, NamesAnOpThatItLacksWhenItCompiles) {
    const auto model = one_op("TeaTime", {floats({1})});
    try {
        reference()->compile(model, {});
        FAIL() << "it compiled";
    } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::unsupported);
        EXPECT_NE(std::string(e.what()).find("TeaTime"), std::string::npos) << e.what();
    }
}

TEST(ReferenceEngine, KeepsIntegersOf64BitsExact) {
    const std::int64_t large = (std::int64_t{1} << 62) + 1;
    EXPECT_EQ(run(one_op("Add", {integers({large}), integers({2})})).as<std::int64_t>()[0],
              large + 2);
    const auto most = std::numeric_limits<std::uint64_t>::max();
    const auto wide = Constant::of(DType::u64, {1}, std::vector<std::uint64_t>{most});
    const auto three = Constant::of(DType::u64, {1}, std::vector<std::uint64_t>{3});
    EXPECT_EQ(run(one_op("Div", {wide, three})).as<std::uint64_t>()[0], most / 3);
    EXPECT_EQ(run(one_op("Add", {wide, three})).as<std::uint64_t>()[0], 2U);
    EXPECT_NE(run(one_op("Greater", {wide, three})).as<std::uint8_t>()[0], 0);
}

TEST(ReferenceEngine, SumsInDoubleAndRoundsOnce) {
    // In f32 the small numbers would be lost one by one.
    std::vector<float> numbers(1 << 12, 0x1p-13F);
    numbers[0] = 0x1p11F;
    const auto x = Constant::of(DType::f32, {1 << 12}, numbers);
    EXPECT_EQ(
        run(one_op("ReduceSum", {x}, {attribute("keepdims", std::int64_t{0})})).as<float>()[0],
        static_cast<float>(0x1p11 + 4095 * 0x1p-13));
}

TEST(ReferenceEngine, AnswersGraphsThatFitNowhereWithASentence) {
    const std::vector<Model> broken = [] {
        std::vector<Model> all;
        all.push_back(one_op("Add", {floats({2, 3})}));
        all.push_back(one_op("Add", {floats({2, 3}), floats({4})}));
        all.push_back(one_op("Add", {floats({2}), integers({1, 2})}));
        all.push_back(one_op("Conv", {floats({1, 3, 4, 4}), floats({2, 4, 3, 3})}));
        all.push_back(one_op("Conv", {floats({1}), floats({1})}));
        all.push_back(one_op("Conv", {floats({1, 1, 4, 4}), floats({1, 1, 3, 3})},
                             {attribute("strides", Int64s{1})}));
        all.push_back(one_op("Conv", {floats({1, 1, 4, 4}), floats({1, 1, 3, 3})},
                             {attribute("strides", Int64s{0, 0})}));
        all.push_back(one_op("Conv", {floats({1, 1, 4, 4}), floats({1, 1, 3, 3})},
                             {attribute("group", std::int64_t{0})}));
        all.push_back(one_op("MaxPool", {floats({1, 1, 4, 4})}));
        all.push_back(one_op("MatMul", {floats({2, 3}), floats({2, 3})}));
        all.push_back(one_op("Gather", {floats({3}), integers({3})}));
        all.push_back(one_op("GatherND", {floats({3}), integers({0, 0})}));
        all.push_back(one_op("ScatterND", {floats({3}), integers({-4}), floats({1})}));
        all.push_back(one_op("Transpose", {floats({2, 3})}, {attribute("perm", Int64s{0, 0})}));
        all.push_back(one_op("Transpose", {floats({2, 3})}, {attribute("perm", Int64s{0, 2})}));
        all.push_back(one_op("Reshape", {floats({2, 3}), integers({4, -1})}));
        all.push_back(one_op("Concat", {floats({2, 3}), floats({2, 4})},
                             {attribute("axis", std::int64_t{0})}));
        all.push_back(one_op("Softmax", {floats({2})}, {attribute("axis", std::string("x"))}));
        all.push_back(one_op("LSTM", {floats({1, 1, 2}), floats({1, 8, 3}), floats({1, 8, 2})}));
        all.push_back(
            one_op("Einsum", {floats({2, 3})}, {attribute("equation", std::string("i->j"))}));
        all.push_back(one_op("If", {floats({})}));
        all.push_back(one_op("Loop", {integers({1})}));
        all.push_back(one_op("Div", {integers({1}), integers({0})}));
        all.push_back(one_op("Split", {floats({4}), integers({1, 1})}));
        all.push_back(one_op("TopK", {floats({4}), integers({5})}));
        all.push_back(one_op("Constant", {}));
        return all;
    }();
    for (const auto& model : broken) {
        const auto said = failure_of(model);
        EXPECT_NE(said, "") << model.graph.op(model.graph.first()).type;
    }
}

TEST(ReferenceEngine, RefusesToFillTheMemory) {
    const std::int64_t huge = std::int64_t{1} << 40;
    const auto most = std::numeric_limits<std::int64_t>::max();
    const auto scalar = [](std::int64_t number) {
        return Constant::of(DType::i64, {}, std::vector<std::int64_t>{number});
    };
    EXPECT_NE(failure_of(one_op("ConstantOfShape", {integers({huge})})), "");
    EXPECT_NE(failure_of(one_op("ConstantOfShape", {integers({most, most, most})})), "");
    EXPECT_NE(failure_of(one_op("ConstantOfShape", {integers({0, most, most})})), "");
    EXPECT_NE(failure_of(one_op("Expand", {floats({1}), integers({huge})})), "");
    EXPECT_NE(failure_of(one_op("Tile", {floats({1}), integers({huge})})), "");
    EXPECT_NE(failure_of(one_op("Range", {scalar(0), scalar(most), scalar(1)})), "");
    EXPECT_NE(failure_of(one_op("Pad", {floats({1}), integers({huge, most})})), "");
    EXPECT_NE(failure_of(one_op("OneHot", {integers({0}), scalar(most), floats({2})})), "");
    EXPECT_NE(failure_of(one_op("MaxPool", {floats({1, 1, 4, 4})},
                                {attribute("kernel_shape", Int64s{huge, huge})})),
              "");
    EXPECT_NE(failure_of(one_op("Conv", {floats({1, 1, 4}), floats({1, 1, 1})},
                                {attribute("pads", Int64s{most, most})})),
              "");
}

TEST(ReferenceEngine, RefusesFunctionsThatCallThemselves) {
    auto model = one_op("Again", {floats({1})});
    model.graph = Graph();
    const auto x = model.graph.add_input("x", Type::tensor(DType::f32));
    const auto y = model.graph.add_tensor("y", {});
    OpSpec call{.type = "Again", .domain = "own", .inputs = {x}, .outputs = {y}};
    model.graph.append(call);
    model.graph.set_outputs({y});
    auto function = std::make_shared<Function>();
    function->name = "Again";
    function->domain = "own";
    const auto in = function->body.add_input("x", {});
    const auto out = function->body.add_tensor("y", {});
    call.inputs = {in};
    call.outputs = {out};
    function->body.append(call);
    function->body.set_outputs({out});
    model.functions = {function};
    EXPECT_THROW(reference()->compile(model, {}), Error);
}

TEST(ReferenceEngine, SaysWhatItsOpsTook) {
    const auto model = one_op("Relu", {floats({4})});
    CompileOptions options;
    options.time_kernels = true;
    const auto program = reference()->compile(model, options);
    std::vector<Value> outputs(1);
    program->run({}, outputs);
    const auto times = program->take_times();
    ASSERT_EQ(times.runs.size(), 1U);
    ASSERT_EQ(times.runs[0].kernels.size(), 1U);
    EXPECT_EQ(times.runs[0].kernels[0].op, "the_op");
    EXPECT_THROW(program->take_times(), Error);
}

TEST(ReferenceEngine, CopiesAnInputThatIsAnOutput) {
    auto model = one_op("Identity", {});
    model.graph = Graph();
    const auto x = model.graph.add_input("x", Type::tensor(DType::f32));
    const auto y = model.graph.add_tensor("y", {});
    model.graph.append({.type = "Identity", .inputs = {x}, .outputs = {y}});
    model.graph.set_outputs({y});
    const auto program = reference()->compile(model, {});
    const std::vector<float> numbers{1, 2, 3};
    const auto given = Value::borrow(DType::f32, {3}, std::as_bytes(std::span(numbers)), nullptr);
    std::vector<Value> outputs(1);
    program->run(std::span(&given, 1), outputs);
    EXPECT_NE(outputs[0].bytes().data(), given.bytes().data());
    EXPECT_EQ(outputs[0].as<float>()[2], 3);
}

// --- Against ONNX Runtime -----------------------------------------------------------------------

// How far two tensors are apart, in parts of the largest number.
double distance(const Value& a, const Value& b) {
    const auto size = a.element_count();
    std::vector<double> left(size);
    std::vector<double> right(size);
    decode(a.dtype(), a.bytes(), 0, left);
    decode(b.dtype(), b.bytes(), 0, right);
    double apart = 0;
    double largest = 1e-30;
    for (std::size_t i = 0; i < size; ++i) {
        apart = std::max(apart, std::abs(left[i] - right[i]));
        largest = std::max(largest, std::abs(left[i]));
    }
    return apart / largest;
}

class WholeModel : public testing::TestWithParam<const char*> {};

TEST_P(WholeModel, ComesOutAsOnOnnxRuntime) {
    const std::string path =
        std::string(TROCAR_SOURCE_DIR "/build/test-models/") + GetParam() + ".onnx";
    const std::string library = TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1";
    if (!fs::exists(path) || !fs::exists(library)) {
        GTEST_SKIP() << "the test models or ONNX Runtime are not there";
    }
    if (TROCAR_SANITIZED != 0 && fs::file_size(path) > (10U << 20U)) {
        GTEST_SKIP() << "minutes under a sanitizer; the small models use the same ops";
    }
    const auto model = load(path);
    InputSpec spec;
    spec.fill = "random";
    spec.seed = 7;
    spec.unknown_dims = 4;
    const auto inputs = make_inputs(model, spec);
    EngineOptions other;
    other.path = library;
    other.threads = 1;
    const auto expected = Session(model, other).run(inputs.values);
    const auto actual = Session(model, reference()).run(inputs.values);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
        ASSERT_EQ(actual[i].value.dtype(), expected[i].value.dtype());
        ASSERT_EQ(actual[i].value.shape(), expected[i].value.shape());
        EXPECT_LT(distance(expected[i].value, actual[i].value), 1e-4) << actual[i].name;
    }
}

INSTANTIATE_TEST_SUITE_P(Models, WholeModel,
                         testing::Values("resnet50", "mobilenet_v2", "transformer", "lstm",
                                         "lstm_unrolled", "functions", "if", "loop", "scan",
                                         "nested", "resize", "dynamo"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace trocar
