#include "trocar/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "trocar/error.h"
#include "trocar/format.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

namespace fs = std::filesystem;

const std::string newest = "1.31.1";
const std::string oldest = "1.20.1";

// The folder of a version in the project's dependency folder.
std::string library(const std::string& version) {
    return std::string(TROCAR_SOURCE_DIR "/.deps/onnxruntime-") + version;
}

// Writes tiny models. Every test runs with both versions.
class OrtEngine : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        if (!fs::exists(library(GetParam()))) {
            GTEST_SKIP() << "no ONNX Runtime " << GetParam() << " in the dependency folder";
        }
    }

    std::shared_ptr<Engine> engine(int threads = 1,
                                   std::vector<std::pair<std::string, std::string>> options = {}) {
        EngineOptions chosen;
        chosen.path = library(GetParam());
        chosen.threads = threads;
        chosen.options = std::move(options);
        chosen.log = [this](LogLevel level, std::string_view text) {
            lines_.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(text));
        };
        return open_engine(chosen);
    }

    std::vector<std::string> lines_;
};

INSTANTIATE_TEST_SUITE_P(Versions, OrtEngine, testing::Values(newest, oldest),
                         [](const auto& version) {
                             auto name = version.param;
                             std::replace(name.begin(), name.end(), '.', '_');
                             return name;
                         });

Model empty_model(std::int64_t opset = 17) {
    Model model;
    model.format = "onnx";
    model.dialect = "onnx";
    model.ir_version = 8;
    model.opsets = {{"", opset}};
    model.graph.name = "g";
    return model;
}

