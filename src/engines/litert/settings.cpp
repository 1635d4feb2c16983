#include "engines/litert/settings.h"

#include <fmt/format.h>

#include "trocar/error.h"

namespace trocar::litert {

Settings parse_settings(const EngineOptions& options) {
    Settings settings;
    for (const auto& [key, value] : options.options) {
        if (key != "kernels") {
            throw Error(Fault::usage, fmt::format("the engine litert has no option '{}'", key),
                        "it takes kernels=delegate|builtin|reference");
        }
        if (value != "delegate" && value != "builtin" && value != "reference") {
            throw Error(Fault::usage, fmt::format("engine option {}={} is unknown", key, value),
                        "kernels takes delegate, builtin or reference");
        }
        settings.kernels = value;
    }
    return settings;
}

std::string kernel_text(const Settings& settings, int threads) {
    return fmt::format("num_threads = {}\nkernel_mode = \"{}\"\n", threads, settings.kernels);
}

std::string runtime_text(bool time_kernels) {
    // Mode 2: messages are kept until somebody asks for them.
    return fmt::format("enable_profiling = {}\nerror_reporter_mode = 2\n", time_kernels);
}

}  // namespace trocar::litert
