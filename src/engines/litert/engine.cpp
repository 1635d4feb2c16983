#include "trocar/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "engines/litert/find.h"
#include "engines/litert/library.h"
#include "engines/litert/program.h"
#include "trocar/error.h"

namespace trocar {

namespace {

using namespace litert;  // NOLINT(google-build-using-namespace): this file is the unit's face

constexpr const char* engine_name = "litert";

EngineInfo blank_info() {
    EngineInfo info;
    info.name = engine_name;
    info.can.dialects = {"tflite"};
    info.can.providers = {"CPU"};
    info.can.kernel_times = true;
    return info;
}

std::string nothing_found(const EngineOptions& options) {
    return options.path.empty() ? "no LiteRT was found"
                                : fmt::format("there is no LiteRT at '{}'", options.path);
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
                            : fmt::format("LiteRT {} cannot be used: it has to be {}",
                                          found.version, only_version));
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

class LtEngine final : public Engine {
public:
    LtEngine(std::shared_ptr<Library> library, Settings settings, const EngineOptions& options)
        : compiler_{std::move(library), std::move(settings),
                    options.threads > 0
                        ? options.threads
                        : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))} {
        info_ = blank_info();
        info_.available = true;
        info_.version = compiler_.library->version();
        info_.path = compiler_.library->path();
    }

    const EngineInfo& info() const override { return info_; }

    std::unique_ptr<Program> compile(const Model& model, const CompileOptions& options) override {
        return compile_program(compiler_, model, options);
    }

private:
    Compiler compiler_;
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
    auto settings = parse_settings(options);
    return std::make_shared<LtEngine>(load_first(options), std::move(settings), options);
}

}  // namespace

extern const EngineKind litert_engine{
    .name = engine_name,
    .summary = "LiteRT (TensorFlow Lite), loaded from the wheel ai-edge-litert 2.3.0",
    .find = find,
    .open = open,
};

}  // namespace trocar
