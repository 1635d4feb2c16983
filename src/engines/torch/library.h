#pragma once

#include "engines/torch/bridge/bridge.h"

namespace trocar::libtorch {

// The bridge with torch behind it, loaded once and kept for the life of the process. Throws
// Error(engine).
const Bridge& load_bridge();

}  // namespace trocar::libtorch
