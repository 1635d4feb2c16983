#include "trocar/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "engines/openvino/messages.h"
#include "graph/test_graphs.h"
#include "trocar/error.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using ::testing::HasSubstr;
using Options = std::vector<std::pair<std::string, std::string>>;

const std::string folder = TROCAR_SOURCE_DIR "/.deps/openvino-2026.4.1";

EngineOptions options_of(int threads, Options options) {
    EngineOptions chosen;
    chosen.name = "openvino";
    chosen.path = folder;
    chosen.threads = threads;
    chosen.options = std::move(options);
    return chosen;
}

class OvEngine : public ::testing::Test {
protected:
    void SetUp() override {
        if (!fs::exists(folder)) {
            GTEST_SKIP() << "no OpenVINO in the dependency folder";
        }
    }
    static std::shared_ptr<Engine> engine(int threads = 1, Options options = {}) {
        return open_engine(options_of(threads, std::move(options)));
    }
};

Model model_of(Graph graph, std::int64_t opset = 17) {
    Model model;
    model.format = "onnx";
    model.dialect = "onnx";
    model.ir_version = 10;
    model.opsets = {{"", opset}};
    graph.name = "g";
    model.graph = std::move(graph);
    return model;
}

using Ends = std::vector<std::pair<std::string, Type>>;

// One op that reads the inputs and writes `outputs`, all of them the model's.
Model one_op(const std::string& type, const Ends& inputs, const Ends& outputs,
             std::vector<Attribute> attributes = {}, std::int64_t opset = 17) {
    Graph graph;
    auto op = spec(type, {}, {}, "the_op");
    op.attributes = std::move(attributes);
    for (const auto& [name, declared] : inputs) {
        op.inputs.push_back(graph.add_input(name, declared));
    }
    for (const auto& [name, declared] : outputs) {
        op.outputs.push_back(graph.add_tensor(name, declared));
    }
    const auto written = op.outputs;
    graph.append(std::move(op));
    graph.set_outputs(written);
    return model_of(std::move(graph), opset);
}

Type tensor(DType dtype) {
    return Type::tensor(dtype);
}
Model relu(const Type& type = tensor(DType::f32)) {
    return one_op("Relu", {{"x", type}}, {{"y", tensor(DType::f32)}});
}
Model cast(DType from, DType to, std::int64_t opset) {
    return one_op("Cast", {{"x", Type::tensor(from, Shape{5})}}, {{"y", tensor(to)}},
                  {{"to", static_cast<std::int64_t>(to), {}, {}}}, opset);
}

template <class T>
Value of(DType dtype, Shape shape, const std::vector<T>& values) {
    return Value::copy(dtype, std::move(shape), std::as_bytes(std::span<const T>(values)));
}
Value floats(const std::vector<float>& values) {
    return of(DType::f32, {static_cast<std::int64_t>(values.size())}, values);
}
std::vector<float> floats_of(const Value& value) {
    const auto span = value.as<float>();
    return {span.begin(), span.end()};
}

std::vector<Value> run(Program& program, const std::vector<Value>& inputs) {
    std::vector<Value> outputs(program.output_names().size());
    program.run(inputs, outputs);
    return outputs;
}

Error error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& e) {
        return e;
    }
    return {Fault::internal, "nothing was thrown"};
}

TEST_F(OvEngine, SaysWhatItIs) {
    const auto opened = engine();
    EXPECT_EQ(opened->info().version, "2026.4.1");
    EXPECT_EQ(opened->info().can.dialects.front(), "onnx");  // others are mapped to it
    EXPECT_THAT(opened->info().can.providers, ::testing::Contains("CPU"));
    EXPECT_FALSE(opened->info().can.host_calls);
    EXPECT_FALSE(opened->info().can.deployed);
    EXPECT_THROW(opened->deployed(relu()), Error);
}

TEST_F(OvEngine, RunsAProgramWhateverIsKnownOfItsShape) {
    auto named = tensor(DType::f32);
    named.dims = {{-1, "n"}};
    for (const auto& type : {tensor(DType::f32), named, Type::tensor(DType::f32, Shape{2})}) {
        auto program = engine()->compile(relu(type), {});
        EXPECT_EQ(program->input_names().front(), "x");
        EXPECT_EQ(program->output_names().front(), "y");
        const auto y = run(*program, {floats({-1, 2})}).front();
        EXPECT_EQ(value_text(y), "f32 2");
        EXPECT_EQ(floats_of(y), (std::vector<float>{0, 2}));
    }
}

