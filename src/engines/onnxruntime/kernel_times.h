#pragma once

#include <filesystem>

#include "engines/onnxruntime/library.h"
#include "trocar/engine.h"

namespace trocar::ort {

// Ends the profiling of a session; the file that the engine wrote.
std::filesystem::path end_session_profiling(const Environment& environment, Session* session);

// Reads such a file. Its clock counts whole microseconds and cuts off the rest, so half of one is
// added to every time.
KernelTimes read_kernel_times(const std::filesystem::path& file);

}  // namespace trocar::ort
