#pragma once

#include <memory>

#include "trocar/engine.h"

namespace trocar::mapping {

// The engine, for models of every dialect that rules map to one of its own.
std::shared_ptr<Engine> with_mappings(std::shared_ptr<Engine> engine);

}  // namespace trocar::mapping
