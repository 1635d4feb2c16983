#pragma once

#include <filesystem>

#include "util/engine_library.h"

namespace trocar::ort {

extern const EngineLibrary engine_library;

// Throws Error(engine) when the file is no complete shared library of this machine's architecture.
// Reads headers only.
void check_elf(const std::filesystem::path& path);

}  // namespace trocar::ort
