#include "trocar/liveness.h"

#include <gtest/gtest.h>

namespace trocar {
namespace {

// A graph of ops that read and write tensors of given sizes.
struct Net {
    Graph graph;
    std::vector<std::uint64_t> sizes;

    TensorId input(const char* name, std::uint64_t bytes) {
        TensorId id = graph.add_input(name, Type::tensor(DType::f32));
        note(id, bytes);
        return id;
    }
    TensorId op(const char* name, std::vector<TensorId> inputs, std::uint64_t bytes) {
        TensorId out = graph.add_tensor(name, Type::tensor(DType::f32));
        note(out, bytes);
        OpSpec spec;
        spec.type = "Any";
        spec.name = name;
        spec.inputs = std::move(inputs);
        spec.outputs = {out};
        graph.append(std::move(spec));
        return out;
    }
    void note(TensorId id, std::uint64_t bytes) {
        sizes.resize(std::max(sizes.size(), index(id) + 1));
        sizes[index(id)] = bytes;
    }
    Liveness liveness() const {
        return trocar::liveness(graph,
                                [&](TensorId id) { return std::optional(sizes[index(id)]); });
    }
};

TEST(LivenessOf, AChainHoldsInputAndOutputOfOneOp) {
    Net net;
    TensorId x = net.input("x", 10);
    TensorId a = net.op("a", {x}, 40);
    TensorId b = net.op("b", {a}, 30);
    net.graph.set_outputs({net.op("c", {b}, 5)});
    Liveness l = net.liveness();
    EXPECT_EQ(l.peak_bytes, 70U);
    EXPECT_EQ(net.graph.op(l.peak).name, "b");
    EXPECT_EQ(l.total_bytes, 85U);
}

TEST(LivenessOf, AShortcutIsHeldUntilItsLastReader) {
    Net net;
    TensorId x = net.input("x", 10);
    TensorId a = net.op("a", {x}, 40);
    TensorId b = net.op("b", {a}, 30);
    TensorId c = net.op("c", {b}, 30);
    net.graph.set_outputs({net.op("sum", {a, c}, 20)});
    Liveness l = net.liveness();
    EXPECT_EQ(l.peak_bytes, 100U);  // a, b and c
    EXPECT_EQ(net.graph.op(l.peak).name, "c");
}

TEST(LivenessOf, OutputsStayAndUnreadResultsGo) {
    Net net;
    TensorId x = net.input("x", 10);
    TensorId kept = net.op("kept", {x}, 100);
    net.op("unread", {x}, 50);
    TensorId end = net.op("end", {kept}, 1);
    net.graph.set_outputs({kept, end});
    Liveness l = net.liveness();
    EXPECT_EQ(l.peak_bytes, 160U);
    EXPECT_EQ(net.graph.op(l.peak).name, "unread");
}

TEST(LivenessOf, TheSameTensorTwiceIsReadOnce) {
    Net net;
    TensorId x = net.input("x", 10);
    net.graph.set_outputs({net.op("double", {x, x}, 10)});
    EXPECT_EQ(net.liveness().peak_bytes, 20U);
}

TEST(LivenessOf, UnknownSizesAreCountedAsSuch) {
    Net net;
    TensorId x = net.input("x", 10);
    net.graph.set_outputs({net.op("a", {x}, 10)});
    Liveness l = liveness(net.graph, [](TensorId) -> std::optional<std::uint64_t> { return {}; });
    EXPECT_EQ(l.unknown, 2U);
    EXPECT_EQ(l.peak_bytes, 0U);
}

TEST(LivenessOf, WhatAnOpNeedsInsideAddsToThePeak) {
    Net net;
    TensorId x = net.input("x", 10);
    net.graph.set_outputs({net.op("loop", {x}, 10)});
    Liveness l = liveness(
        net.graph, [](TensorId) { return std::optional<std::uint64_t>(10); },
        [](OpId) { return std::uint64_t{500}; });
    EXPECT_EQ(l.peak_bytes, 520U);
}

}  // namespace
}  // namespace trocar
