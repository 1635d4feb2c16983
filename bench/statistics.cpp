// Statistics of every op's output against the same run without: bench_statistics MODELS ENGINES
// [ROUNDS]. A process has one thread pool, so each number of threads is a child.
#include "trocar/statistics.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>

#include "bench/bench.h"
#include "trocar/inputs.h"
#include "trocar/session.h"
#include "util/statistics.h"

namespace trocar {
namespace {

struct Ratio {
    double without = 0;  // seconds
    double ratio = 0;    // median of the ratios within a round
};

// Runs both in turn.
Ratio compare(const std::function<void()>& without, const std::function<void()>& with, int rounds) {
    std::vector<double> plain;
    std::vector<double> ratios;
    for (int round = -2; round < rounds; ++round) {
        double taken[2];
        for (const int who : {round & 1, 1 - (round & 1)}) {
            const auto start = seconds();
            who == 0 ? without() : with();
            taken[who] = seconds() - start;
        }
        if (round >= 0) {
            plain.push_back(taken[0]);
            ratios.push_back(taken[1] / taken[0]);
        }
    }
    return {median(std::move(plain)), median(std::move(ratios))};
}

void network(const std::string& path, const EngineOptions& options, int rounds) {
    const auto model = load(path);
    const auto engine = open_engine(options);
    InputSpec spec;
    spec.fill = "random";
    spec.unknown_dims = 1;
    const auto inputs = make_inputs(model, spec).values;
    double seen = 0;
    Tool tool("statistics");
    tool.after(every_op(), [&](const Port& port) { seen += statistics(port, 0).max; });

    const auto name = std::filesystem::path(path).stem().string();
    SessionOptions plain;
    plain.compile.optimize = CompileOptions::Optimize::none;
    plain.cut = every_op();
    Session without(model, engine, plain);
    for (const bool cuts : {false, true}) {
        auto watched = plain;
        watched.tools = {&tool};
        watched.cut = cuts ? plain.cut : Selector();
        watched.lowering = cuts ? Lowering::cut : Lowering::automatic;
        Session with(model, engine, watched);
        const auto found = compare([&] { without.run(inputs); }, [&] { with.run(inputs); }, rounds);
        row(fmt::format("statistics of every op, {}, {} thread(s), {}", name, options.threads,
                        cuts ? "cuts" : "taps"),
            fmt::format("cut at every op, {:.2f} ms", found.without * 1e3),
            fmt::format("{:.3f}x", found.ratio), "<= 1.3x", found.ratio <= 1.3);
    }
}

void alone() {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(1'000'000);
    std::generate(numbers.begin(), numbers.end(), [&] { return normal(random); });
    const auto bytes = std::as_bytes(std::span(numbers));
    std::vector<double> taken;
    for (int round = 0; round < 50; ++round) {
        const auto start = seconds();
        statistics(DType::f32, bytes, numbers.size());
        taken.push_back(seconds() - start);
    }
    row("statistics of 1,000,000 f32, one thread", "",
        fmt::format("{:.1f} GB/s", static_cast<double>(bytes.size()) / median(taken) * 1e-9), "",
        true);
}

int in_child(const std::function<void()>& work) {
    std::fflush(stdout);
    const auto child = ::fork();
    if (child == 0) {
        int code = 0;
        try {
            work();
        } catch (const std::exception& e) {
            fmt::print(stderr, "bench_statistics: {}\n", e.what());
            code = 1;
        }
        std::fflush(stdout);
        ::_exit(code);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int bench(int argc, char** argv) {
    if (argc < 3) {
        fmt::print(stderr, "usage: bench_statistics MODELS ENGINES [ROUNDS]\n");
        return 2;
    }
    const int rounds = argc > 3 ? std::stoi(argv[3]) : 40;
    auto options = engines_in(argv[2]);
    fmt::print("Statistics (medians of {} rounds, interleaved)\n", rounds);
    alone();
    int failed = 0;
    for (const int threads : {1, 2}) {
        for (const auto* name : {"resnet50", "mobilenet_v2"}) {
            options.threads = threads;
            failed |= in_child(
                [&] { network(fmt::format("{}/{}.onnx", argv[1], name), options, rounds); });
        }
    }
    return failed;
}

}  // namespace
}  // namespace trocar

int main(int argc, char** argv) {
    return trocar::run_bench("bench_statistics", [&] { return trocar::bench(argc, argv); });
}
