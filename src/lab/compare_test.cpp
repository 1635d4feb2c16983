#include "trocar/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/process.h"
#include "trocar/bisect.h"
#include "trocar/error.h"

namespace trocar {
namespace {

Value floats(const std::vector<float>& numbers) {
    return Value::copy(DType::f32, {static_cast<std::int64_t>(numbers.size())},
                       std::as_bytes(std::span(numbers)));
}

LayerComparison compared(const Value& a, const Value& b, const Judging& judging,
                         const Tolerance& by_default) {
    LayerComparison result;
    TensorComparison tensor;
    tensor.tensor = "y";
    tensor.by_default = by_default;
    tensor.difference = difference(a, b, DifferenceOptions{.tolerance = by_default});
    result.tensors.push_back(tensor);
    judge(result, {.number = 0, .name = "softmax1", .type = "Softmax", .module = "", .ops = {}},
          judging);
    return result;
}

TEST(Tolerances, GrowWithTheSumsAndTheType) {
    const auto one = default_tolerance(DType::f32, 1, 1);
    const auto many = default_tolerance(DType::f32, 100, 1);
    EXPECT_DOUBLE_EQ(many.rtol, 10 * one.rtol);
    EXPECT_GT(default_tolerance(DType::f16, 1, 1).rtol, 1000 * one.rtol);
    EXPECT_EQ(default_tolerance(DType::u8, 9, 1).atol, 1);
    EXPECT_EQ(default_tolerance(DType::i64, 9, 1).atol, 0);
    EXPECT_EQ(default_tolerance(DType::boolean, 9, 1).atol, 0);
}

TEST(Tolerances, AreReadFromText) {
    const auto rule = parse_tolerance_rule("Soft*=1e-3,1e-6");
    EXPECT_EQ(rule.glob, "Soft*");
    EXPECT_DOUBLE_EQ(rule.tolerance.rtol, 1e-3);
    EXPECT_DOUBLE_EQ(rule.tolerance.atol, 1e-6);
    for (const auto* bad : {"Softmax", "=1", "a=", "a=x", "a=1,2,3", "a=-1"}) {
        EXPECT_THROW(parse_tolerance_rule(bad), Error) << bad;
    }
}

TEST(Verdicts, GoByTheFactorThatWouldPass) {
    const auto a = floats({1, 2, 4});
    const Tolerance tight{.rtol = 0.01, .atol = 0};
    EXPECT_EQ(compared(a, a, {}, tight).verdict, Verdict::pass);
    EXPECT_EQ(compared(a, floats({1, 2.01f, 4}), {}, tight).verdict, Verdict::pass);
    EXPECT_EQ(compared(a, floats({1, 2.1f, 4}), {}, tight).verdict, Verdict::warn);
    EXPECT_EQ(compared(a, floats({1, 3, 4}), {}, tight).verdict, Verdict::fail);
    EXPECT_EQ(compared(a, floats({1, NAN, 4}), {}, {.rtol = 9, .atol = 9}).verdict, Verdict::fail);
    const auto off = compared(a, floats({1, 2.1f, 4}), {}, tight);
    EXPECT_NEAR(off.tensors[0].factor, 5, 1e-3);
}

TEST(Verdicts, FollowRulesOfLayers) {
    const auto a = floats({1});
    const auto b = floats({1.5f});
    Judging judging;
    judging.rtol = 0.01;
    judging.warn = 1;
    EXPECT_EQ(compared(a, b, judging, {}).verdict, Verdict::fail);
    judging.rules = {parse_tolerance_rule("Soft*=0.6")};
    EXPECT_EQ(compared(a, b, judging, {}).verdict, Verdict::pass);
    judging.rules = {parse_tolerance_rule("Conv=0.6")};
    EXPECT_EQ(compared(a, b, judging, {}).verdict, Verdict::fail);
    judging.rules = {parse_tolerance_rule("y=0.6")};
    EXPECT_EQ(compared(a, b, judging, {}).verdict, Verdict::pass);
}

TEST(Comparisons, AreJudgedAgainFromWhatWasSaved) {
    Comparison comparison;
    comparison.sides = {"a", "b"};
    comparison.layers = {{.number = 0, .name = "l", .type = "Conv", .module = "m", .ops = {"o"}}};
    comparison.results = {
        compared(floats({1, 2}), floats({1, 2.1f}), {}, {.rtol = 0.001, .atol = 0})};
    comparison.results[0].side = 1;
    comparison.complete = true;
    LayerComparison failed;
    failed.side = 1;
    failed.end = RunEnd::crashed;
    failed.reason = "the engine crashed (SIGSEGV)";
    comparison.results.push_back(failed);
    auto again = comparison_from_json(to_json(comparison));
    judge(again, {});
    EXPECT_EQ(again.results[0].verdict, Verdict::fail);
    EXPECT_EQ(again.results[0].tensors[0].difference, comparison.results[0].tensors[0].difference);
    EXPECT_EQ(again.results[1].end, RunEnd::crashed);
    Judging loose;
    loose.rtol = 0.1;
    judge(again, loose);
    EXPECT_EQ(again.results[0].verdict, Verdict::pass);
    for (const auto* bad : {"", "{}", "[1]", "{\"trocar_comparison\":1}",
                            "{\"trocar_comparison\":1,\"sides\":[],\"complete\":true,\"notes\":[],"
                            "\"layers\":[],\"results\":[{\"layer\":7}]}"}) {
        EXPECT_THROW(comparison_from_json(bad), Error) << bad;
    }
}

TEST(Sides, AreReadFromText) {
    EngineOptions base;
    base.threads = 2;
    const auto side = parse_side("onnxruntime:/x,threads=1,optimize=none,provider=cpu", base);
    EXPECT_EQ(side.engine.path, "/x");
    EXPECT_EQ(side.engine.threads, 1);
    EXPECT_EQ(side.optimize, CompileOptions::Optimize::none);
    ASSERT_EQ(side.engine.options.size(), 1u);
    EXPECT_EQ(side.engine.options[0].first, "provider");
    EXPECT_EQ(parse_side("command:./a, b {model} {outputs}", base).command,
              "./a, b {model} {outputs}");
    EXPECT_THROW(parse_side("command:./a {model}", base), Error);
    EXPECT_THROW(parse_side("onnxruntime,threads=x", base), Error);
    EXPECT_THROW(parse_side("onnxruntime,optimize=much", base), Error);
}

TEST(Commands, EndAsTheyDo) {
    using How = ProcessEnd::How;
    const auto good = run_command("echo one; echo two >&2; exit 3", {});
    EXPECT_EQ(good.how, How::exited);
    EXPECT_EQ(good.code, 3);
    EXPECT_EQ(good.last_words, "one\ntwo\n");
    const auto crashed = run_command("kill -SEGV $$", {});
    EXPECT_EQ(crashed.how, How::signalled);
    EXPECT_EQ(signal_name(crashed.code), "SIGSEGV");
    const auto slow =
        run_command("sleep 100 & sleep 100", {.time = std::chrono::milliseconds(200)});
    EXPECT_EQ(slow.how, How::timed_out);
    const auto stopped = run_command("sleep 100", {.cancel = [] { return true; }});
    EXPECT_EQ(stopped.how, How::cancelled);
    const auto loud = run_command("head -c 1000000 /dev/zero | tr '\\0' x", {});
    EXPECT_EQ(loud.last_words, std::string(4096, 'x'));
    EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace trocar
