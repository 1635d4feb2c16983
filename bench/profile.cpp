// What it costs to profile a model as it runs, against the same model unprofiled, in turns; and how
// much of the run the profile accounts for: bench_profile MODELS ENGINES [SECONDS].
#include "trocar/profile.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "bench/bench.h"
#include "trocar/inputs.h"
#include "util/statistics.h"

namespace trocar {
namespace {

void measure(const std::string& models, const char* name, double most,
             const std::shared_ptr<Engine>& engine, double seconds) {
    const auto model = load(fmt::format("{}/{}.onnx", models, name));
    InputSpec spec;
    spec.fill = "random";
    spec.unknown_dims = 1;
    const auto inputs = make_inputs(model, spec).values;
    ProfileOptions options;
    options.seconds = seconds;
    options.count = false;
    const auto profile = trocar::profile(model, engine, inputs, options);

    std::vector<double> ratios;
    for (std::size_t run = profile.steady; run < profile.wall_ns.size(); ++run) {
        ratios.push_back(profile.wall_ns[run] / profile.plain_ns[run]);
    }
    const auto tax = spread(ratios).median;
    row(fmt::format("profiled as it runs, {}", name),
        fmt::format("unprofiled, {:.2f} ms", spread(profile.plain_ns).median * 1e-6),
        fmt::format("{:.3f}x", tax), fmt::format("<= {:.2f}x", most), tax <= most);

    const auto runs = typical_runs(profile);
    const auto whole = typical(profile.wall_ns, runs);
    const auto rest = unattributed(profile, runs) / whole;
    row(fmt::format("unattributed, {}", name),
        fmt::format("the run, {:.2f} ms in {} parts", whole * 1e-6, profile.parts.size()),
        fmt::format("{:.2f} %", rest * 100), "0 to 5 %", rest >= 0 && rest <= 0.05);
}

int bench(int argc, char** argv) {
    if (argc < 3) {
        fmt::print(stderr, "usage: bench_profile MODELS ENGINES [SECONDS]\n");
        return 2;
    }
    const auto engine = newest_engine(argv[2]);
    const double seconds = argc > 3 ? std::stod(argv[3]) : 10;
    fmt::print("Profiles on {} {}, 1 thread (medians over {:.0f} s, in turns)\n",
               engine->info().name, engine->info().version, seconds);
    measure(argv[1], "resnet50", 1.05, engine, seconds);
    measure(argv[1], "mobilenet_v2", 1.1, engine, seconds);
    return 0;
}

}  // namespace
}  // namespace trocar

int main(int argc, char** argv) {
    return trocar::run_bench("bench_profile", [&] { return trocar::bench(argc, argv); });
}
