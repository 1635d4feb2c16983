#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trocar/engine.h"

namespace trocar::ov {

// What EngineOptions::options say, checked.
struct Settings {
    std::string device = "CPU";
    std::string precision = "f32";  // that floating-point numbers are computed in
    bool performance = false;       // may the engine trade accuracy for speed?
    bool f64_as_f32 = false;        // may it compute in f32 what the model has in f64?
    std::vector<std::pair<std::string, std::string>> config;  // properties, as they are
};

// Options are device=NAME, precision=f32|bf16|f16, mode=accuracy|performance, f64=refuse|f32 and
// config.KEY=VALUE. Throws Error(usage) on any other.
Settings parse_settings(const EngineOptions& options);

// The properties that a program is compiled with, keys and values in turn.
std::vector<std::string> properties(const Settings& settings, int threads, bool time_kernels);

}  // namespace trocar::ov
