#include "engines/executorch/find.h"

namespace trocar::executorch {

namespace {

namespace fs = std::filesystem;

constexpr const char* bridge_name = "trocar_executorch.so";

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

std::string find_bridge() {
    std::error_code failure;
    const auto program = fs::read_symlink("/proc/self/exe", failure);
    std::vector<fs::path> folders;
    if (!failure) {
        folders = {program.parent_path(), program.parent_path().parent_path() / "lib" / "trocar"};
    }
    folders.emplace_back(TROCAR_BRIDGE_FOLDER);
    for (const auto& folder : folders) {
        if (!folder.empty() && fs::exists(folder / bridge_name, failure)) {
            return (folder / bridge_name).string();
        }
    }
    return {};
}

}  // namespace trocar::executorch
