#include "engines/onnxruntime/find.h"

#include <fmt/format.h>

#include <algorithm>

#include "engines/onnxruntime/ort_api.h"

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

}  // namespace

const EngineLibrary engine_library{
    .title = "ONNX Runtime",
    .stem = stem,
    .version_in = version_in,
    // An unpacked wheel or archive, a Python environment or its site-packages, an npm package, or a
    // folder that holds several of these.
    .below = {"", "lib", "lib64", "capi", "onnxruntime/capi", "*/onnxruntime/capi", "*/lib",
              "lib/python*/site-packages/onnxruntime/capi", "onnxruntime-node/bin/*/*/*",
              "node_modules/onnxruntime-node/bin/*/*/*", "bin/*/*/*"},
    .oldest = fmt::format("1.{}", base_version),
    .install_hint = "pip install onnxruntime, or --engine onnxruntime:PATH",
};

void check_elf(const fs::path& path) {
    check_library_file(path,
                       "`pip install onnxruntime` gives one for this machine; "
                       "--engine onnxruntime:PATH names another");
}

}  // namespace trocar::ort