// One op that reads the inputs and writes `outputs`, all of them the model's.
Model one_op(const std::string& type, const std::vector<std::pair<std::string, Type>>& inputs,
             const std::vector<std::pair<std::string, Type>>& outputs,
             std::vector<Attribute> attributes = {}, std::int64_t opset = 17) {
    auto model = empty_model(opset);
    OpSpec spec;
    spec.type = type;
    spec.name = "the_op";
    spec.attributes = std::move(attributes);
    for (const auto& [name, declared] : inputs) {
        spec.inputs.push_back(model.graph.add_input(name, declared));
    }
    for (const auto& [name, declared] : outputs) {
        spec.outputs.push_back(model.graph.add_tensor(name, declared));
    }
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

Type tensor(DType dtype) {
    return Type::tensor(dtype);
}
Type wrapped(Type::Kind kind, Type element) {
    Type type;
    type.kind = kind;
    type.element.push_back(std::move(element));
    return type;
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

std::vector<Value> run(Program& program, std::vector<Value> inputs) {
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

Model relu() {
    return one_op("Relu", {{"x", tensor(DType::f32)}}, {{"y", tensor(DType::f32)}});
}

// y = x · w, w [n, n] with 2 on its diagonal; its bytes begin `shift` past an aligned address.
Model scaling(std::int64_t n, std::size_t shift) {
    auto model = empty_model();
    const auto size = static_cast<std::size_t>(n * n) * sizeof(float);
    auto room = std::make_shared<std::vector<std::byte>>(size + 64);
    auto* start = room->data() + shift;
    for (std::int64_t i = 0; i < n; ++i) {
        const float two = 2;
        std::memcpy(start + (i * n + i) * 4, &two, sizeof two);
    }
    const auto x = model.graph.add_input("x", Type::tensor(DType::f32, Shape{1, n}));
    const auto w =
        model.graph.add_constant("w", Constant::view(DType::f32, {n, n}, {start, size}, room));
    const auto y = model.graph.add_tensor("y", tensor(DType::f32));
    OpSpec spec;
    spec.type = "MatMul";
    spec.inputs = {x, w};
    spec.outputs = {y};
    model.graph.append(std::move(spec));
    model.graph.set_outputs({y});
    return model;
}

TEST_P(OrtEngine, SaysWhatItIs) {
    const auto opened = engine();
    EXPECT_EQ(opened->info().version, GetParam());
    EXPECT_TRUE(opened->info().available);
    EXPECT_EQ(opened->info().can.dialects.front(), "onnx");  // others are mapped to it
    EXPECT_NE(std::find(opened->info().can.providers.begin(), opened->info().can.providers.end(),
                        "CPUExecutionProvider"),
              opened->info().can.providers.end());
}

TEST_P(OrtEngine, RunsAProgram) {
    auto program = engine()->compile(relu(), {});
    EXPECT_EQ(program->input_names().front(), "x");
    EXPECT_EQ(program->output_names().front(), "y");
    const auto y = run(*program, {floats({-1, 2})}).front();
    EXPECT_EQ(value_text(y), "f32 2");
    EXPECT_TRUE(y.device().is_host());
    EXPECT_EQ(floats_of(y), (std::vector<float>{0, 2}));
}

TEST_P(OrtEngine, RunsAFileAsItIs) {
    const TestFolder scratch;
    const auto path = scratch / "relu.onnx";
    save(relu(), path);
    const auto model = load(path);
    auto program = engine()->compile(model, {});
    EXPECT_EQ(floats_of(run(*program, {floats({-1, 2})}).front()), (std::vector<float>{0, 2}));
    std::ofstream(path) << "no model any more";
    // What was read counts, not what stands there now.
    EXPECT_EQ(floats_of(run(*engine()->compile(relu(), {}), {floats({3})}).front()),
              std::vector<float>{3});
    fs::remove(path);
}

TEST_P(OrtEngine, ValuesOutliveProgramAndEngine) {
    Value y;
    {
        auto program = engine()->compile(relu(), {});
        y = run(*program, {floats({-1, 2})}).front();
    }
    EXPECT_EQ(floats_of(y), (std::vector<float>{0, 2}));
    // And go into another engine of the same library.
    EXPECT_EQ(floats_of(run(*engine()->compile(relu(), {}), {y}).front()),
              (std::vector<float>{0, 2}));
}

TEST_P(OrtEngine, AnInputThatIsAnOutputStaysAlive) {
    auto model = empty_model();
    const auto x = model.graph.add_input("x", tensor(DType::f32));
    const auto y = model.graph.add_tensor("y", tensor(DType::f32));
    OpSpec spec;
    spec.type = "Relu";
    spec.inputs = {x};
    spec.outputs = {y};
    model.graph.append(std::move(spec));
    model.graph.set_outputs({x, y});
    auto program = engine()->compile(model, {});
    std::vector<Value> outputs;
    {
        auto input = floats(std::vector<float>(1000, 5));
        outputs = run(*program, {input});
    }
    const auto other = floats(std::vector<float>(1000, 7));  // would take freed memory
    EXPECT_EQ(floats_of(outputs[0])[999], 5);
}

TEST_P(OrtEngine, TakesConstantsHoweverTheyLie) {
    auto opened = engine();
    for (const std::int64_t n : {2, 64}) {  // written into the model; lent or given
        for (const std::size_t shift : {0, 1}) {
            for (const auto optimize :
                 {CompileOptions::Optimize::none, CompileOptions::Optimize::engine_default}) {
                for (const bool low_memory : {false, true}) {
                    auto model = scaling(n, shift);
                    auto program =
                        opened->compile(model, {.optimize = optimize, .low_memory = low_memory});
                    model = {};  // the program keeps what it needs
                    std::vector<float> x(static_cast<std::size_t>(n), 3);
                    const auto y = run(*program, {of(DType::f32, {1, n}, x)}).front();
                    EXPECT_EQ(floats_of(y), std::vector<float>(x.size(), 6));
                }
            }
        }
    }
}

TEST_P(OrtEngine, LendsConstantsInsteadOfCopyingThem) {
    auto opened = engine();
    auto warm = opened->compile(relu(), {});
    const auto model = scaling(1024, 0);  // 4 MB
    auto lent = opened->compile(
        model,
        {.optimize = CompileOptions::Optimize::none, .low_memory = true, .types_only = true});
    const auto copied = lent->footprint().constant_bytes_copied;
    if (!copied) {
        GTEST_SKIP() << lent->footprint().unavailable;
    }
    EXPECT_LT(*copied, 1'000'000U);
    auto packed = opened->compile(model, {});
    EXPECT_GT(packed->footprint().constant_bytes_copied.value(), 4'000'000U);
}

TEST_P(OrtEngine, DoesNotMindConstantsThatNobodyReads) {
    auto model = relu();
    model.graph.add_constant("unread",
                             Constant::of(DType::f32, {1000}, std::vector<float>(1000, 1)));
    auto program = engine()->compile(model, {});
    EXPECT_EQ(floats_of(run(*program, {floats({2})}).front()), std::vector<float>{2});
}

TEST_P(OrtEngine, TakesTensorsWithoutElementsAndScalars) {
    auto program = engine()->compile(relu(), {});
    const auto none = run(*program, {Value::tensor(DType::f32, {2, 0})}).front();
    EXPECT_EQ(value_text(none), "f32 2x0");
    EXPECT_TRUE(none.bytes().empty());
    const auto scalar = run(*program, {of(DType::f32, {}, std::vector<float>{4})}).front();
    EXPECT_EQ(scalar.shape(), Shape{});
    EXPECT_EQ(floats_of(scalar), std::vector<float>{4});
}

TEST_P(OrtEngine, TakesAndGivesStrings) {
    auto program = engine()->compile(
        one_op("Identity", {{"x", tensor(DType::string)}}, {{"y", tensor(DType::string)}}), {});
    const std::vector<std::string> strings{"", std::string("a\0b", 3), "ä", std::string(1000, 'z')};
    const auto y = run(*program, {Value::strings({2, 2}, strings)}).front();
    EXPECT_EQ(y.dtype(), DType::string);
    EXPECT_EQ(y.string_values(), strings);
    EXPECT_TRUE(run(*program, {Value::strings({0}, {})}).front().string_values().empty());
}

TEST_P(OrtEngine, TakesAndGivesSequences) {
    const auto type = wrapped(Type::Kind::sequence, tensor(DType::f32));
    auto opened = engine();
    auto program = opened->compile(one_op("Identity", {{"x", type}}, {{"y", type}}), {});
    auto y = run(*program, {Value::sequence({floats({1}), floats({2, 3})})}).front();
    EXPECT_EQ(y.kind(), Value::Kind::sequence);
    y = run(*program, {y}).front();  // as the engine's own
    const auto items = y.items();
    ASSERT_EQ(items.size(), 2U);
    EXPECT_EQ(floats_of(items[1]), (std::vector<float>{2, 3}));
    EXPECT_TRUE(run(*program, {Value::sequence({})}).front().items().empty());
    // Made from items of the engine itself.
    EXPECT_EQ(run(*program, {Value::sequence(items)}).front().items().size(), 2U);
}

TEST_P(OrtEngine, TakesAndGivesOptionals) {
    const auto type = wrapped(Type::Kind::optional, tensor(DType::f32));
    auto has = engine()->compile(
        one_op("OptionalHasElement", {{"x", type}}, {{"y", tensor(DType::boolean)}}, {}, 18), {});
    EXPECT_EQ(run(*has, {floats({1})}).front().bytes()[0], std::byte{1});
    EXPECT_EQ(run(*has, {Value()}).front().bytes()[0], std::byte{0});

    auto same = engine()->compile(one_op("Identity", {{"x", type}}, {{"y", type}}), {});
    const auto none = run(*same, {Value()}).front();
    EXPECT_EQ(none.kind(), Value::Kind::none);
    EXPECT_EQ(run(*has, {none}).front().bytes()[0], std::byte{0});

    const auto sequences =
        wrapped(Type::Kind::optional, wrapped(Type::Kind::sequence, tensor(DType::i64)));
    auto of_sequences = engine()->compile(
        one_op("OptionalHasElement", {{"x", sequences}}, {{"y", tensor(DType::boolean)}}, {}, 18),
        {});
    EXPECT_EQ(run(*of_sequences, {Value()}).front().bytes()[0], std::byte{0});
}

TEST_P(OrtEngine, TakesMaps) {
    Type map;
    map.kind = Type::Kind::map;
    map.dtype = DType::string;
    map.element = {tensor(DType::f32)};
    auto model = one_op("DictVectorizer", {{"x", map}}, {{"y", tensor(DType::f32)}},
                        {attribute("string_vocabulary", std::vector<std::string>{"a", "b", "c"})});
    // The op is of another domain than the others.
    auto spec = static_cast<OpSpec>(model.graph.op(model.graph.first()));
    spec.domain = "ai.onnx.ml";
    model.graph.replace(model.graph.first(), spec);
    model.opsets.push_back({"ai.onnx.ml", 1});
    auto program = engine()->compile(model, {});
    const auto y =
        run(*program, {Value::map(Value::strings({2}, {"c", "a"}), floats({3, 1}))}).front();
    EXPECT_EQ(floats_of(y), (std::vector<float>{1, 0, 3}));
}

TEST_P(OrtEngine, GivesSequencesOfMaps) {
    Type map;
    map.kind = Type::Kind::map;
    map.dtype = DType::i64;
    map.element = {tensor(DType::f32)};
    auto model =
        one_op("ZipMap", {{"x", tensor(DType::f32)}}, {{"y", wrapped(Type::Kind::sequence, map)}},
               {attribute("classlabels_int64s", std::vector<std::int64_t>{10, 20})});
    auto spec = static_cast<OpSpec>(model.graph.op(model.graph.first()));
    spec.domain = "ai.onnx.ml";
    model.graph.replace(model.graph.first(), spec);
    model.opsets.push_back({"ai.onnx.ml", 1});
    auto program = engine()->compile(model, {});
    const auto maps =
        run(*program, {of(DType::f32, {1, 2}, std::vector<float>{0.5, 0.25})}).front().items();
    ASSERT_EQ(maps.size(), 1U);
    EXPECT_EQ(maps[0].kind(), Value::Kind::map);
    const auto parts = maps[0].items();
    EXPECT_EQ(parts[0].as<std::int64_t>()[1], 20);
    EXPECT_EQ(parts[1].as<float>()[1], 0.25F);
}

TEST_P(OrtEngine, KeepsTheBytesOfSmallTypes) {
    // A number is cast to a small type and back; the bytes are those of five elements.
    struct Case {
        DType dtype;
        std::int64_t opset;
        float number;
        std::vector<std::uint8_t> bytes;
        const char* since;
    };
    const std::vector<Case> cases{
        {DType::bf16, 17, 1.5, {0xc0, 0x3f, 0xc0, 0x3f, 0xc0, 0x3f, 0xc0, 0x3f, 0xc0, 0x3f}, "1.2"},
        {DType::f16, 17, 1.5, {0, 0x3e, 0, 0x3e, 0, 0x3e, 0, 0x3e, 0, 0x3e}, "1.2"},
        {DType::f8e4m3fn, 19, 1.5, {0x3c, 0x3c, 0x3c, 0x3c, 0x3c}, "1.2"},
        {DType::f8e5m2, 19, 1.5, {0x3e, 0x3e, 0x3e, 0x3e, 0x3e}, "1.2"},
        {DType::u4, 21, 1, {0x11, 0x11, 0x01}, "1.3"},
        {DType::i4, 21, -1, {0xff, 0xff, 0x0f}, "1.3"},
        {DType::f8e8m0, 24, 2, {128, 128, 128, 128, 128}, "1.3"},
        {DType::u2, 25, 2, {0xaa, 0x02}, "1.3"},
        {DType::i2, 25, -1, {0xff, 0x03}, "1.3"},
    };
    auto opened = engine();
    for (const auto& c : cases) {
        if (GetParam() < c.since) {
            continue;  // the engine has no kernel
        }
        const auto cast = [&](DType from, DType to) {
            return opened->compile(
                one_op("Cast", {{"x", Type::tensor(from, Shape{5})}}, {{"y", tensor(to)}},
                       {attribute("to", static_cast<std::int64_t>(to))}, c.opset),
                {});
        };
        const std::vector<float> numbers(5, c.number);
        const auto small = run(*cast(DType::f32, c.dtype), {floats(numbers)}).front();
        EXPECT_EQ(small.dtype(), c.dtype);
        const auto got = small.as<std::uint8_t>();
        EXPECT_EQ(std::vector<std::uint8_t>(got.begin(), got.end()), c.bytes) << name(c.dtype);
        // And from bytes of ours.
        EXPECT_EQ(floats_of(run(*cast(c.dtype, DType::f32), {of(c.dtype, {5}, c.bytes)}).front()),
                  numbers)
            << name(c.dtype);
    }
}

TEST_P(OrtEngine, NamesTheOpThatFails) {
    auto program =
        engine()->compile(one_op("Add", {{"a", tensor(DType::f32)}, {"b", tensor(DType::f32)}},
                                 {{"y", tensor(DType::f32)}}),
                          {});
    const auto e = error_of([&] { run(*program, {floats({1, 2}), floats({1, 2, 3})}); });
    EXPECT_EQ(e.fault(), Fault::engine);
    EXPECT_EQ(std::string(e.what()).substr(0, 53),
              "ONNX Runtime could not run the program: Add 'the_op':");
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    EXPECT_EQ(floats_of(run(*program, {floats({1}), floats({2})}).front()),
              std::vector<float>{3});  // still usable
}

TEST_P(OrtEngine, RefusesAModelItDoesNotUnderstand) {
    const auto e = error_of([&] {
        engine()->compile(
            one_op("NoSuchOp", {{"x", tensor(DType::f32)}}, {{"y", tensor(DType::f32)}}), {});
    });
    EXPECT_EQ(e.fault(), Fault::engine);
    EXPECT_NE(std::string(e.what()).find("NoSuchOp"), std::string::npos);
}

TEST_P(OrtEngine, RefusesInputsOfAnotherKindOrNumber) {
    auto program = engine()->compile(relu(), {});
    EXPECT_EQ(error_of([&] { run(*program, {}); }).fault(), Fault::usage);
    const auto none = error_of([&] { run(*program, {Value()}); });
    EXPECT_STREQ(none.what(), "input 'x' is not optional and has no value");
    EXPECT_EQ(error_of([&] {
                  run(*program, {of(DType::i64, {1}, std::vector<std::int64_t>{1})});
              }).fault(),
              Fault::engine);
    EXPECT_EQ(error_of([&] { run(*program, {Value::sequence({floats({1})})}); }).fault(),
              Fault::engine);
}

TEST_P(OrtEngine, SendsItsMessagesToTheLog) {
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    {
        auto model = relu();
        model.graph.add_constant("unread", Constant::of(DType::f32, {1}, std::vector<float>{1}));
        auto program = engine(1, {{"log", "info"}})->compile(model, {});
        run(*program, {floats({1})});
        error_of([&] { run(*program, {Value::tensor(DType::i64, {1})}); });
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    EXPECT_TRUE(std::any_of(lines_.begin(), lines_.end(),
                            [](const auto& line) { return line.starts_with("1 ONNX Runtime: "); }));
    EXPECT_TRUE(std::any_of(lines_.begin(), lines_.end(), [](const auto& line) {
        return line.starts_with("2 ") && line.find("unread") != std::string::npos;
    }));
}

TEST_P(OrtEngine, SharesOneThreadPool) {
    auto two = engine(2);
    auto program = two->compile(relu(), {});
    EXPECT_EQ(floats_of(run(*program, {floats({2})}).front()), std::vector<float>{2});
    auto also_two = engine(2)->compile(relu(), {});
    auto one = engine(1)->compile(relu(), {});
    EXPECT_EQ(floats_of(run(*one, {floats({2})}).front()), std::vector<float>{2});
    const auto e = error_of([&] { engine(3)->compile(relu(), {}); });
    EXPECT_EQ(e.fault(), Fault::engine);
    EXPECT_EQ(std::string(e.what()), "ONNX Runtime " + GetParam() +
                                         " already runs with 2 threads in this process and cannot "
                                         "run with 3 too");
}

TEST_P(OrtEngine, AnotherNumberOfThreadsWorksWhenNothingIsLeftOfTheFirst) {
    for (const int threads : {1, 2, 3}) {
        auto program = engine(threads)->compile(relu(), {});
        EXPECT_EQ(floats_of(run(*program, {floats({2})}).front()), std::vector<float>{2});
    }
}

TEST_P(OrtEngine, ProgramsRunOnSeveralThreadsAtOnce) {
    auto opened = engine();
    std::vector<std::thread> workers;
    for (int worker = 0; worker < 4; ++worker) {
        workers.emplace_back([&opened, worker] {
            auto program = opened->compile(relu(), {});
            for (int i = 0; i < 200; ++i) {
                const auto x = static_cast<float>(worker * 1000 + i);
                ASSERT_EQ(floats_of(run(*program, {floats({x})}).front()), std::vector<float>{x});
            }
        });
    }
    for (auto& worker : workers) {
        worker.join();
    }
}

TEST_P(OrtEngine, SaysWhichProvidersThereAre) {
    const auto e = error_of([&] { engine(1, {{"provider", "cuda"}, {"device_id", "0"}}); });
    EXPECT_EQ(e.fault(), Fault::engine);
    const std::string sentence = e.what();
    EXPECT_NE(sentence.find("has no provider 'cuda' (it has: "), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("cpu"), std::string::npos);
    EXPECT_FALSE(e.hint().empty());
    EXPECT_EQ(error_of([&] { engine(1, {{"device_id", "0"}}); }).fault(), Fault::usage);
}

TEST_P(OrtEngine, TakesConfigEntries) {
    auto program = engine(1, {{"provider", "cpu"}, {"config.session.disable_prepacking", "1"}})
                       ->compile(relu(), {});
    EXPECT_EQ(floats_of(run(*program, {floats({2})}).front()), std::vector<float>{2});
}

// Two versions in one process, at the same time.
TEST(OrtEngines, RunSideBySide) {
    EngineOptions a;
    EngineOptions b;
    a.path = library(newest);
    b.path = library(oldest);
    a.threads = b.threads = 2;
    if (!fs::exists(a.path) || !fs::exists(b.path)) {
        GTEST_SKIP() << "the dependency folder has not both versions";
    }
    const auto first = open_engine(a);
    const auto second = open_engine(b);
    EXPECT_NE(first->info().version, second->info().version);
    auto program_a = first->compile(relu(), {});
    auto program_b = second->compile(relu(), {});
    auto value = floats({-1, 4});
    for (int i = 0; i < 3; ++i) {  // values pass from one to the other through their bytes
        value = run(*program_a, {value}).front();
        value = run(*program_b, {value}).front();
    }
    EXPECT_EQ(floats_of(value), (std::vector<float>{0, 4}));
}

TEST(OrtEngines, SaysWhenThereIsNone) {
    EngineOptions options;
    options.path = testing::TempDir() + "no_such_folder";
    const auto e = error_of([&] { open_engine(options); });
    EXPECT_EQ(e.fault(), Fault::engine);
    EXPECT_EQ(std::string(e.what()), "there is no ONNX Runtime at '" + options.path + "'");
    EXPECT_EQ(e.hint(), "pip install onnxruntime, or --engine onnxruntime:PATH");
    for (const auto* kind : engine_kinds()) {
        if (kind->name == std::string_view("onnxruntime")) {
            const auto found = kind->find(options);
            ASSERT_EQ(found.size(), 1U);
            EXPECT_FALSE(found[0].available);
            EXPECT_EQ(found[0].missing, e.what());
        }
    }
}

TEST(OrtEngines, RefuseALibraryThatIsNotOnnxRuntime) {
    EngineOptions options;
    for (const char* candidate : {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"}) {
        options.path = fs::exists(candidate) ? candidate : options.path;
    }
    if (options.path.empty()) {
        GTEST_SKIP() << "no other library to try";
    }
    const auto e = error_of([&] { open_engine(options); });
    EXPECT_EQ(e.fault(), Fault::engine);
    EXPECT_NE(std::string(e.what()).find("it has no function OrtGetApiBase"), std::string::npos);
}

TEST_P(OrtEngine, TellsWhatOpsTookWhereItWasAsked) {
    const auto model = one_op("Relu", {{"x", tensor(DType::f32)}}, {{"y", tensor(DType::f32)}});
    const auto with = engine();
    auto program = with->compile(model, {.time_kernels = true});
    run(*program, {floats({-1, 2})});
    run(*program, {floats({-1, 2, 3})});
    const auto times = program->take_times();
    ASSERT_EQ(2U, times.runs.size());
    const auto& kernels = times.runs[1].kernels;
    ASSERT_EQ(1U, kernels.size());
    EXPECT_EQ("the_op", kernels[0].op);
    EXPECT_LE(kernels[0].spent_ns, times.runs[1].spent_ns);
    EXPECT_GE(kernels[0].start_ns, times.runs[1].start_ns);
    EXPECT_EQ((std::vector{Type::tensor(DType::f32, Shape{3})}), kernels[0].outputs);
    EXPECT_THROW(program->take_times(), Error);

    auto silent = with->compile(model, {});
    EXPECT_THROW(silent->take_times(), Error);
}

}  // namespace
}  // namespace trocar
