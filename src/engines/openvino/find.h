#pragma once

#include <string>
#include <vector>

#include "trocar/engine.h"
#include "util/library_files.h"

namespace trocar::ov {

inline constexpr const char* install_hint = "pip install openvino, or --engine openvino:PATH";
inline constexpr const char* oldest_version = "2025.4";

// Every libopenvino_c.so that `options` leads to, best first: that of `path` alone when given, else
// those of the search folders in order (in each the newest first), then those of the system.
std::vector<LibraryFile> find_libraries(const EngineOptions& options);

}  // namespace trocar::ov
