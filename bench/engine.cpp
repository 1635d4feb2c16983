// Whole and cut runs through Trocar against ONNX Runtime called directly, interleaved in one
// process: bench_engine MODELS ENGINES [ROUNDS]. A process has one thread pool, so each number of
// threads is a child.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "bench/bench.h"
#include "engines/onnxruntime/library.h"
#include "engines/onnxruntime/values.h"
#include "trocar/error.h"
#include "trocar/inputs.h"
#include "trocar/session.h"

namespace trocar {
namespace {

// ONNX Runtime through its C API alone: what a program without Trocar would do.
class Direct {
public:
    Direct(const std::string& library, const std::string& model, int threads, bool optimize,
           const std::vector<NamedValue>& inputs, const std::vector<std::string>& outputs)
        : library_(ort::Library::load(library)),
          environment_(
              ort::Environment::acquire(library_, threads, std::make_shared<ort::LogTarget>())),
          outputs_(outputs),
          inputs_(inputs) {
        const auto& api = library_->api();
        ort::SessionOptions* options = nullptr;
        library_->check(api(ort::create_session_options, &options), "make options");
        if (threads == 1) {
            library_->check(api(ort::set_intra_op_threads, options, 1), "set threads");
        } else {
            library_->check(api(ort::disable_session_threads, options), "set threads");
        }
        if (!optimize) {
            library_->check(api(ort::set_graph_optimization, options, ort::GraphOptimization::none),
                            "set optimisation");
        }
        library_->check(
            api(ort::create_session, environment_->get(), model.c_str(), options, &session_),
            "load the model");
        api(ort::release_session_options, options);
        for (const auto& input : inputs_) {
            wrapped_.push_back(ort::wrap_tensor(*environment_, input.value));
            input_values_.push_back(wrapped_.back().get());
            input_names_.push_back(input.name.c_str());
        }
        for (const auto& output : outputs_) {
            output_names_.push_back(output.c_str());
        }
    }
    Direct(const Direct&) = delete;
    Direct& operator=(const Direct&) = delete;
    ~Direct() { library_->api()(ort::release_session, session_); }

