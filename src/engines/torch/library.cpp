#include "engines/torch/library.h"

#include <fmt/format.h>

#include <mutex>

#include "engines/torch/find.h"
#include "trocar/error.h"
#include "util/c_library.h"
#include "util/library_files.h"

namespace trocar::libtorch {

const Bridge& load_bridge() {
    static std::mutex mutex;
    static const Bridge* loaded = nullptr;
    const std::lock_guard lock(mutex);
    if (loaded != nullptr) {
        return *loaded;
    }
    const auto path = bridge_path();
    if (path.empty()) {
        throw Error(Fault::engine, "this build has no bridge to PyTorch", build_hint);
    }
    check_library_file(path, build_hint);
    void* const library = c_library::open_library(path, [&](const std::string& why) {
        throw Error(Fault::engine, fmt::format("'{}' {}", path, why), build_hint);
    });
    const auto get =
        reinterpret_cast<BridgeFunction>(c_library::find_function(library, bridge_function));
    const auto* const bridge = get != nullptr ? get() : nullptr;
    if (bridge == nullptr || bridge->version != bridge_version) {
        throw Error(Fault::engine, fmt::format("'{}' is of another build of Trocar", path),
                    build_hint);
    }
    loaded = bridge;
    return *loaded;
}

}  // namespace trocar::libtorch
