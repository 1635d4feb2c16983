#pragma once

#include <cstdlib>

#include "trocar/error.h"
#include "trocar/graph.h"

// What every reader of untrusted bytes keeps to.
namespace trocar {

inline void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

// Bytes may be refused for what they are, and for nothing else.
inline void require_refusal(const Error& error) {
    require(error.fault() == Fault::input || error.fault() == Fault::unsupported);
}

// A graph that was read is valid, with all graphs inside it, and its constants have their bytes or
// are refused.
inline void require_valid(const Graph& graph) {
    require(graph.verify().empty());
    for (const auto id : graph.ops()) {
        for (const auto& body : graph.op(id).subgraphs()) {
            require_valid(*body);
        }
    }
    for (const auto id : graph.tensors()) {
        const auto& constant = graph.tensor(id).constant;
        if (constant && !constant->is_string() && !constant->is_sparse() &&
            byte_size(constant->dtype(), constant->element_count()) < (1U << 24)) {
            try {
                constant->bytes();
            } catch (const Error& e) {
                require_refusal(e);
            }
        }
    }
}

}  // namespace trocar
