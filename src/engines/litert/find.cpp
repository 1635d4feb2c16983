#include "engines/litert/find.h"

namespace trocar::litert {

namespace {

std::string version_beside(const std::filesystem::path& library) {
    return wheel_version(library.parent_path().parent_path(), "ai_edge_litert");
}

}  // namespace

const EngineLibrary engine_library{
    .title = "LiteRT",
    .stem = "libLiteRt.so",
    .version_in = version_beside,
    .below = {"", "ai_edge_litert", "*/ai_edge_litert", "lib/python*/site-packages/ai_edge_litert"},
    .oldest = only_version,
    .install_hint = install_hint,
    .only = true,
    .system = false,
};

}  // namespace trocar::litert
