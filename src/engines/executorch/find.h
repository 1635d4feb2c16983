#pragma once

#include <string>
#include <vector>

#include "trocar/engine.h"
#include "util/library_files.h"

namespace trocar::executorch {

// The bridge is compiled with the headers of one version, and C++ classes change between versions.
inline constexpr const char* only_version = "1.5.1";
inline constexpr const char* install_hint =
    "pip install executorch==1.5.1, or --engine executorch:PATH names a folder that holds it";

// Every libexecutorch.so that `options` leads to, best first. The version is that of the wheel's
// notes beside it; empty: there are none.
std::vector<LibraryFile> find_libraries(const EngineOptions& options);

// The bridge of this build; empty: it has none.
std::string find_bridge();
inline constexpr const char* no_bridge =
    "this Trocar was built without ExecuTorch's headers, so it cannot call it";
inline constexpr const char* bridge_hint = "run scripts/setup, then build Trocar again";

}  // namespace trocar::executorch
