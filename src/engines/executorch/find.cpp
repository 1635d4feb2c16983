#include "engines/executorch/find.h"

#include "util/bridge.h"

namespace trocar::executorch {

namespace {

namespace fs = std::filesystem;

std::string version_beside(const fs::path& library) {
    return wheel_version(library.parent_path().parent_path().parent_path(), "executorch");
}

}  // namespace

const EngineLibrary engine_library{
    .title = "ExecuTorch",
    .stem = "libexecutorch.so",
    .version_in = version_beside,
    .below = {"", "lib", "executorch/lib", "*/executorch/lib",
              "lib/python*/site-packages/executorch/lib"},
    .oldest = only_version,
    .install_hint = install_hint,
    .only = true,
    .system = false,
};

std::string bridge_path() {
    return find_bridge("trocar_executorch.so");
}

}  // namespace trocar::executorch
