#include "trocar/engine.h"

#include <fmt/format.h>

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

std::vector<EngineInfo> find(const EngineOptions& options) {
    return find_engines(engine_library, options, blank_info(), {}, [](EngineInfo&) {
        if (bridge_path().empty()) {
            throw Error(Fault::engine, no_bridge, bridge_hint);
        }
    });
}

class EtEngine final : public Engine {
public:
    EtEngine(std::shared_ptr<Library> library, const EngineOptions& options)
        : library_(std::move(library)), info_(info_of(*library_, blank_info())) {
        library_->use_threads(thread_count(options));
    }

    const EngineInfo& info() const override { return info_; }

    std::unique_ptr<Program> compile(const Model& model, const CompileOptions& options) override {
        return compile_program(library_, model, options);
    }

private:
    std::shared_ptr<Library> library_;
    EngineInfo info_;
};

std::shared_ptr<Engine> open(const EngineOptions& options) {
    if (!options.options.empty()) {
        throw Error(Fault::usage, fmt::format("the engine executorch has no option '{}'",
                                              options.options.front().first));
    }
    auto library = load_first(engine_library, options, [](const LibraryFile& found) {
        return Library::load(found.path, found.version);
    });
    return std::make_shared<EtEngine>(std::move(library), options);
}

}  // namespace

extern const EngineKind executorch_engine{
    .name = engine_name,
    .summary = "ExecuTorch, loaded from the wheel executorch 1.5.1",
    .find = find,
    .open = open,
};

}  // namespace trocar