TEST_F(OvEngine, TakesShapesAsTheyCome) {
    auto program = engine()->compile(relu(), {});
    for (int again = 0; again < 2; ++again) {
        for (std::int64_t n = 0; n < 12; ++n) {
            const std::vector<float> x(static_cast<std::size_t>(n), 3);
            EXPECT_EQ(floats_of(run(*program, {of(DType::f32, {1, n}, x)}).front()), x);
        }
    }
    EXPECT_EQ(value_text(run(*program, {Value::tensor(DType::f32, {2, 0})}).front()), "f32 2x0");
    const auto scalar = run(*program, {of(DType::f32, {}, std::vector<float>{4})}).front();
    EXPECT_EQ(scalar.shape(), Shape{});
    EXPECT_EQ(floats_of(scalar), std::vector<float>{4});
}

TEST_F(OvEngine, ValuesOutliveRunProgramAndEngine) {
    std::vector<Value> values;
    {
        auto program = engine()->compile(relu(), {});
        for (const float x : {1.0F, 2.0F}) {
            values.push_back(run(*program, {floats({x})}).front());
        }
    }
    EXPECT_EQ(floats_of(values[0]), std::vector<float>{1});
    EXPECT_EQ(floats_of(values[1]), std::vector<float>{2});
}

// Inputs nobody reads, an output that is an input, a constant, and the same twice.
TEST_F(OvEngine, KeepsInputsAndOutputsWhateverTheEngineMakesOfThem) {
    Graph graph;
    const auto unread = graph.add_input("unread", tensor(DType::f32));
    const auto x = graph.add_input("x", tensor(DType::f32));
    const auto k = graph.add_constant("k", Constant::of<float>(DType::f32, {1}, {5}));
    const auto copy = new_tensor(graph, "copy");
    const auto y = new_tensor(graph, "y");
    const auto five = new_tensor(graph, "five");
    graph.append(spec("Identity", {x}, {copy}, "i"));
    graph.append(spec("Relu", {copy}, {y}, "r"));
    graph.append(spec("Identity", {k}, {five}, "c"));
    graph.set_outputs({y, x, k, y, unread, copy, five});
    auto program = engine()->compile(model_of(std::move(graph)), {});
    EXPECT_THAT(program->input_names(), ::testing::ElementsAre("unread", "x"));
    EXPECT_THAT(program->output_names(),
                ::testing::ElementsAre("y", "x", "k", "y", "unread", "copy", "five"));
    const auto outputs = run(*program, {floats({9}), floats({-1, 2})});
    EXPECT_EQ(floats_of(outputs[0]), (std::vector<float>{0, 2}));
    EXPECT_EQ(floats_of(outputs[1]), (std::vector<float>{-1, 2}));
    EXPECT_EQ(floats_of(outputs[2]), (std::vector<float>{5}));
    EXPECT_EQ(floats_of(outputs[3]), (std::vector<float>{0, 2}));
    EXPECT_EQ(floats_of(outputs[4]), (std::vector<float>{9}));
    EXPECT_EQ(floats_of(outputs[5]), (std::vector<float>{-1, 2}));
    EXPECT_EQ(floats_of(outputs[6]), (std::vector<float>{5}));
}

TEST_F(OvEngine, RunsAModelWithoutOps) {
    Graph graph;
    graph.set_outputs({graph.add_input("x", tensor(DType::f32))});
    auto program = engine()->compile(model_of(std::move(graph)), {});
    EXPECT_EQ(floats_of(run(*program, {floats({1})}).front()), std::vector<float>{1});
}

