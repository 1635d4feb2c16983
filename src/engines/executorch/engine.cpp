#include "trocar/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "engines/executorch/find.h"
#include "engines/executorch/library.h"
#include "engines/executorch/program.h"
#include "trocar/error.h"

namespace trocar {

namespace {

using namespace executorch;  // NOLINT(google-build-using-namespace): this file is the unit's face

constexpr const char* engine_name = "executorch";

EngineInfo blank_info() {
    EngineInfo info;
    info.name = engine_name;
    info.can.dialects = {"aten"};
    info.can.providers = {"CPU"};
    info.can.kernel_times = true;
    return info;
}

std::string nothing_found(const EngineOptions& options) {
    return options.path.empty() ? "no ExecuTorch was found"
                                : fmt::format("there is no ExecuTorch at '{}'", options.path);
}

EngineInfo describe(const LibraryFile& found) {
    auto info = blank_info();
    info.path = found.path;
    info.version = found.version;
    try {
        check_library_file(found.path, install_hint);
        if (found.version != only_version) {
            throw Error(Fault::engine,
                        found.version.empty()
                            ? "its version is not known: the notes of its wheel are not beside it"
                            : fmt::format("ExecuTorch {} cannot be used: it has to be {}",
                                          found.version, only_version),
                        install_hint);
        }
        if (find_bridge().empty()) {
            throw Error(Fault::engine, no_bridge, bridge_hint);
        }
        info.available = true;
    } catch (const Error& e) {
        info.missing = e.what();
        info.hint = e.hint();
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

class EtEngine final : public Engine {
public:
    EtEngine(std::shared_ptr<Library> library, const EngineOptions& options)
        : library_(std::move(library)), info_(blank_info()) {
        info_.available = true;
        info_.version = library_->version();
        info_.path = library_->path();
        library_->use_threads(options.threads > 0 ? options.threads
                                                  : static_cast<int>(std::max(
                                                        1U, std::thread::hardware_concurrency())));
    }

    const EngineInfo& info() const override { return info_; }

    std::unique_ptr<Program> compile(const Model& model, const CompileOptions& options) override {
        return compile_program(library_, model, options);
    }

private:
    std::shared_ptr<Library> library_;
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
            return Library::load(candidate.path, candidate.version);
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
    if (!options.options.empty()) {
        throw Error(Fault::usage, fmt::format("the engine executorch has no option '{}'",
                                              options.options.front().first));
    }
    return std::make_shared<EtEngine>(load_first(options), options);
}

}  // namespace

extern const EngineKind executorch_engine{
    .name = engine_name,
    .summary = "ExecuTorch, loaded from the wheel executorch 1.5.1",
    .find = find,
    .open = open,
};

}  // namespace trocar
