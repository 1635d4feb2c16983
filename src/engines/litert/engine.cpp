#include "trocar/engine.h"

#include "engines/litert/find.h"
#include "engines/litert/library.h"
#include "engines/litert/program.h"

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

std::vector<EngineInfo> find(const EngineOptions& options) {
    return find_engines(engine_library, options, blank_info(), {});
}

class LtEngine final : public Engine {
public:
    LtEngine(std::shared_ptr<Library> library, Settings settings, const EngineOptions& options)
        : compiler_{std::move(library), std::move(settings), thread_count(options)},
          info_(info_of(*compiler_.library, blank_info())) {}

    const EngineInfo& info() const override { return info_; }

    std::unique_ptr<Program> compile(const Model& model, const CompileOptions& options) override {
        return compile_program(compiler_, model, options);
    }

private:
    Compiler compiler_;
    EngineInfo info_;
};

std::shared_ptr<Engine> open(const EngineOptions& options) {
    auto settings = parse_settings(options);
    auto library = load_first(engine_library, options, [](const LibraryFile& found) {
        return Library::load(found.path, found.version);
    });
    return std::make_shared<LtEngine>(std::move(library), std::move(settings), options);
}

}  // namespace

extern const EngineKind litert_engine{
    .name = engine_name,
    .summary = "LiteRT (TensorFlow Lite), loaded from the wheel ai-edge-litert 2.3.0",
    .find = find,
    .open = open,
};

}  // namespace trocar