    void run() {
        std::vector<ort::OrtValue*> results(output_names_.size(), nullptr);
        const auto& api = library_->api();
        library_->check(
            api(ort::run_session, session_, nullptr, input_names_.data(), input_values_.data(),
                input_values_.size(), output_names_.data(), output_names_.size(), results.data()),
            "run");
        for (auto* result : results) {
            api(ort::release_value, result);
        }
    }

private:
    std::shared_ptr<ort::Library> library_;
    std::shared_ptr<ort::Environment> environment_;
    ort::Session* session_ = nullptr;
    std::vector<std::string> outputs_;
    std::vector<NamedValue> inputs_;
    std::vector<ort::Owned> wrapped_;
    std::vector<const ort::OrtValue*> input_values_;
    std::vector<const char*> input_names_;
    std::vector<const char*> output_names_;
};

struct Figures {
    std::size_t programs = 0;
    double direct = 0;  // medians, in seconds
    double unoptimised = 0;
    double cut = 0;
    double whole_ratio = 0;  // medians of ratios within a round: steadier than ratios of medians
    double cut_ratio = 0;
};

Figures measure(const std::string& path, const std::string& library, int threads, int rounds,
                const InputSpec& given = {}) {
    const auto model = load(path);
    EngineOptions options;
    options.path = library;
    options.threads = threads;
    const auto engine = open_engine(options);
    auto spec = given;
    spec.fill = "random";
    spec.unknown_dims = 1;
    const auto inputs = make_inputs(model, spec).values;
    std::vector<std::string> outputs;
    for (const auto id : model.graph.outputs()) {
        outputs.push_back(model.graph.tensor(id).name);
    }
    Session whole(model, engine);
    SessionOptions cut_options;
    cut_options.cut = every_op();
    Session cut(model, engine, cut_options);
    Direct fused(library, path, threads, true, inputs, outputs);
    Direct unfused(library, path, threads, false, inputs, outputs);

    const std::vector<std::function<void()>> contenders{
        [&] { fused.run(); }, [&] { whole.run(inputs); }, [&] { unfused.run(); },
        [&] { cut.run(inputs); }};
    std::vector<std::vector<double>> samples(contenders.size());
    for (int round = -3; round < rounds; ++round) {
        // Each round starts with another contender, so that none always runs after the same one.
        for (std::size_t i = 0; i < contenders.size(); ++i) {
            const auto who = (i + static_cast<std::size_t>(round + 3)) % contenders.size();
            const auto start = seconds();
            contenders[who]();
            if (round >= 0) {
                samples[who].push_back(seconds() - start);
            }
        }
    }
    const auto ratio = [&](std::size_t a, std::size_t b) {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < samples[a].size(); ++i) {
            ratios.push_back(samples[a][i] / samples[b][i]);
        }
        return median(std::move(ratios));
    };
    return {cut.plan().segments.size(), median(samples[0]), median(samples[2]),
            median(samples[3]),         ratio(1, 0),        ratio(3, 2)};
}

void networks(const std::string& models, const std::string& library, int threads, int rounds) {
    for (const auto* name : {"resnet50", "mobilenet_v2"}) {
        const auto f = measure(fmt::format("{}/{}.onnx", models, name), library, threads, rounds);
        row(fmt::format("no cut, {}, {} thread(s)", name, threads),
            fmt::format("the engine directly, {:.2f} ms", f.direct * 1e3),
            fmt::format("{:.3f}x", f.whole_ratio), "<= 1.02x", f.whole_ratio <= 1.02);
        row(fmt::format("cut at every op, {}, {} thread(s), {} programs", name, threads,
                        f.programs),
            fmt::format("whole, optimisations off, {:.2f} ms", f.unoptimised * 1e3),
            fmt::format("{:.3f}x", f.cut_ratio), "<= 1.15x", f.cut_ratio <= 1.15);
    }
}

void tiny_ops(const std::string& models, const std::string& engines, const std::string& library,
              int rounds) {
    InputSpec speech;  // 32 ms at 16 kHz, with the model's own state
    speech.sources = {"sr=16000"};
    speech.shapes = {"input=1,576", "state=2,1,128"};
    const std::vector<std::pair<std::string, InputSpec>> cases{
        {models + "/lstm.onnx", {}},
        {models + "/lstm_unrolled.onnx", {}},
        {engines + "/models/silero_vad.onnx", speech},
        {engines + "/models/silero_vad_op18_ifless.onnx", speech}};
    for (const auto& [path, spec] : cases) {
        const auto f = measure(path, library, 1, rounds, spec);
        const auto per_cut = (f.cut - f.unoptimised) / static_cast<double>(f.programs) * 1e6;
        row(fmt::format("cut at every op, {}, {} programs",
                        std::filesystem::path(path).stem().string(), f.programs),
            fmt::format("whole, optimisations off, {:.0f} us", f.unoptimised * 1e6),
            fmt::format("{:.2f} us per cut", per_cut), "<= 4 us", per_cut <= 4);
    }
}

// Each part in a process of its own.
int in_child(const std::function<void()>& work) {
    std::fflush(stdout);
    const auto child = ::fork();
    if (child == 0) {
        int code = 0;
        try {
            work();
        } catch (const std::exception& e) {
            fmt::print(stderr, "bench_engine: {}\n", e.what());
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
        fmt::print(stderr, "usage: bench_engine MODELS ENGINES [ROUNDS]\n");
        return 2;
    }
    const std::string models = argv[1];
    const std::string engines = argv[2];
    const int rounds = argc > 3 ? std::stoi(argv[3]) : 60;
    auto options = engines_in(engines);
    std::string library;
    for (const auto* kind : engine_kinds()) {
        if (kind->name == options.name) {
            library = kind->find(options).front().path;
        }
    }
    fmt::print("Runs on {} (medians of {} rounds, interleaved)\n", library, rounds);
    int failed = 0;
    for (const int threads : {1, 2}) {
        failed |= in_child([&] { networks(models, library, threads, rounds); });
    }
    failed |= in_child([&] { tiny_ops(models, engines, library, rounds * 5); });
    return failed;
}

}  // namespace
}  // namespace trocar

int main(int argc, char** argv) {
    return trocar::run_bench("bench_engine", [&] { return trocar::bench(argc, argv); });
}
