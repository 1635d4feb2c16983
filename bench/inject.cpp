// Campaigns against brute force: the same faults on the same input, one after the other in one run.
#include "trocar/inject.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "bench/bench.h"
#include "trocar/inputs.h"
#include "trocar/session.h"

namespace trocar {
namespace {

class Counted : public CampaignObserver {
public:
    void results(const std::vector<TrialResult>& some, const std::vector<LayerEffect>&) override {
        runs += some.size();
        for (const auto& result : some) {
            masked += result.outcome == Outcome::masked ? 1 : 0;
        }
    }
    bool is_done(std::uint64_t, std::uint64_t) override { return false; }
    void progress(std::uint64_t, std::uint64_t) override {}
    std::uint64_t runs = 0;
    std::uint64_t masked = 0;
};

std::size_t peak_megabytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) {
            return std::stoull(line.substr(6)) / 1024;
        }
    }
    return 0;
}

CampaignInputs one_input(const Model& model) {
    InputSpec spec;
    spec.fill = "random(-2,2)";
    spec.unknown_dims = 1;
    auto values = make_inputs(model, spec).values;
    return {1, [values = std::move(values)](std::uint64_t) {
                return CampaignInput{values, std::nullopt, ""};
            }};
}

CampaignOptions faults(Population::Target target, std::uint64_t trials) {
    CampaignOptions options;
    Population population;
    population.target = target;
    population.dtype = DType::f32;
    options.populations = {population};
    options.sampling.trials = trials;
    options.sampling.seed = 1;
    return options;
}

double run_seconds(Campaign& campaign) {
    Counted counted;
    const auto start = seconds();
    campaign.run(counted);
    return (seconds() - start) / static_cast<double>(counted.runs);
}

void against_brute_force(const std::string& path, const std::shared_ptr<Engine>& engine,
                         Population::Target target, std::uint64_t trials,
                         std::uint64_t plain_trials, int rounds, double wanted) {
    const auto model = load(path);
    const auto inputs = one_input(model);
    auto options = faults(target, trials);
    Campaign fast(model, engine, inputs, options);
    auto plainly = options;
    plainly.brute_force = true;
    for (std::uint64_t i = 0; i < plain_trials; ++i) {
        plainly.sampling.list.push_back(fast.trial(i * trials / plain_trials).faults);
    }
    Campaign plain(model, engine, inputs, plainly);
    Session whole(model, engine);
    const auto values = inputs.get(0).values;
    whole.run(values);
    run_seconds(fast);  // compiles and calibrates
    std::vector<double> ratios;
    std::vector<double> fused;
    double each = 0;
    for (int round = 0; round < rounds; ++round) {
        each = run_seconds(fast);
        ratios.push_back(run_seconds(plain) / each);
        const auto start = seconds();
        whole.run(values);
        fused.push_back((seconds() - start) / each);
    }
    Counted counted;
    fast.run(counted);
    const auto name = std::filesystem::path(path).stem().string();
    const auto ratio = median(ratios);
    row(fmt::format("{}, {} faults in {}", name, trials,
                    target == Population::Target::weights ? "weights" : "activations"),
        "brute force, op by op", fmt::format("{:.1f}x", ratio), fmt::format(">= {}x", wanted),
        ratio >= wanted);
    fmt::print(
        "    {:.2f} ms each, {:.0f} % masked; {:.1f}x against the whole fused model run once for "
        "each\n",
        each * 1e3, 100.0 * static_cast<double>(counted.masked) / static_cast<double>(counted.runs),
        median(fused));
}

void exhaustive(const std::string& path, const std::shared_ptr<Engine>& engine) {
    const auto model = load(path);
    const auto inputs = one_input(model);
    auto options = faults(Population::Target::weights, 0);
    options.sampling.exhaustive = true;
    Campaign fast(model, engine, inputs, options);
    auto plainly = options;
    plainly.brute_force = true;
    for (std::uint64_t i = 0; i < fast.trial_count(); i += 211) {
        plainly.sampling.list.push_back(fast.trial(i).faults);
    }
    Campaign plain(model, engine, inputs, plainly);
    run_seconds(plain);
    const auto each = run_seconds(fast);
    const auto ratio = run_seconds(plain) / each;
    row(fmt::format("digits, all {} bits of weights", fast.trial_count()), "brute force",
        fmt::format("{:.1f}x", ratio), ">= 10x", ratio >= 10);
    fmt::print("    {:.1f} us each\n", each * 1e6);
}

void workers(const std::string& path, const std::shared_ptr<Engine>& engine) {
    const auto model = load(path);
    const auto inputs = one_input(model);
    auto options = faults(Population::Target::activations, 200);
    Campaign one(model, engine, inputs, options);
    options.workers = 2;
    Campaign two(model, engine, inputs, options);
    run_seconds(one);
    run_seconds(two);
    std::vector<double> ratios;
    for (int round = 0; round < 3; ++round) {
        const auto a = run_seconds(one);
        ratios.push_back(a / run_seconds(two));
    }
    const auto ratio = median(ratios);
    row("resnet50, 2 workers", "1 worker", fmt::format("{:.2f}x", ratio), ">= 1.8x", ratio >= 1.8);
}

int bench(int argc, char** argv) {
    if (argc < 3) {
        fmt::print(stderr, "usage: bench_inject MODELS ENGINES [TRIALS]\n");
        return 2;
    }
    const std::string models = argv[1];
    const std::uint64_t trials = argc > 3 ? std::stoull(argv[3]) : 400;
    const auto engine = newest_engine(argv[2]);
    fmt::print("Fault injection on onnxruntime {}, 1 thread (medians of 3 rounds, interleaved)\n",
               engine->info().version);
    const auto digits = std::filesystem::path(models) / "../../models/digits.onnx";
    exhaustive(digits.string(), engine);
    for (const auto* name : {"resnet50", "mobilenet_v2"}) {
        const auto path = fmt::format("{}/{}.onnx", models, name);
        against_brute_force(path, engine, Population::Target::activations, trials, 24, 3, 8);
        against_brute_force(path, engine, Population::Target::weights, trials, 24, 3, 10);
    }
    workers(models + "/resnet50.onnx", engine);
    fmt::print("    peak memory of all this: {} MB\n", peak_megabytes());
    return 0;
}

}  // namespace
}  // namespace trocar

int main(int argc, char** argv) {
    return trocar::run_bench("bench_inject", [&] { return trocar::bench(argc, argv); });
}
