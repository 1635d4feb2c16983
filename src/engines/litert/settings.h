#pragma once

#include <string>

#include "trocar/engine.h"

namespace trocar::litert {

struct Settings {
    // "delegate": XNNPACK's kernels; "builtin": the engine's own; "reference": its plain loops.
    std::string kernels = "delegate";
};

// Throws Error(usage) on options that there are none of.
Settings parse_settings(const EngineOptions& options);

// The texts that the engine takes its settings as.
std::string kernel_text(const Settings& settings, int threads);
std::string runtime_text(bool time_kernels);

}  // namespace trocar::litert
