#include <algorithm>
#include <barrier>
#include <limits>
#include <thread>

#include "profile/instrument.h"

namespace trocar {

namespace {

// Short enough to be done between two interruptions on a busy machine.
constexpr std::int64_t matrix = 512;
constexpr std::size_t triad_elements = std::size_t{1} << 23;  // 64 MiB an array: beyond caches
constexpr int products = 60;
constexpr int triads = 20;

// Nanoseconds of the fastest of several calls: what the machine can do, not what it did.
template <class Work>
double fastest(int rounds, Work&& work) {
    double least = std::numeric_limits<double>::infinity();
    for (int round = 0; round < rounds; ++round) {
        least = std::min(least, work());
    }
    return least;
}

Model product_of_matrices(const std::string& dialect) {
    Model model;
    model.format = dialect;
    model.dialect = dialect;
    model.ir_version = 8;
    model.opsets = {{"", 17}};
    model.graph.name = "peak";
    const auto type = Type::tensor(DType::f32, Shape{matrix, matrix});
    const auto a = model.graph.add_input("a", type);
    const auto b = model.graph.add_input("b", type);
    const auto c = model.graph.add_tensor("c", type);
    model.graph.append({.type = dialect == "tflite" ? "BATCH_MATMUL"
                                : dialect == "aten" ? "mm"
                                                    : "MatMul",
                        .overload = dialect == "aten" ? "default" : "",
                        .inputs = {a, b},
                        .outputs = {c}});
    model.graph.set_outputs({c});
    return model;
}

double peak_flops(Engine& engine) {
    const Shape shape{matrix, matrix};
    const auto& dialects = engine.info().can.dialects;
    profiling::Runner runner(
        engine.compile(product_of_matrices(dialects.empty() ? "onnx" : dialects.front()), {}),
        {{"a", Value::tensor(DType::f32, shape)}, {"b", Value::tensor(DType::f32, shape)}});
    runner.run();
    const auto work = 2.0 * static_cast<double>(matrix * matrix * matrix);
    return work / (fastest(products, [&] { return runner.run(); }) * 1e-9);
}

// a = b + s·c: two numbers read and one written for each element.
void triad(double* a, const double* b, const double* c, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        a[i] = b[i] + 3.0 * c[i];
    }
}

double peak_bytes(int threads) {
    std::vector<double> a(triad_elements, 1.0);
    std::vector<double> b(triad_elements, 2.0);
    std::vector<double> c(triad_elements, 0.5);
    const auto share = triad_elements / static_cast<std::size_t>(threads);
    const auto part = [&](int thread) {
        const auto from = static_cast<std::size_t>(thread) * share;
        triad(a.data() + from, b.data() + from, c.data() + from, share);
    };
    const auto spent = fastest(triads, [&] {
        std::barrier start(threads);
        std::vector<std::jthread> others;
        for (int thread = 1; thread < threads; ++thread) {
            others.emplace_back([&, thread] {
                start.arrive_and_wait();
                part(thread);
            });
        }
        start.arrive_and_wait();
        const auto begin = now_ns();
        part(0);
        others.clear();
        return now_ns() - begin;
    });
    return 3.0 * static_cast<double>(sizeof(double) * triad_elements) / (spent * 1e-9);
}

}  // namespace

Peaks measure_peaks(Engine& engine, int threads) {
    return {.flops = peak_flops(engine), .bytes = peak_bytes(threads), .threads = threads};
}

}  // namespace trocar
