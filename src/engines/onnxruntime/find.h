#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trocar/engine.h"
#include "util/library_files.h"

namespace trocar::ort {

using Found = LibraryFile;

// Every libonnxruntime.so that `options` leads to, best first: that of `path` alone when given,
// else those of the search folders in order (in each the newest first), then those of the system.
// Each file once.
std::vector<Found> find_libraries(const EngineOptions& options);

// Throws Error(engine) when the file is no complete shared library of this machine's architecture.
// Reads headers only.
void check_elf(const std::filesystem::path& path);

// Is version `a` ("1.9.0") older than `b` ("1.31.1")? Compared number by number.
bool older(const std::string& a, const std::string& b);

}  // namespace trocar::ort
