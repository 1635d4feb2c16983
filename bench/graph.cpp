// Graph work per op at several sizes: bench_graph. Flat when it is linear.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "trocar/error.h"
#include "trocar/session.h"

namespace trocar {
namespace {

OpSpec spec(const char* type, std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    OpSpec made;
    made.type = type;
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    return made;
}

// Builds a chain, edits it at every op, verifies, plans it and takes it apart.
void work(std::size_t size) {
    Model model;
    model.dialect = "onnx";
    model.ir_version = 10;
    auto& graph = model.graph;
    auto at = graph.add_input("x", Type::tensor(DType::f32));
    for (std::size_t i = 0; i < size; ++i) {
        const auto next = graph.add_tensor(fmt::format("t{}", i), Type::tensor(DType::f32));
        graph.append(spec("Relu", {at}, {next}));
        at = next;
    }
    graph.set_outputs({at});
    const std::vector<OpId> ops(graph.ops().begin(), graph.ops().end());
    for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
        const auto added = graph.insert_on(graph.op(ops[i]).outputs[0], spec("Identity", {}, {}));
        if (i % 2 == 0) {
            graph.remove(added);
        }
    }
    if (!graph.verify().empty()) {
        throw Error(Fault::internal, "the graph is broken");
    }
    const auto plan = make_plan(model, [](OpId) { return CutAt{.after = true}; });
    for (const auto& segment : plan.segments) {
        extract_ops(model, segment.ops, segment.outputs, plan.constants);
    }
}

double seconds_per_op(std::size_t size) {
    std::vector<double> samples;
    for (int i = 0; i < 5; ++i) {
        const auto start = std::chrono::steady_clock::now();
        work(size);
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
        samples.push_back(spent.count() / static_cast<double>(size));
    }
    std::sort(samples.begin(), samples.end());
    return samples[samples.size() / 2];
}

}  // namespace
}  // namespace trocar

int main() {
    fmt::print("Graph work per op (build, edit, verify, plan, take apart; medians of 5)\n");
    double least = 1e9;
    double most = 0;
    for (const std::size_t size : {1000, 10000, 100000}) {
        const auto each = trocar::seconds_per_op(size);
        least = std::min(least, each);
        most = std::max(most, each);
        fmt::print("{:>8} ops {:>8.2f} us per op\n", size, each * 1e6);
    }
    fmt::print("largest / smallest {:.2f}x (target: within 2x) {}\n", most / least,
               most / least <= 2 ? "met" : "MISSED");
    return 0;
}
