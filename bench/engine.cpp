// Measures Trocar against ONNX Runtime called directly, in one process and interleaved. Prints one
// JSON object; bench/run.py makes the table.
//
//     trocar_bench run MODEL LIBRARY THREADS ROUNDS    whole and cut, against the engine alone
//     trocar_bench read MODEL                          reading a file into a Graph
//     trocar_bench graph                               graph work per op at several sizes
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>

#include "engines/onnxruntime/library.h"
#include "engines/onnxruntime/values.h"
#include "run/inputs.h"
#include "trocar/error.h"
#include "trocar/session.h"

namespace trocar {
namespace {

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double median(std::vector<double> samples) {
    std::sort(samples.begin(), samples.end());
    const auto n = samples.size();
    return n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
}

// Resident memory of this process in bytes.
std::size_t resident() {
    std::ifstream statm("/proc/self/statm");
    std::size_t total = 0;
    std::size_t pages = 0;
    statm >> total >> pages;
    return pages * 4096;
}

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

int bench_run(const std::string& path, const std::string& library, int threads, int rounds) {
    const auto model = load(path);
    EngineOptions options;
    options.path = library;
    options.threads = threads;
    const auto engine = open_engine(options);
    InputSpec spec;
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

    const std::vector<std::pair<const char*, std::function<void()>>> contenders{
        {"direct", [&] { fused.run(); }},
        {"whole", [&] { whole.run(inputs); }},
        {"direct_unoptimised", [&] { unfused.run(); }},
        {"cut", [&] { cut.run(inputs); }},
    };
    std::vector<std::vector<double>> samples(contenders.size());
    for (int round = -3; round < rounds; ++round) {
        // Each round starts with another contender, so that none always runs after the same one.
        for (std::size_t i = 0; i < contenders.size(); ++i) {
            const auto who = (i + static_cast<std::size_t>(round + 3)) % contenders.size();
            const auto start = seconds();
            contenders[who].second();
            if (round >= 0) {
                samples[who].push_back(seconds() - start);
            }
        }
    }
    fmt::print("{{\"model\": \"{}\", \"threads\": {}, \"rounds\": {}, \"programs\": {}",
               std::filesystem::path(path).filename().string(), threads, rounds,
               cut.plan().segments.size());
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        fmt::print(", \"{}\": {:.9f}", contenders[i].first, median(samples[i]));
    }
    // Ratios of neighbours in the same round are steadier than ratios of medians.
    const auto paired = [&](std::size_t a, std::size_t b) {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < samples[a].size(); ++i) {
            ratios.push_back(samples[a][i] / samples[b][i]);
        }
        return median(std::move(ratios));
    };
    fmt::print(", \"whole_ratio\": {:.4f}, \"cut_ratio\": {:.4f}}}\n", paired(1, 0), paired(3, 2));
    return 0;
}

int bench_read(const std::string& path) {
    const auto before = resident();
    const auto start = seconds();
    const auto model = load(path);
    const auto spent = seconds() - start;
    fmt::print("{{\"seconds\": {:.9f}, \"resident_growth\": {}, \"ops\": {}}}\n", spent,
               resident() - std::min(before, resident()), model.graph.op_count());
    return 0;
}

double per_op(std::size_t size, const std::function<void(std::size_t)>& work) {
    std::vector<double> samples;
    for (int i = 0; i < 5; ++i) {
        const auto start = seconds();
        work(size);
        samples.push_back((seconds() - start) / static_cast<double>(size));
    }
    return median(std::move(samples));
}

OpSpec relu(TensorId from, TensorId to) {
    OpSpec spec;
    spec.type = "Relu";
    spec.inputs = {from};
    spec.outputs = {to};
    return spec;
}

// Builds, edits at every op, verifies, plans and takes apart a chain.
void graph_work(std::size_t size) {
    Model model;
    model.dialect = "onnx";
    model.ir_version = 10;
    auto& graph = model.graph;
    auto at = graph.add_input("x", Type::tensor(DType::f32));
    for (std::size_t i = 0; i < size; ++i) {
        const auto next = graph.add_tensor(fmt::format("t{}", i), Type::tensor(DType::f32));
        graph.append(relu(at, next));
        at = next;
    }
    graph.set_outputs({at});
    const std::vector<OpId> ops(graph.ops().begin(), graph.ops().end());
    for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
        OpSpec tap;
        tap.type = "Identity";
        const auto added = graph.insert_on(graph.op(ops[i]).outputs[0], std::move(tap));
        if (i % 2 == 0) {
            graph.remove(added);
        }
    }
    if (!graph.verify().empty()) {
        throw Error(Fault::internal, "the graph is broken");
    }
    const auto plan = make_plan(model, [](OpId) { return true; });
    for (const auto& segment : plan.segments) {
        extract_ops(model, segment.ops, segment.outputs, plan.constants);
    }
}

int bench_graph() {
    fmt::print("{{");
    const char* comma = "";
    for (const std::size_t size : {1000, 10000, 100000}) {
        fmt::print("{}\"{}\": {:.3e}", comma, size, per_op(size, graph_work));
        comma = ", ";
    }
    fmt::print("}}\n");
    return 0;
}

int bench(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "run" && argc == 6) {
        return bench_run(argv[2], argv[3], std::stoi(argv[4]), std::stoi(argv[5]));
    }
    if (what == "read" && argc == 3) {
        return bench_read(argv[2]);
    }
    if (what == "graph") {
        return bench_graph();
    }
    fmt::print(stderr, "usage: see the head of bench/bench.cpp\n");
    return 2;
}

}  // namespace
}  // namespace trocar

int main(int argc, char** argv) {
    try {
        return trocar::bench(argc, argv);
    } catch (const std::exception& e) {
        fmt::print(stderr, "trocar_bench: {}\n", e.what());
        return 70;
    }
}