TEST_F(OvEngine, DropsInputsThatItsOwnOpsDoNotNeed) {
    // Dropout that does nothing reads its ratio for nothing.
    auto scalar = tensor(DType::f32);
    scalar.dims.emplace();
    auto program =
        engine()->compile(one_op("Dropout", {{"x", tensor(DType::f32)}, {"ratio", scalar}},
                                 {{"y", tensor(DType::f32)}}),
                          {});
    EXPECT_EQ(
        floats_of(
            run(*program, {floats({3}), of(DType::f32, {}, std::vector<float>{0.5F})}).front()),
        std::vector<float>{3});
}

// What an op that does nothing hands through has the output's name in the engine.
TEST_F(OvEngine, DoesNotMixUpInputsThatItRenames) {
    Graph graph;
    std::vector<TensorId> inputs;
    for (const char* name : {"a", "b", "c"}) {
        inputs.push_back(graph.add_input(name, Type::tensor(DType::f32, Shape{1})));
    }
    const auto one = graph.add_constant("one", Constant::of<float>(DType::f32, {1}, {1}));
    const auto y = new_tensor(graph, "y");
    const auto z = new_tensor(graph, "z");
    graph.append(spec("Mul", {one, inputs[1]}, {y}));
    graph.append(spec("Sub", {inputs[0], inputs[2]}, {z}));
    graph.set_outputs({y, z});
    auto program = engine()->compile(model_of(std::move(graph)), {});
    const auto outputs = run(*program, {floats({1}), floats({10}), floats({100})});
    EXPECT_EQ(floats_of(outputs[0]), std::vector<float>{10});
    EXPECT_EQ(floats_of(outputs[1]), std::vector<float>{-99});
}

TEST_F(OvEngine, TakesConstantsHoweverTheyLie) {
    for (const std::int64_t n : {2, 64}) {  // written into the model; read where they are
        for (const std::size_t shift : {0, 1}) {
            const auto size = static_cast<std::size_t>(n * n) * sizeof(float);
            auto room = std::make_shared<std::vector<std::byte>>(size + 64);
            auto* start = room->data() + shift;
            for (std::int64_t i = 0; i < n; ++i) {
                const float two = 2;
                std::memcpy(start + (i * n + i) * 4, &two, sizeof two);
            }
            Graph graph;
            const auto x = graph.add_input("x", Type::tensor(DType::f32, Shape{1, n}));
            const auto w =
                graph.add_constant("w", Constant::view(DType::f32, {n, n}, {start, size}, room));
            const auto y = new_tensor(graph, "y");
            graph.append(spec("MatMul", {x, w}, {y}));
            graph.set_outputs({y});
            auto program = engine()->compile(model_of(std::move(graph)), {});
            std::fill(room->begin(), room->end(), std::byte{});  // the program has a copy
            const std::vector<float> given(static_cast<std::size_t>(n), 3);
            EXPECT_EQ(floats_of(run(*program, {of(DType::f32, {1, n}, given)}).front()),
                      std::vector<float>(given.size(), 6));
        }
    }
}

TEST_F(OvEngine, GivesTheTypesThatTheModelDeclares) {
    struct Case {
        DType dtype;
        std::int64_t opset;
        float number;
        std::vector<std::uint8_t> bytes;  // of five elements
    };
    const std::vector<Case> cases{
        {DType::f16, 17, 1.5, {0, 0x3e, 0, 0x3e, 0, 0x3e, 0, 0x3e, 0, 0x3e}},
        {DType::bf16, 17, 1.5, {0xc0, 0x3f, 0xc0, 0x3f, 0xc0, 0x3f, 0xc0, 0x3f, 0xc0, 0x3f}},
        {DType::i8, 17, -1, {0xff, 0xff, 0xff, 0xff, 0xff}},
        {DType::u8, 17, 200, {200, 200, 200, 200, 200}},
        {DType::i16, 17, -1, std::vector<std::uint8_t>(10, 0xff)},
        {DType::i32, 17, -1, std::vector<std::uint8_t>(20, 0xff)},
        {DType::i64, 17, -1, std::vector<std::uint8_t>(40, 0xff)},
        {DType::boolean, 17, 1, {1, 1, 1, 1, 1}},
    };
    auto opened = engine();
    for (const auto& c : cases) {
        const std::vector<float> numbers(5, c.number);
        auto there = opened->compile(cast(DType::f32, c.dtype, c.opset), {});
        const auto small = run(*there, {floats(numbers)}).front();
        EXPECT_EQ(small.dtype(), c.dtype);
        const auto got = small.as<std::uint8_t>();
        EXPECT_EQ(std::vector<std::uint8_t>(got.begin(), got.end()), c.bytes) << name(c.dtype);
        auto back = opened->compile(cast(c.dtype, DType::f32, c.opset), {});
        EXPECT_EQ(floats_of(run(*back, {of(c.dtype, {5}, c.bytes)}).front()), numbers)
            << name(c.dtype);
    }
}

