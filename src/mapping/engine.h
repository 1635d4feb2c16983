#pragma once

#include <memory>

#include "trocar/engine.h"

namespace trocar::mapping {

// The engine, for models of every dialect that rules map to one of its own. `options` are those it
// was opened with: where rules must know types that a file does not tell, another engine that is
// found the same way shows them.
std::shared_ptr<Engine> with_mappings(std::shared_ptr<Engine> engine, const EngineOptions& options);

}  // namespace trocar::mapping
