#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trocar::executorch {

// When the bytes of a tensor are needed: from the step that writes them to the last that reads
// them, both included.
struct Lifetime {
    std::uint64_t bytes = 0;
    std::size_t first = 0;
    std::size_t last = 0;
};

// Where tensors lie in one piece of memory. Those that are needed at the same time lie apart.
struct MemoryPlan {
    std::vector<std::uint64_t> offsets;  // by tensor, multiples of `tensor_alignment`
    std::uint64_t size = 0;
};
inline constexpr std::uint64_t tensor_alignment = 16;

// Step by step, each tensor into the smallest gap that holds it.
MemoryPlan plan_memory(std::span<const Lifetime> tensors);

}  // namespace trocar::executorch
