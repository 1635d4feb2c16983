#pragma once

#include "util/engine_library.h"

namespace trocar::litert {

// Its ABI changes between versions, and the library does not tell its own: the one that was looked
// at.
inline constexpr const char* only_version = "2.3.0";
inline constexpr const char* install_hint =
    "pip install ai-edge-litert==2.3.0, or --engine litert:PATH names a folder that holds it";

// The version is that of the wheel's notes beside the library; empty: there are none.
extern const EngineLibrary engine_library;

}  // namespace trocar::litert
