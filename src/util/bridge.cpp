#include "util/bridge.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

namespace trocar {

namespace fs = std::filesystem;

std::string find_bridge(const std::string& name) {
    std::error_code failure;
    const auto program = fs::read_symlink("/proc/self/exe", failure);
    std::vector<fs::path> folders;
    if (!failure) {
        folders = {program.parent_path(), program.parent_path().parent_path() / "lib" / "trocar"};
    }
    // Where this code is: in libtrocar.so, whose program may be anywhere.
    Dl_info here;
    if (dladdr(reinterpret_cast<const void*>(&find_bridge), &here) != 0) {
        const auto folder = fs::path(here.dli_fname).parent_path();
        folders.push_back(folder);
        folders.push_back(folder / "trocar");
    }
    folders.emplace_back(TROCAR_BRIDGE_FOLDER);
    for (const auto& folder : folders) {
        if (!folder.empty() && fs::exists(folder / name, failure)) {
            return (folder / name).string();
        }
    }
    return {};
}

}  // namespace trocar
