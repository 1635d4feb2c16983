#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "trocar/graph.h"

#pragma GCC visibility push(default)
namespace trocar {

// The memory of tensors while a graph is run op by op: a tensor lives from the op that writes it (a
// graph's input: from the start) to the last op that reads it (a graph's output: to the end).
// Nothing is computed in place and no tensor shares another's bytes.
struct Liveness {
    std::uint64_t peak_bytes = 0;
    OpId peak = OpId::none;         // the first op at which the peak is reached
    std::uint64_t total_bytes = 0;  // of all tensors written, and the inputs
    std::size_t unknown = 0;        // tensors whose size is not known: the numbers leave them out
};

// `bytes`: the size of a tensor; nullopt where it is unknown; 0 for constants and what stands for
// them. `inside`: what an op needs besides its inputs and outputs, as in the bodies of loops.
// Linear in the size of the graph.
Liveness liveness(const Graph& graph,
                  const std::function<std::optional<std::uint64_t>(TensorId)>& bytes,
                  const std::function<std::uint64_t(OpId)>& inside = {});

}  // namespace trocar
#pragma GCC visibility pop
