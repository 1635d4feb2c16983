#include "trocar/engine.h"

#include <mutex>

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

std::vector<EngineInfo> find(const EngineOptions& options) {
    return find_engines(engine_library, options, blank_info(),
                        [](const std::string& path) { return Library::load(path)->version(); });
}

class OrtEngine final : public Engine {
public:
    OrtEngine(std::shared_ptr<Library> library, Settings settings, const EngineOptions& options)
        : library_(std::move(library)),
          settings_(std::move(settings)),
          threads_(thread_count(options)),
          scratch_(options.scratch),
          log_(std::make_shared<LogTarget>(LogTarget{options.log, settings_.log_from})),
          info_(info_of(*library_, blank_info())) {
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

std::shared_ptr<Engine> open(const EngineOptions& options) {
    auto settings = parse_settings(options);
    auto library = load_first(engine_library, options,
                              [](const LibraryFile& found) { return Library::load(found.path); });
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
