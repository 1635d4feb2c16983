#pragma once

#include <string>
#include <vector>

#include "trocar/engine.h"
#include "util/library_files.h"

namespace trocar::litert {

// Its ABI changes between versions, and the library does not tell its own: the one that was looked
// at.
inline constexpr const char* only_version = "2.3.0";
inline constexpr const char* install_hint =
    "pip install ai-edge-litert==2.3.0, or --engine litert:PATH names a folder that holds it";

// Every libLiteRt.so that `options` leads to, best first. The version is that of the wheel's notes
// beside it; empty: there are none.
std::vector<LibraryFile> find_libraries(const EngineOptions& options);

}  // namespace trocar::litert
