#include "engines/onnxruntime/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar::ort {

namespace {

constexpr std::string_view suffix = "ExecutionProvider";

std::string lower(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

// "CUDAExecutionProvider" → "cuda".
std::string short_name(std::string_view provider) {
    if (provider.ends_with(suffix)) {
        provider.remove_suffix(suffix.size());
    }
    return lower(provider);
}

// The names by which SessionOptionsAppendExecutionProvider knows providers, where they are not the
// full name without its suffix.
std::string append_name(const std::string& provider) {
    auto name = provider.substr(0, provider.size() - suffix.size());
    for (const char* known : {"XNNPACK", "AZURE", "WEBNN", "JS"}) {
        if (lower(known) == lower(name)) {
            return known;
        }
    }
    return lower(name) == "dml" ? "DML" : name;
}

// Keys and values as the C API takes them; valid while `pairs` is.
struct Arrays {
    std::vector<const char*> keys;
    std::vector<const char*> values;
    explicit Arrays(const std::vector<std::pair<std::string, std::string>>& pairs) {
        for (const auto& [key, value] : pairs) {
            keys.push_back(key.c_str());
            values.push_back(value.c_str());
        }
    }
};

Severity parse_severity(const std::string& text) {
    constexpr std::pair<const char*, Severity> names[]{{"verbose", Severity::verbose},
                                                       {"info", Severity::info},
                                                       {"warning", Severity::warning},
                                                       {"error", Severity::error}};
    for (const auto& [name, severity] : names) {
        if (text == name) {
            return severity;
        }
    }
    throw Error(Fault::usage, fmt::format("engine option log={} is unknown", text),
                "log takes verbose, info, warning or error");
}

}  // namespace

Settings parse_settings(const EngineOptions& options) {
    Settings settings;
    for (const auto& [key, value] : options.options) {
        if (key == "provider") {
            settings.provider = value;
        } else if (key == "custom_ops") {
            settings.custom_ops.push_back(value);
        } else if (key == "log") {
            settings.log_from = parse_severity(value);
        } else if (key.starts_with("config.") && key.size() > 7) {
            settings.config.emplace_back(key.substr(7), value);
        } else {
            settings.provider_options.emplace_back(key, value);
        }
    }
    if (short_name(settings.provider) == "cpu") {
        settings.provider = "CPUExecutionProvider";
    }
    if (settings.on_cpu() && !settings.provider_options.empty()) {
        throw Error(Fault::usage,
                    fmt::format("the engine onnxruntime has no option '{}'",
                                settings.provider_options.front().first),
                    "it takes provider=NAME and that provider's options, custom_ops=LIBRARY, "
                    "config.KEY=VALUE and log=LEVEL");
    }
    return settings;
}

void check_provider(const Library& library, const Settings& settings) {
    const auto there = library.providers();
    for (const auto& name : there) {
        if (short_name(name) == short_name(settings.provider)) {
            return;
        }
    }
    std::vector<std::string> names;
    for (const auto& name : there) {
        names.push_back(short_name(name));
    }
    throw Error(
        Fault::engine,
        fmt::format("ONNX Runtime {} at '{}' has no provider '{}' (it has: {})", library.version(),
                    library.path(), settings.provider, join(names, ", ")),
        "another build of ONNX Runtime may have it (onnxruntime-gpu has cuda and tensorrt); "
        "--engine onnxruntime:PATH,provider=NAME names it");
}

void append_to(const Library& library, SessionOptions* options, const Settings& settings) {
    for (const auto& path : settings.custom_ops) {
        library.check(library.api()(register_library, options, path.c_str()),
                      fmt::format("load custom ops from '{}'", path));
    }
    if (settings.on_cpu()) {
        return;
    }
    const auto& call = library.api();
    std::string provider;
    for (const auto& name : library.providers()) {
        if (short_name(name) == short_name(settings.provider)) {
            provider = name;
        }
    }
    const Arrays given(settings.provider_options);
    const auto what = fmt::format("use the provider '{}'", settings.provider);
    if (short_name(provider) == "cuda") {
        CudaOptions* cuda = nullptr;
        library.check(call(create_cuda_options, &cuda), what);
        const auto release = [&call](CudaOptions* p) { call(release_cuda_options, p); };
        const std::unique_ptr<CudaOptions, decltype(release)> owner(cuda, release);
        library.check(call(update_cuda_options, cuda, given.keys.data(), given.values.data(),
                           given.keys.size()),
                      what);
        library.check(call(append_cuda, options, cuda), what);
    } else if (short_name(provider) == "tensorrt") {
        TensorRtOptions* tensorrt = nullptr;
        library.check(call(create_tensorrt_options, &tensorrt), what);
        const auto release = [&call](TensorRtOptions* p) { call(release_tensorrt_options, p); };
        const std::unique_ptr<TensorRtOptions, decltype(release)> owner(tensorrt, release);
        library.check(call(update_tensorrt_options, tensorrt, given.keys.data(),
                           given.values.data(), given.keys.size()),
                      what);
        library.check(call(append_tensorrt, options, tensorrt), what);
    } else {
        library.check(call(append_provider, options, append_name(provider).c_str(),
                           given.keys.data(), given.values.data(), given.keys.size()),
                      what);
    }
}

}  // namespace trocar::ort
