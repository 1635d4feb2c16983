#include "engines/openvino/find.h"

#include <fmt/format.h>

namespace trocar::ov {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view stem = "libopenvino_c.so";

// "libopenvino_c.so.2641" → "2026.4.1"; empty unless the name has these four digits.
std::string version_in(const fs::path& path) {
    const auto name = path.filename().string();
    if (!name.starts_with(stem) || name.size() != stem.size() + 5) {
        return {};
    }
    const auto digits = name.substr(stem.size() + 1);
    if (digits.find_first_not_of("0123456789") != std::string::npos) {
        return {};
    }
    return fmt::format("20{}.{}.{}", digits.substr(0, 2), digits[2], digits[3]);
}

}  // namespace

const EngineLibrary engine_library{
    .title = "OpenVINO",
    .stem = stem.data(),
    .version_in = version_in,
    // An unpacked wheel or archive, a Python environment or its site-packages, or a folder that
    // holds several of these.
    .below = {"", "lib", "lib64", "libs", "openvino/libs", "*/openvino/libs",
              "lib/python*/site-packages/openvino/libs", "runtime/lib/*", "*/runtime/lib/*"},
    .oldest = "2025.4",
    .install_hint = "pip install openvino, or --engine openvino:PATH",
};

}  // namespace trocar::ov
