#include "run/isolate.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "run/test_values.h"
#include "trocar/error.h"
#include "util/test_folder.h"

namespace trocar {
namespace {

using Values = std::vector<NamedValue>;
using testing::floats;
using namespace std::chrono_literals;

// A child that does `work` for every call.
std::unique_ptr<Isolated> isolated(Isolated::Work work, Isolated::Options options = {}) {
    return std::make_unique<Isolated>([work](const Log&) { return work; }, std::move(options));
}

std::string sentence_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::engine);
        return e.what();
    }
    return "nothing was thrown";
}

std::size_t open_descriptors() {
    const auto all = std::filesystem::directory_iterator("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(Isolated, AnswersWithWhatItWasGiven) {
    auto echo = isolated([](const Values& inputs) { return inputs; });
    const Values inputs{
        {"floats", floats({1, 2, 3})},
        {"scalar", Value::copy(DType::u8, {}, std::as_bytes(std::span("x", 1)))},
        {"nothing", Value::tensor(DType::i64, {2, 0, 3})},
        {"packed", Value::tensor(DType::i4, {3})},
        {"strings", Value::strings({2, 1}, {"a\0b", ""})},
        {"sequence", Value::sequence({floats({4}), floats({})})},
        {"empty", Value::sequence({})},
        {"map", Value::map(Value::strings({1}, {"k"}), floats({5}))},
        {"none", Value()},
    };
    const auto outputs = echo->run(inputs);
    ASSERT_EQ(outputs.size(), inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        EXPECT_EQ(outputs[i].name, inputs[i].name);
        EXPECT_EQ(value_text(outputs[i].value), value_text(inputs[i].value));
    }
    EXPECT_EQ(outputs[0].value.as<float>()[2], 3);
    EXPECT_EQ(outputs[1].value.bytes()[0], std::byte{'x'});
    EXPECT_EQ(outputs[4].value.string_values(), inputs[4].value.string_values());
    EXPECT_EQ(outputs[5].value.items()[0].as<float>()[0], 4);
    EXPECT_EQ(outputs[7].value.items()[1].as<float>()[0], 5);
    EXPECT_EQ(outputs[8].value.kind(), Value::Kind::none);
}

TEST(Isolated, CarriesBigTensors) {
    constexpr std::int64_t count = 25'000'000;  // 100 MB
    auto child = isolated([](const Values& inputs) {
        auto out = Value::tensor(DType::f32, {count});
        std::memcpy(out.mutable_bytes().data(), inputs[0].value.bytes().data(), 4 * count);
        reinterpret_cast<float*>(out.mutable_bytes().data())[count - 1] = 7;
        return Values{{"y", out}};
    });
    auto x = Value::tensor(DType::f32, {count});
    reinterpret_cast<float*>(x.mutable_bytes().data())[1] = 3;
    const auto first = child->run({{"x", x}});
    const auto second = child->run({{"x", x}});
    child.reset();  // the values stay
    EXPECT_EQ(first[0].value.as<float>()[1], 3);
    EXPECT_EQ(second[0].value.as<float>()[count - 1], 7);
}

TEST(Isolated, PassesErrorsOnAsTheyAre) {
    auto child = isolated([](const Values&) -> Values {
        throw Error(Fault::unsupported, "no such op", "try another");
    });
    for (int i = 0; i < 2; ++i) {  // the child survives its errors
        try {
            child->run({});
            FAIL();
        } catch (const Error& e) {
            EXPECT_EQ(e.fault(), Fault::unsupported);
            EXPECT_STREQ(e.what(), "no such op");
            EXPECT_EQ(e.hint(), "try another");
        }
    }
}

TEST(Isolated, TurnsOtherExceptionsIntoErrors) {
    auto child = isolated([](const Values&) -> Values { throw std::logic_error("odd"); });
    try {
        child->run({});
        FAIL();
    } catch (const Error& e) {
        EXPECT_EQ(e.fault(), Fault::internal);
        EXPECT_STREQ(e.what(), "odd");
    }
}

TEST(Isolated, SaysHowTheEngineCrashed) {
    Isolated::Options options;
    options.doing = "running 'net.onnx'";
    auto child = isolated(
        [](const Values&) -> Values {
            std::raise(SIGSEGV);
            return {};
        },
        options);
    const std::string expected = "the engine crashed (SIGSEGV) while running 'net.onnx'";
    EXPECT_EQ(sentence_of([&] { child->run({}); }), expected);
    EXPECT_FALSE(child->alive());
    EXPECT_EQ(sentence_of([&] { child->run({}); }), expected);
}

TEST(Isolated, SurvivesAnAbort) {
    auto child = isolated([](const Values&) -> Values { std::abort(); });
    EXPECT_EQ(sentence_of([&] { child->run({}); }),
              "the engine crashed (SIGABRT) while running the model");
}

TEST(Isolated, SurvivesAnExitWithoutRunningTheParentsHandlers) {
    static std::string mark;
    const TestFolder scratch;
    mark = scratch / "mark";
    // Runs in this process too, at its end: only a child would do it while this one lives.
    std::atexit([] { std::ofstream(mark) << "ran"; });
    auto child = isolated([](const Values&) -> Values { std::exit(3); });
    EXPECT_EQ(sentence_of([&] { child->run({}); }),
              "the engine's process ended (exit code 3) while running the model");
    EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST(Isolated, ReportsDeathWhilePreparing) {
    EXPECT_EQ(sentence_of([] { Isolated([](const Log&) -> Isolated::Work { std::abort(); }, {}); }),
              "the engine crashed (SIGABRT) while running the model");
    EXPECT_EQ(
        sentence_of([] {
            Isolated([](const Log&) -> Isolated::Work { throw Error(Fault::engine, "no library"); },
                     {});
        }),
        "no library");
}

TEST(Isolated, EndsWorkThatTakesTooLong) {
    Isolated::Options options;
    options.timeout = 100ms;
    auto child = isolated(
        [](const Values&) -> Values {
            std::this_thread::sleep_for(1h);
            return {};
        },
        options);
    EXPECT_EQ(sentence_of([&] { child->run({}); }),
              "the engine gave no answer within 0.1 s while running the model");
    EXPECT_FALSE(child->alive());
}

TEST(Isolated, LogsWhatTheChildSaysAndWrites) {
    std::vector<std::string> lines;
    Isolated::Options options;
    options.log = [&](LogLevel level, std::string_view text) {
        lines.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(text));
    };
    {
        Isolated child(
            [](const Log& log) -> Isolated::Work {
                return [log](const Values&) -> Values {
                    log(LogLevel::warning, "careful");
                    const std::string_view noise = "noise\nunfinished";
                    EXPECT_EQ(::write(STDERR_FILENO, noise.data(), noise.size()),
                              static_cast<ssize_t>(noise.size()));
                    return {};
                };
            },
            options);
        child.run({});
    }
    std::sort(lines.begin(), lines.end());
    EXPECT_EQ(lines, (std::vector<std::string>{"0 noise", "0 unfinished", "2 careful"}));
}

TEST(Isolated, LeavesNoProcessAndNoDescriptor) {
    const auto before = open_descriptors();
    pid_t pid = 0;
    {
        auto child = isolated([](const Values& inputs) { return inputs; });
        child->run({{"x", floats({1})}});
        pid = child->child();
        EXPECT_EQ(::kill(pid, 0), 0);
    }
    EXPECT_EQ(::kill(pid, 0), -1);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // nothing to wait for
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Isolated, HasNoDescriptorsOfTheParent) {
    const std::ifstream held("/proc/self/status");
    auto child = isolated([](const Values&) -> Values {
        return {{std::to_string(open_descriptors()), {}}};
    });
    // stdin, stdout, stderr, the socket, and the folder that is being read.
    EXPECT_EQ(child->run({}).front().name, "5");
}

TEST(Isolated, DiesWithItsParent) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const auto parent = ::fork();
    if (parent == 0) {
        auto child = isolated([](const Values& inputs) { return inputs; });
        const pid_t pid = child->child();
        const bool told = ::write(ends[1], &pid, sizeof pid) == sizeof pid;
        ::_exit(told ? 0 : 1);  // without destructors, as a crash would
    }
    pid_t orphan = 0;
    ASSERT_EQ(::read(ends[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
    ::waitpid(parent, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
    const auto is_dead = [&] {
        std::ifstream status("/proc/" + std::to_string(orphan) + "/stat");
        std::string line;
        return !std::getline(status, line) || line.find(") Z") != std::string::npos;
    };
    for (int i = 0; i < 500 && !is_dead(); ++i) {
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(is_dead());
}

// An opaque value, as an engine may have one.
class OpaqueBody final : public Value::Body {
public:
    Value::Kind kind() const override { return Value::Kind::opaque; }
};

TEST(Isolated, RefusesValuesThatCannotPass) {
    auto child = isolated([](const Values& inputs) -> Values {
        return inputs.empty() ? Values{{"y", Value(std::make_shared<OpaqueBody>())}} : Values{};
    });
    EXPECT_NE(sentence_of([&] {
                  child->run({{"x", Value(std::make_shared<OpaqueBody>())}});
              }).find("cannot pass from one process to another"),
              std::string::npos);
    EXPECT_NE(sentence_of([&] { child->run({}); }).find("cannot pass"), std::string::npos);
    EXPECT_TRUE(child->run({{"x", floats({1})}}).empty());
}

TEST(Isolated, RefusesNonsenseFromTheChild) {
    auto child = isolated([](const Values&) -> Values {
        const std::string nonsense(1000, 'x');
        EXPECT_GT(::write(3, nonsense.data(), nonsense.size()), 0);
        return {};
    });
    EXPECT_EQ(sentence_of([&] { child->run({}); }),
              "the engine's process sent a message that makes no sense");
    EXPECT_FALSE(child->alive());
}

// y = relu(x)
Model relu() {
    Model model;
    model.format = "onnx";
    model.dialect = "onnx";
    model.ir_version = 8;
    model.opsets = {{"", 17}};
    model.graph.name = "g";
    OpSpec spec;
    spec.type = "Relu";
    spec.inputs = {model.graph.add_input("x", Type::tensor(DType::f32))};
    spec.outputs = {model.graph.add_tensor("y", Type::tensor(DType::f32))};
    const auto outputs = spec.outputs;
    model.graph.append(std::move(spec));
    model.graph.set_outputs(outputs);
    return model;
}

Isolated::Work work_of(std::shared_ptr<Program> program) {
    return [program](const Values& inputs) -> Values {
        const std::vector<Value> given{inputs.at(0).value};
        std::vector<Value> outputs(1);
        program->run(given, outputs);
        return {{"y", outputs[0]}};
    };
}

// The real engine, in a child.
class IsolatedEngine : public ::testing::Test {
protected:
    void SetUp() override {
        options_.path = TROCAR_SOURCE_DIR "/.deps/onnxruntime-1.31.1";
        options_.threads = 2;
        if (!std::filesystem::exists(options_.path)) {
            GTEST_SKIP() << "no ONNX Runtime in the dependency folder";
        }
    }
    EngineOptions options_;
};

TEST_F(IsolatedEngine, RunsAndFailsAsItDoesHere) {
    Isolated child(
        [this](const Log&) { return work_of(open_engine(options_)->compile(relu(), {})); }, {});
    EXPECT_EQ(child.run({{"x", floats({-1, 2})}})[0].value.as<float>()[1], 2);
    EXPECT_NE(sentence_of([&] {
                  child.run({{"x", Value::tensor(DType::i64, {1})}});
              }).find("ONNX Runtime could not run the program"),
              std::string::npos);
    EXPECT_EQ(child.run({{"x", floats({-1, 3})}})[0].value.as<float>()[1], 3);
}

TEST_F(IsolatedEngine, MayBeOpenHereWhenNothingIsCompiled) {
    const auto engine = open_engine(options_);
    Isolated child([&](const Log&) { return work_of(engine->compile(relu(), {})); }, {});
    EXPECT_EQ(child.run({{"x", floats({-1, 2})}})[0].value.as<float>()[1], 2);
}

TEST_F(IsolatedEngine, RefusesThreadsThatStayedBehind) {
    const auto engine = open_engine(options_);
    const auto program = engine->compile(relu(), {});
    EXPECT_NE(sentence_of([&] {
                  Isolated([&](const Log&) { return work_of(engine->compile(relu(), {})); }, {});
              }).find("was started before this process was forked"),
              std::string::npos);
}

}  // namespace
}  // namespace trocar
