#pragma once

#include <string>

#include "util/engine_library.h"

namespace trocar::executorch {

// The bridge is compiled with the headers of one version, and C++ classes change between versions.
inline constexpr const char* only_version = "1.5.1";
inline constexpr const char* install_hint =
    "pip install executorch==1.5.1, or --engine executorch:PATH names a folder that holds it";

// The version is that of the wheel's notes beside the library; empty: there are none.
extern const EngineLibrary engine_library;

// The bridge of this build; empty: it has none.
std::string bridge_path();
inline constexpr const char* no_bridge =
    "this Trocar was built without ExecuTorch's headers, so it cannot call it";
inline constexpr const char* bridge_hint = "run scripts/setup, then build Trocar again";

}  // namespace trocar::executorch
