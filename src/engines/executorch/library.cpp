#include "engines/executorch/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <mutex>

#include "engines/executorch/find.h"
#include "trocar/error.h"

namespace trocar::executorch {

namespace {

namespace fs = std::filesystem;

// Its libraries bring a flatbuffers of their own, of another version than ours: they must not find
// our functions first. Address sanitizers do not allow that.
#if defined(__SANITIZE_ADDRESS__)
constexpr int own_symbols = 0;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr int own_symbols = 0;
#else
constexpr int own_symbols = RTLD_DEEPBIND;
#endif
#else
constexpr int own_symbols = RTLD_DEEPBIND;
#endif

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw Error(Fault::engine, fmt::format("'{}' {}", path, why), install_hint);
}

void* open_one(const fs::path& path) {
    check_library_file(path, install_hint);
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | own_symbols);
    if (handle == nullptr) {
        const char* reason = ::dlerror();
        refuse(path.string(),
               fmt::format("cannot be loaded: {}", reason != nullptr ? reason : "unknown reason"));
    }
    return handle;
}

const Bridge* open_bridge(const fs::path& library) {
    const auto path = bridge_path();
    if (path.empty()) {
        throw Error(Fault::engine, no_bridge, bridge_hint);
    }
    // In this order: the bridge and the kernels find the runtime by its name, as it is loaded.
    open_one(library);
    open_one(library.parent_path() / "libexecutorch_threadpool.so");
    void* handle = open_one(path);
    const auto get = reinterpret_cast<BridgeFunction>(::dlsym(handle, bridge_function));
    const auto* bridge = get != nullptr ? get() : nullptr;
    if (bridge == nullptr || bridge->version != bridge_version) {
        throw Error(Fault::engine, fmt::format("'{}' is of another build of Trocar", path),
                    bridge_hint);
    }
    open_one(library.parent_path() / "libexecutorch_kernels_optimized.so");
    for (const auto* more :
         {"libexecutorch_kernels_quantized.so", "libexecutorch_backend_xnnpack.so"}) {
        std::error_code ignored;
        if (fs::exists(library.parent_path() / more, ignored)) {
            open_one(library.parent_path() / more);
        }
    }
    return bridge;
}

}  // namespace

std::shared_ptr<Library> Library::load(const std::string& path, const std::string& version) {
    // Never destroyed: programs may outlive static objects.
    static auto& mutex = *new std::mutex;
    static auto& loaded = *new std::shared_ptr<Library>;

    std::error_code failure;
    const auto canonical = fs::canonical(path, failure).string();
    if (failure) {
        throw Error(Fault::engine, fmt::format("there is no ExecuTorch at '{}'", path),
                    install_hint);
    }
    if (version != only_version) {
        refuse(canonical,
               version.empty()
                   ? fmt::format("is an ExecuTorch whose version is not known, as the notes of "
                                 "its wheel are not beside it; only {} can be used",
                                 only_version)
                   : fmt::format("is ExecuTorch {}; only {} can be used", version, only_version));
    }
    const std::lock_guard lock(mutex);
    if (loaded != nullptr && loaded->path() != canonical) {
        refuse(canonical, fmt::format("cannot be loaded beside '{}'", loaded->path()));
    }
    if (loaded == nullptr) {
        loaded.reset(new Library(canonical, version, open_bridge(canonical)));
    }
    return loaded;
}

void Library::use_threads(int count) {
    if (threads_ != count) {
        bridge_->set_threads(static_cast<unsigned>(count));
        threads_ = count;
    }
}

}  // namespace trocar::executorch
