#include "trocar/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "engines/openvino/find.h"
#include "engines/openvino/library.h"
#include "engines/openvino/program.h"
#include "engines/openvino/settings.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

using namespace ov;  // NOLINT(google-build-using-namespace): this file is the unit's face

constexpr const char* engine_name = "openvino";

EngineInfo blank_info() {
    EngineInfo info;
    info.name = engine_name;
    info.can.dialects = {"onnx"};
    info.can.kernel_times = true;
    return info;
}

// The devices whose plugins lie beside the library. Whether such a device is there shows when a
// program is compiled for it.
std::vector<std::string> devices_beside(const std::filesystem::path& library) {
    constexpr std::string_view suffix = "_plugin.so";
    std::vector<std::string> devices;
    std::error_code failure;
    for (std::filesystem::directory_iterator at(library.parent_path(), failure), end;
         !failure && at != end; at.increment(failure)) {
        auto name = at->path().filename().string();
        if (!name.starts_with("libopenvino_") || !name.ends_with(suffix)) {
            continue;
        }
        name.resize(name.size() - suffix.size());
        for (const char* device : {"CPU", "GPU", "NPU", "AUTO"}) {
            auto ending = fmt::format("_{}", device);
            std::transform(ending.begin(), ending.end(), ending.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
            if (name.ends_with(ending)) {
                devices.emplace_back(device);
            }
        }
    }
    std::sort(devices.begin(), devices.end());
    return devices;
}

std::vector<EngineInfo> find(const EngineOptions& options) {
    return find_engines(
        engine_library, options, blank_info(),
        [](const std::string& path) { return Library::load(path)->version(); },
        [](EngineInfo& info) { info.can.providers = devices_beside(info.path); });
}

class OvEngine final : public Engine {
public:
    OvEngine(std::shared_ptr<Library> library, Settings settings, const EngineOptions& options)
        : compiler_{std::move(library), std::move(settings), thread_count(options)},
          info_(info_of(*compiler_.library, blank_info())),
          log_(options.log) {
        info_.can.providers = devices_beside(info_.path);
        check_device();
    }

    const EngineInfo& info() const override { return info_; }

    std::unique_ptr<Program> compile(const Model& model, const CompileOptions& options) override {
        if (options.optimize == CompileOptions::Optimize::none && model.graph.op_count() > 1 &&
            log_ && !said_.exchange(true)) {
            log_(LogLevel::warning,
                 "OpenVINO cannot be told to leave ops as they are: it optimises all the same");
        }
        return compile_program(compiler_, model, options);
    }

private:
    // "GPU.1" is a device of the plugin GPU.
    void check_device() const {
        const auto& wanted = compiler_.settings.device;
        const auto plugin = wanted.substr(0, wanted.find_first_of(".:"));
        const auto& there = info_.can.providers;
        if (std::find(there.begin(), there.end(), plugin) == there.end()) {
            throw Error(Fault::engine,
                        fmt::format("OpenVINO {} at '{}' has no device '{}' (it has: {})",
                                    info_.version, info_.path, wanted, join(there, ", ")),
                        "another build of OpenVINO may have it; --engine "
                        "openvino:PATH,device=NAME names it");
        }
    }

    Compiler compiler_;
    EngineInfo info_;
    Log log_;
    std::atomic<bool> said_ = false;
};

std::shared_ptr<Engine> open(const EngineOptions& options) {
    auto settings = parse_settings(options);
    return std::make_shared<OvEngine>(
        load_first(engine_library, options,
                   [](const LibraryFile& found) { return Library::load(found.path); }),
        std::move(settings), options);
}

}  // namespace

extern const EngineKind openvino_engine{
    .name = engine_name,
    .summary = "OpenVINO, loaded from a libopenvino_c.so of version 2025.4 or newer",
    .find = find,
    .open = open,
};

}  // namespace trocar
