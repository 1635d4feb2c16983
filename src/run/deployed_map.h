#pragma once

#include <vector>

#include "trocar/deployed.h"

namespace trocar {

// Fills `sources`, `source_tensors` and `folded` of `deployed`, whose model is what an engine made
// of `model`.
void map_to_sources(const Model& model, Deployed& deployed);

// Fills `layouts`; needs the above. The size of blocks is asked of the engine: it is a matter of
// the CPU, and the graph alone does not tell it.
void find_layouts(const Model& model, Engine& engine, Deployed& deployed);

// Does an op keep its tensors in blocks of channels, but for the first and the last of such ops?
inline bool is_blocked_domain(const Op& op) {
    return op.domain == "com.microsoft.nchwc";
}

}  // namespace trocar
