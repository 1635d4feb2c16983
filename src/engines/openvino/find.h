#pragma once

#include "util/engine_library.h"

namespace trocar::ov {

extern const EngineLibrary engine_library;

}  // namespace trocar::ov
