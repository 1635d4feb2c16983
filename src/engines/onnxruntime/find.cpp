#include "engines/onnxruntime/find.h"

#include <algorithm>

namespace trocar::ort {

namespace {

namespace fs = std::filesystem;

constexpr const char* stem = "libonnxruntime.so";

// "libonnxruntime.so.1.31.1" → "1.31.1"; empty unless the name has all three numbers.
std::string version_in(const fs::path& path) {
    const auto name = path.filename().string();
    if (!name.starts_with(stem) || name.size() <= std::string_view(stem).size()) {
        return {};
    }
    const auto version = name.substr(std::string_view(stem).size() + 1);
    const bool numbers = version.find_first_not_of("0123456789.") == std::string::npos;
    return numbers && std::count(version.begin(), version.end(), '.') == 2 ? version
                                                                           : std::string{};
}

// Where a library lies below a folder that a user names: an unpacked wheel or archive, a Python
// environment or its site-packages, an npm package, or a folder that holds several of these.
const std::vector<std::string> below{"",
                                     "lib",
                                     "lib64",
                                     "capi",
                                     "onnxruntime/capi",
                                     "*/onnxruntime/capi",
                                     "*/lib",
                                     "lib/python*/site-packages/onnxruntime/capi",
                                     "onnxruntime-node/bin/*/*/*",
                                     "node_modules/onnxruntime-node/bin/*/*/*",
                                     "bin/*/*/*"};

}  // namespace

bool older(const std::string& a, const std::string& b) {
    return older_version(a, b);
}

std::vector<Found> find_libraries(const EngineOptions& options) {
    LibrarySearch search(stem, version_in);
    if (!options.path.empty()) {
        std::error_code ignored;
        if (fs::is_directory(options.path, ignored)) {
            search.add_folder(options.path, below);
        } else {
            search.add_file(options.path);
        }
        return search.take();
    }
    for (const auto& folder : options.search) {
        search.add_folder(folder, below);
    }
    search.add_system();
    return search.take();
}

void check_elf(const fs::path& path) {
    check_library_file(path,
                       "`pip install onnxruntime` gives one for this machine; "
                       "--engine onnxruntime:PATH names another");
}

}  // namespace trocar::ort
