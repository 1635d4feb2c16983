#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trocar/graph.h"

namespace trocar {

// Hashes of the ops of a graph, by OpId, that do not depend on names. "Strong" ones depend on the
// elements of constants, "weak" ones on their types alone (and on the elements of small integers:
// axes, shapes).
class Fingerprints {
public:
    explicit Fingerprints(const Graph& graph);

    // The op itself; with all that it is computed from; with all that is computed from it.
    std::vector<std::uint64_t> weak, strong;
    std::vector<std::uint64_t> weak_forward, strong_forward;
    std::vector<std::uint64_t> weak_backward, strong_backward;

    // The op with what is at most so many steps away. Takes one more step with each call.
    std::vector<std::uint64_t> widened(const std::vector<std::uint64_t>& narrower) const;

private:
    void spread(const std::vector<std::uint64_t>& own, std::vector<std::uint64_t>& forward,
                std::vector<std::uint64_t>& backward) const;

    const Graph& graph_;
};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b);
// Of the elements, whatever form they are stored in.
std::uint64_t content_hash(const Constant& constant);

}  // namespace trocar