TEST_F(OvEngine, RefusesF64UnlessItMayBeF32) {
    const auto model = one_op("Relu", {{"x", tensor(DType::f64)}}, {{"y", tensor(DType::f64)}});
    const auto e = error_of([&] { engine()->compile(model, {}); });
    EXPECT_EQ(e.fault(), Fault::unsupported);
    EXPECT_STREQ(e.what(), "OpenVINO computes f64 in f32, and tensor 'x' is f64");
    EXPECT_EQ(e.hint(), "--engine openvino,f64=f32 allows it");
    EXPECT_THAT(error_of([&] { engine()->compile(cast(DType::f32, DType::f64, 17), {}); }).what(),
                HasSubstr("op 0 (Cast 'the_op') is f64"));
    auto program = engine(1, {{"f64", "f32"}})->compile(model, {});
    const auto y = run(*program, {of(DType::f64, {1}, std::vector<double>{0.5})}).front();
    EXPECT_EQ(y.dtype(), DType::f64);
    EXPECT_EQ(y.as<double>()[0], 0.5);
}

TEST_F(OvEngine, RefusesIntegersThatItWouldCut) {
    const auto model = one_op("Neg", {{"x", tensor(DType::i64)}}, {{"y", tensor(DType::i64)}});
    auto program = engine()->compile(model, {});
    const auto integers = [](std::int64_t x) {
        return of(DType::i64, {1}, std::vector<std::int64_t>{x});
    };
    EXPECT_EQ(run(*program, {integers(2'000'000'000)}).front().as<std::int64_t>()[0],
              -2'000'000'000);
    const auto e = error_of([&] { run(*program, {integers(3'000'000'000)}); });
    EXPECT_EQ(e.fault(), Fault::unsupported);
    EXPECT_STREQ(e.what(),
                 "input 'x': 3000000000 does not fit the 32 bits in which OpenVINO computes "
                 "integers of the type i64");
}

TEST_F(OvEngine, RefusesWhatIsNoTensorOfNumbers) {
    Type sequence;
    sequence.kind = Type::Kind::sequence;
    sequence.element = {tensor(DType::f32)};
    for (const auto& type : {tensor(DType::string), tensor(DType::c64), sequence}) {
        const auto e = error_of([&] {
            engine()->compile(one_op("Identity", {{"x", type}}, {{"y", type}}), {});
        });
        EXPECT_EQ(e.fault(), Fault::unsupported);
        EXPECT_EQ(e.what(),
                  "OpenVINO has no output of the type " + type_text(type) + ", which 'y' is");
    }
}

TEST_F(OvEngine, RefusesInputsOfAnotherTypeOrNumber) {
    auto program = engine()->compile(relu(), {});
    EXPECT_EQ(error_of([&] { run(*program, {}); }).fault(), Fault::usage);
    EXPECT_STREQ(error_of([&] { run(*program, {Value()}); }).what(), "input 'x' has no value");
    EXPECT_STREQ(error_of([&] { run(*program, {Value::tensor(DType::i64, {1})}); }).what(),
                 "input 'x' is i64, but the program takes f32");
    EXPECT_EQ(error_of([&] { run(*program, {Value::sequence({floats({1})})}); }).fault(),
              Fault::engine);
}

TEST_F(OvEngine, NamesTheOpThatFails) {
    auto program =
        engine()->compile(one_op("Add", {{"a", tensor(DType::f32)}, {"b", tensor(DType::f32)}},
                                 {{"y", tensor(DType::f32)}}),
                          {});
    const auto e = error_of([&] { run(*program, {floats({1, 2}), floats({1, 2, 3})}); });
    EXPECT_EQ(e.fault(), Fault::engine);
    EXPECT_STREQ(e.what(),
                 "OpenVINO could not compile the program: Add 'the_op': Argument shapes are "
                 "inconsistent");
    EXPECT_EQ(floats_of(run(*program, {floats({1}), floats({2})}).front()),
              std::vector<float>{3});  // still usable
}

TEST_F(OvEngine, RefusesAModelItDoesNotUnderstand) {
    for (const auto& type : {tensor(DType::f32), Type::tensor(DType::f32, Shape{1})}) {
        const auto e = error_of([&] {
            engine()->compile(one_op("NoSuchOp", {{"x", type}}, {{"y", tensor(DType::f32)}}), {});
        });
        EXPECT_EQ(e.fault(), Fault::engine);
        EXPECT_STREQ(e.what(),
                     "OpenVINO could not compile the program: it does not know NoSuchOp-17");
    }
}

TEST_F(OvEngine, PrintsNothing) {
    ::testing::internal::CaptureStderr();
    ::testing::internal::CaptureStdout();
    {
        auto program = engine()->compile(relu(), {});
        run(*program, {floats({1})});
        error_of([&] { run(*program, {Value::tensor(DType::i64, {1})}); });
        error_of([&] { engine()->compile(one_op("NoSuchOp", {}, {{"y", {}}}), {}); });
    }
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST_F(OvEngine, RunsWithAnyNumberOfThreads) {
    for (const int threads : {0, 1, 2, 3}) {
        auto program = engine(threads)->compile(relu(), {});
        EXPECT_EQ(floats_of(run(*program, {floats({2})}).front()), std::vector<float>{2});
    }
}

TEST_F(OvEngine, ProgramsRunOnSeveralThreadsAtOnce) {
    // OpenVINO trims the C library's heap from every thread; the first trim sets that heap up and
    // is not safe beside another, where a sanitizer's own heap has left it untouched so far.
    ::malloc_trim(0);
    auto opened = engine();
    std::vector<std::thread> workers;
    for (int worker = 0; worker < 4; ++worker) {
        workers.emplace_back([&opened, worker] {
            auto program = opened->compile(relu(), {});
            for (int i = 0; i < 100; ++i) {
                const auto x = static_cast<float>(worker * 1000 + i);
                ASSERT_EQ(floats_of(run(*program, {floats({x})}).front()), std::vector<float>{x});
            }
        });
    }
    for (auto& worker : workers) {
        worker.join();
    }
}

TEST_F(OvEngine, TellsWhatOpsTookWhereItWasAsked) {
    auto program = engine()->compile(relu(), {.time_kernels = true});
    run(*program, {floats({-1, 2})});
    run(*program, {floats({-1, 2, 3})});
    const auto times = program->take_times();
    ASSERT_EQ(times.runs.size(), 2U);
    const auto& kernels = times.runs[1].kernels;
    ASSERT_EQ(kernels.size(), 1U);
    EXPECT_EQ(kernels[0].op, "the_op");
    EXPECT_LE(kernels[0].spent_ns, times.runs[1].spent_ns + times.resolution_ns);
    EXPECT_GE(kernels[0].start_ns, times.runs[1].start_ns);
    EXPECT_THROW(program->take_times(), Error);
    EXPECT_THROW(engine()->compile(relu(), {})->take_times(), Error);
}

TEST_F(OvEngine, ChecksItsOptions) {
    const auto fault = [](const char* key, const char* value) {
        return error_of([&] { engine(1, {{key, value}}); }).fault();
    };
    EXPECT_EQ(fault("precision", "f12"), Fault::usage);
    EXPECT_EQ(fault("mode", "fast"), Fault::usage);
    EXPECT_EQ(fault("f64", "yes"), Fault::usage);
    EXPECT_EQ(fault("provider", "cpu"), Fault::usage);
    EXPECT_EQ(fault("config.", "1"), Fault::usage);
    EXPECT_EQ(fault("device", "tea"), Fault::engine);
    EXPECT_THAT(error_of([&] {
                    engine(1, {{"device", "tea"}});
                }).what(),
                HasSubstr("has no device 'TEA' (it has: CPU"));
    auto program = engine(1, {{"device", "cpu"},
                              {"mode", "performance"},
                              {"config.ENABLE_HYPER_THREADING", "NO"}})
                       ->compile(relu(), {});
    EXPECT_EQ(floats_of(run(*program, {floats({2})}).front()), std::vector<float>{2});
    auto unknown = engine(1, {{"config.NO_SUCH_PROPERTY", "1"}});
    const auto e = error_of([&] { run(*unknown->compile(relu(), {}), {floats({2})}); });
    EXPECT_THAT(e.what(), HasSubstr("NO_SUCH_PROPERTY"));
}

TEST_F(OvEngine, SaysOnceThatItOptimisesAllTheSame) {
    std::vector<std::string> lines;
    auto options = options_of(1, {});
    options.log = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
    const auto opened = open_engine(options);
    const CompileOptions none{.optimize = CompileOptions::Optimize::none};
    opened->compile(relu(), none);
    EXPECT_TRUE(lines.empty());  // a single op has nothing to fuse with
    opened->compile(model_of(residual()), none);
    opened->compile(model_of(residual()), none);
    EXPECT_THAT(lines, ::testing::ElementsAre(HasSubstr("optimises all the same")));
}

TEST_F(OvEngine, RunsBesideOnnxRuntime) {
    EngineOptions other;
    other.path = TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1";
    other.threads = 2;
    if (!fs::exists(other.path)) {
        GTEST_SKIP() << "no ONNX Runtime in the dependency folder";
    }
    auto first = engine(2)->compile(relu(), {});
    auto second = open_engine(other)->compile(relu(), {});
    auto value = floats({-1, 4});
    for (int i = 0; i < 3; ++i) {  // values pass from one to the other through their bytes
        value = run(*first, {value}).front();
        value = run(*second, {value}).front();
    }
    EXPECT_EQ(floats_of(value), (std::vector<float>{0, 4}));
}

TEST(OvEngines, SayWhenThereIsNone) {
    auto options = options_of(1, {});
    options.path = ::testing::TempDir() + "no_such_folder";
    const auto e = error_of([&] { open_engine(options); });
    EXPECT_EQ(e.fault(), Fault::engine);
    EXPECT_EQ(std::string(e.what()), "there is no OpenVINO at '" + options.path + "'");
    EXPECT_EQ(e.hint(), "pip install openvino, or --engine openvino:PATH");
    for (const auto* kind : engine_kinds()) {
        if (kind->name == std::string_view("openvino")) {
            const auto found = kind->find(options);
            ASSERT_EQ(found.size(), 1U);
            EXPECT_FALSE(found[0].available);
            EXPECT_EQ(found[0].missing, e.what());
        }
    }
}

TEST(OvEngines, RefuseALibraryThatIsNotOpenVino) {
    auto options = options_of(1, {});
    options.path.clear();
    for (const char* candidate : {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"}) {
        options.path = fs::exists(candidate) ? candidate : options.path;
    }
    if (options.path.empty()) {
        GTEST_SKIP() << "no other library to try";
    }
    EXPECT_THAT(error_of([&] { open_engine(options); }).what(),
                HasSubstr("it has no function ov_"));
}

TEST(OvMessages, KeepWhatTells) {
    EXPECT_EQ(ov::trim_message("Exception from src/inference/src/cpp/core.cpp:117:\nException from "
                               "src/inference/src/dev/plugin.cpp:54:\nCheck 'a.b()' failed at "
                               "src/plugins/x/src/node.cpp:108:\nUnexpected: no dynamic rank.\n\n"),
              "Unexpected: no dynamic rank");
    EXPECT_EQ(ov::trim_message("Exception from src/a.cpp:224:\n[CPU] Add node with name 'y' Check "
                               "'s[j] == 1' failed at src/b.cpp:52:\nMismatch of dim: 0\n\n\n"),
              "Add 'y': Mismatch of dim: 0");
    EXPECT_EQ(ov::trim_message(""), "it gave no reason");
    EXPECT_EQ(ov::trim_message("Exception from src/a.cpp:2:\n"), "Exception from src/a.cpp:2");
}

}  // namespace
}  // namespace trocar
