// What instruments cost: runs with tools against runs without, interleaved in one process:
// bench_instruments MODELS ENGINES [ROUNDS].
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "bench/bench.h"
#include "trocar/inputs.h"
#include "trocar/pattern.h"
#include "trocar/session.h"

namespace trocar {
namespace {

// Medians of the ratios of all contenders to the first one, taken round by round.
std::vector<double> ratios(const std::vector<std::function<void()>>& contenders, int rounds) {
    std::vector<std::vector<double>> samples(contenders.size());
    for (int round = -3; round < rounds; ++round) {
        for (std::size_t i = 0; i < contenders.size(); ++i) {
            const auto who = (i + static_cast<std::size_t>(round + 3)) % contenders.size();
            const auto start = seconds();
            contenders[who]();
            if (round >= 0) {
                samples[who].push_back(seconds() - start);
            }
        }
    }
    std::vector<double> result;
    for (const auto& of : samples) {
        std::vector<double> each;
        for (std::size_t i = 0; i < of.size(); ++i) {
            each.push_back(of[i] / samples[0][i]);
        }
        result.push_back(median(std::move(each)));
    }
    return result;
}

// Ends of the blocks that the engine fuses into one convolution.
Selector blocks() {
    return pattern("Conv -> BatchNormalization? -> Add? -> Relu|Clip").shared().last();
}

void network(const std::string& path, const std::shared_ptr<Engine>& engine, int rounds,
             double deployed_target) {
    const auto model = load(path);
    const auto name = std::filesystem::path(path).stem().string();
    InputSpec spec;
    spec.fill = "random";
    spec.unknown_dims = 1;
    const auto inputs = make_inputs(model, spec).values;
    std::size_t seen = 0;
    const auto look = [&](const Port& p) { seen += p.output(0).bytes().size(); };
    Tool nothing;
    nothing.after(op("NoSuchOp"), look);
    Tool one;
    one.after(at_index(30, 30), look);
    Tool every;
    every.after(blocks(), look);
    const auto session = [&](Tool& tool, View view = View::source) {
        SessionOptions options;
        options.tools = {&tool};
        options.view = view;
        return std::make_unique<Session>(model, engine, options);
    };
    Session plain(model, engine);
    const auto with_nothing = session(nothing);
    const auto with_one = session(one);
    const auto with_every = session(every);
    const auto with_deployed = session(every, View::deployed);
    // The same tensors as outputs of the graph.
    auto marked = clone(model);
    std::vector<TensorId> outputs(marked.graph.outputs().begin(), marked.graph.outputs().end());
    for (const auto id : select(model.graph, blocks())) {
        outputs.push_back(model.graph.op(id).outputs[0]);
    }
    marked.graph.set_outputs(outputs);
    Session with_outputs(marked, engine);

    const auto found =
        ratios({[&] { plain.run(inputs); }, [&] { with_nothing->run(inputs); },
                [&] { with_one->run(inputs); }, [&] { with_every->run(inputs); },
                [&] { with_deployed->run(inputs); }, [&] { with_outputs.run(inputs); }},
               rounds);
    const auto text = [](double ratio) { return fmt::format("{:.3f}x", ratio); };
    row(fmt::format("a tool that matches nothing, {}", name), "no tool", text(found[1]), "<= 1.01x",
        found[1] <= 1.01);
    row(fmt::format("observing one layer, {}", name), "no tool", text(found[2]), "<= 1.05x",
        found[2] <= 1.05);
    row(fmt::format("observing {} block outputs, {}", select(model.graph, blocks()).size(), name),
        "the engine with them as outputs", text(found[3] / found[5]), "<= 1.00x",
        found[3] <= found[5]);
    row(fmt::format("observing {} ops, deployed view, {}", with_deployed->ports().taps, name),
        "no tool", text(found[4]), fmt::format("<= {:.1f}x", deployed_target),
        found[4] <= deployed_target);
}

// An empty callback at every op of a chain, against the same cuts without.
void callbacks(const std::string& path, const std::shared_ptr<Engine>& engine, int rounds) {
    const auto model = load(path);
    InputSpec spec;
    spec.fill = "random";
    spec.unknown_dims = 1;
    const auto inputs = make_inputs(model, spec).values;
    Tool empty;
    empty.after(every_op(), [](const Port&) {});
    SessionOptions cut;
    cut.cut = every_op();
    cut.compile.optimize = CompileOptions::Optimize::none;
    Session without(model, engine, cut);
    cut.tools = {&empty};
    cut.lowering = Lowering::cut;
    Session with(model, engine, cut);
    // What is looked for is far below the noise of one run: the fastest runs are compared.
    std::vector<double> bare;
    std::vector<double> called;
    for (int round = 0; round < rounds; ++round) {
        const auto start = seconds();
        without.run(inputs);
        const auto middle = seconds();
        with.run(inputs);
        bare.push_back(middle - start);
        called.push_back(seconds() - middle);
    }
    const auto ports = static_cast<double>(with.ports().cuts);
    const auto each = (*std::min_element(called.begin(), called.end()) -
                       *std::min_element(bare.begin(), bare.end())) /
                      ports * 1e9;
    row(fmt::format("empty callback at {} ops", with.ports().cuts), "the same cuts without",
        fmt::format("{:.0f} ns", each), "< 200 ns", each < 200);
}

int bench(int argc, char** argv) {
    if (argc < 3) {
        fmt::print(stderr, "usage: bench_instruments MODELS ENGINES [ROUNDS]\n");
        return 2;
    }
    const std::string models = argv[1];
    const int rounds = argc > 3 ? std::stoi(argv[3]) : 40;
    const auto engine = newest_engine(argv[2]);
    fmt::print("Instruments on onnxruntime {}, 1 thread (medians of {} rounds, interleaved)\n",
               engine->info().version, rounds);
    network(models + "/resnet50.onnx", engine, rounds, 1.1);
    network(models + "/mobilenet_v2.onnx", engine, rounds * 3, 1.5);
    callbacks(models + "/lstm_unrolled.onnx", engine, rounds * 10);
    return 0;
}

}  // namespace
}  // namespace trocar

int main(int argc, char** argv) {
    return trocar::run_bench("bench_instruments", [&] { return trocar::bench(argc, argv); });
}
