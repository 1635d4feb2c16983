#include "trocar/engine.h"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <thread>

#include "engines/onnxruntime/deployed.h"
#include "engines/onnxruntime/find.h"
#include "engines/onnxruntime/library.h"
#include "engines/onnxruntime/program.h"
#include "engines/onnxruntime/settings.h"
#include "trocar/error.h"

namespace trocar {

namespace {

using namespace ort;  // NOLINT(google-build-using-namespace): this file is the unit's face

constexpr const char* engine_name = "onnxruntime";
constexpr const char* install_hint = "pip install onnxruntime, or --engine onnxruntime:PATH";

EngineInfo blank_info() {
    EngineInfo info;
    info.name = engine_name;
    info.can.dialects = {"onnx"};
    info.can.deterministic = true;
    info.can.deployed = true;
    info.can.kernel_times = true;
    info.can.host_calls = true;
    return info;
}

std::string nothing_found(const EngineOptions& options) {
    return options.path.empty() ? "no ONNX Runtime was found"
                                : fmt::format("there is no ONNX Runtime at '{}'", options.path);
}

// What can be said of a library; it is loaded only where its name does not tell the version.
EngineInfo describe(const Found& found) {
    auto info = blank_info();
    info.path = found.path;
    try {
        info.version = found.version;
        check_elf(found.path);
        if (info.version.empty()) {
            info.version = Library::load(found.path)->version();
        }
        const auto oldest = fmt::format("1.{}", base_version);
        if (older(info.version, oldest)) {
            throw Error(Fault::engine,
                        fmt::format("ONNX Runtime {} is too old: {} or newer is needed",
                                    info.version, oldest));
        }
        info.available = true;
    } catch (const Error& e) {
        info.missing = e.what();
        info.hint = install_hint;
    }
    return info;
}

std::vector<EngineInfo> find(const EngineOptions& options) {
    std::vector<EngineInfo> result;
    for (const auto& found : find_libraries(options)) {
        result.push_back(describe(found));
    }
    if (result.empty()) {
        auto& none = result.emplace_back(blank_info());
        none.missing = nothing_found(options);
        none.hint = install_hint;
    }
    return result;
}

class OrtEngine final : public Engine {
public:
    OrtEngine(std::shared_ptr<Library> library, Settings settings, const EngineOptions& options)
        : library_(std::move(library)),
          settings_(std::move(settings)),
          threads_(options.threads > 0
                       ? options.threads
                       : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))),
          scratch_(options.scratch),
          log_(std::make_shared<LogTarget>(LogTarget{options.log, settings_.log_from})) {
        info_ = blank_info();
        info_.available = true;
        info_.version = library_->version();
        info_.path = library_->path();
        info_.can.providers = library_->providers();
    }

    const EngineInfo& info() const override { return info_; }

    std::unique_ptr<Program> compile(const Model& model, const CompileOptions& options) override {
        return compile_program(compiler(), model, options);
    }

    Model deployed(const Model& model) override { return deployed_model(compiler(), model); }

private:
    Compiler compiler() { return {environment(), log_, settings_, threads_, scratch_}; }

    // Started with the first program, so that a process can be forked off before.
    std::shared_ptr<Environment> environment() {
        const std::lock_guard lock(mutex_);
        if (environment_ == nullptr) {
            environment_ = Environment::acquire(library_, threads_, log_);
        }
        environment_->check_use(threads_);
        return environment_;
    }

    std::shared_ptr<Library> library_;
    Settings settings_;
    int threads_;
    std::filesystem::path scratch_;
    std::shared_ptr<LogTarget> log_;
    std::mutex mutex_;
    std::shared_ptr<Environment> environment_;  // protected by mutex_
    EngineInfo info_;
};

// The first library found that can be used; where none can, why the first cannot.
std::shared_ptr<Library> load_first(const EngineOptions& options) {
    const auto found = find_libraries(options);
    if (found.empty()) {
        throw Error(Fault::engine, nothing_found(options), install_hint);
    }
    std::exception_ptr first;
    for (const auto& candidate : found) {
        try {
            return Library::load(candidate.path);
        } catch (const Error& e) {
            if (options.log) {
                options.log(LogLevel::info, e.what());
            }
            first = first ? first : std::current_exception();
        }
    }
    std::rethrow_exception(first);
}

std::shared_ptr<Engine> open(const EngineOptions& options) {
    auto settings = parse_settings(options);
    auto library = load_first(options);
    check_provider(*library, settings);
    return std::make_shared<OrtEngine>(std::move(library), std::move(settings), options);
}

}  // namespace

extern const EngineKind onnxruntime_engine{
    .name = engine_name,
    .summary = "ONNX Runtime, loaded from a libonnxruntime.so of version 1.19 or newer",
    .find = find,
    .open = open,
};

}  // namespace trocar
