#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engines/onnxruntime/library.h"
#include "trocar/engine.h"

namespace trocar::ort {

// What EngineOptions::options say, checked.
struct Settings {
    std::string provider = "CPUExecutionProvider";
    std::vector<std::pair<std::string, std::string>> provider_options;
    std::vector<std::pair<std::string, std::string>> config;  // session config entries
    std::vector<std::string> custom_ops;                      // libraries that implement ops
    Severity log_from = Severity::warning;

    bool on_cpu() const { return provider == "CPUExecutionProvider"; }
};

// Options are provider=NAME, custom_ops=LIBRARY, config.KEY=VALUE, log=verbose|info|warning|error;
// any other goes to the provider. Throws Error(usage) on an option that nobody takes.
Settings parse_settings(const EngineOptions& options);

// Throws Error(engine) when the library was built without the provider.
void check_provider(const Library& library, const Settings& settings);

// Adds the provider to a session's options.
void append_to(const Library& library, SessionOptions* options, const Settings& settings);

}  // namespace trocar::ort
