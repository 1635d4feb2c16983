#include "engines/openvino/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar::ov {

namespace {

// One of the values that an option takes.
std::string choice(const std::string& key, const std::string& value,
                   const std::vector<std::string>& choices) {
    if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
        throw Error(Fault::usage, fmt::format("engine option {}={} is unknown", key, value),
                    fmt::format("{} takes {}", key, join(choices, " or ")));
    }
    return value;
}

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

}  // namespace

Settings parse_settings(const EngineOptions& options) {
    Settings settings;
    for (const auto& [key, value] : options.options) {
        if (key == "device") {
            settings.device = upper(value);
        } else if (key == "precision") {
            settings.precision = choice(key, value, {"f32", "bf16", "f16"});
        } else if (key == "mode") {
            settings.performance = choice(key, value, {"accuracy", "performance"}) == "performance";
        } else if (key == "f64") {
            settings.f64_as_f32 = choice(key, value, {"refuse", "f32"}) == "f32";
        } else if (key.starts_with("config.") && key.size() > 7) {
            settings.config.emplace_back(key.substr(7), value);
        } else {
            throw Error(Fault::usage, fmt::format("the engine openvino has no option '{}'", key),
                        "it takes device=NAME, precision=f32|bf16|f16, "
                        "mode=accuracy|performance, f64=refuse|f32 and config.KEY=VALUE");
        }
    }
    return settings;
}

std::vector<std::string> properties(const Settings& settings, int threads, bool time_kernels) {
    std::vector<std::string> all{
        "INFERENCE_PRECISION_HINT",
        settings.precision,
        "EXECUTION_MODE_HINT",
        settings.performance ? "PERFORMANCE" : "ACCURACY",
        "PERFORMANCE_HINT",
        "LATENCY",
        "PERF_COUNT",
        time_kernels ? "YES" : "NO",
    };
    if (settings.device == "CPU") {
        // One stream: all threads work on one run. Pinned threads would fight with those of other
        // programs for the same cores.
        for (const auto& text :
             {std::string("NUM_STREAMS"), std::string("1"), std::string("INFERENCE_NUM_THREADS"),
              std::to_string(threads), std::string("ENABLE_CPU_PINNING"), std::string("NO")}) {
            all.push_back(text);
        }
        if (!settings.performance) {
            // Quantized models are computed as they are written, not in integers where that is
            // faster.
            all.emplace_back("LP_TRANSFORMS_MODE");
            all.emplace_back("NO");
        }
    }
    for (const auto& [key, value] : settings.config) {
        std::size_t at = 0;
        while (at < all.size() && all[at] != key) {
            at += 2;
        }
        all.resize(std::max(all.size(), at + 2));
        all[at] = key;
        all[at + 1] = value;
    }
    return all;
}

}  // namespace trocar::ov
