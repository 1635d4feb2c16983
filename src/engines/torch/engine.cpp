#include "trocar/engine.h"

#include <fmt/format.h>

#include <filesystem>

#include "engines/torch/find.h"
#include "engines/torch/library.h"
#include "engines/torch/program.h"
#include "trocar/error.h"
#include "util/engine_library.h"

namespace trocar {

namespace {

using namespace libtorch;  // NOLINT(google-build-using-namespace): this file is the unit's face

constexpr const char* engine_name = "torch";

EngineInfo blank_info() {
    EngineInfo info;
    info.name = engine_name;
    info.can.dialects = {"aten"};
    info.can.providers = {"CPU"};
    return info;
}

std::vector<EngineInfo> find(const EngineOptions& /*options*/) {
    auto info = blank_info();
    std::error_code ignored;
    info.path = torch_library();
    if (info.path.empty() || bridge_path().empty()) {
        info.path.clear();
        info.missing = "this build has no bridge to PyTorch";
        info.hint = build_hint;
    } else if (!std::filesystem::exists(info.path, ignored)) {
        info.missing = fmt::format("'{}' is not there any more", info.path);
        info.hint = build_hint;
    } else {
        info.version = torch_version();
        info.available = true;
    }
    return {info};
}

class TorchEngine final : public Engine {
public:
    explicit TorchEngine(const EngineOptions& options) : bridge_(load_bridge()) {
        info_ = blank_info();
        info_.available = true;
        info_.version = bridge_.torch_version;
        info_.path = torch_library();
        bridge_.set_threads(thread_count(options));
    }

    const EngineInfo& info() const override { return info_; }

    std::unique_ptr<Program> compile(const Model& model, const CompileOptions&) override {
        return compile_program(bridge_, model);
    }

private:
    const Bridge& bridge_;
    EngineInfo info_;
};

std::shared_ptr<Engine> open(const EngineOptions& options) {
    if (!options.options.empty()) {
        throw Error(Fault::usage, fmt::format("the engine torch has no option '{}'",
                                              options.options.front().first));
    }
    if (!options.path.empty() && options.path != torch_library()) {
        throw Error(Fault::usage, "the engine torch is the one that Trocar was built with",
                    build_hint);
    }
    return std::make_shared<TorchEngine>(options);
}

}  // namespace

extern const EngineKind torch_engine{
    .name = engine_name,
    .summary = "PyTorch, op by op: every op of aten, where Trocar was built with it",
    .find = find,
    .open = open,
};

}  // namespace trocar
