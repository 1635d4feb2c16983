#include "engines/litert/find.h"

namespace trocar::litert {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view notes = "ai_edge_litert-";
constexpr std::string_view notes_end = ".dist-info";

// The wheel's notes lie beside the package: ai_edge_litert-2.3.0.dist-info.
std::string version_beside(const fs::path& library) {
    std::error_code failure;
    for (fs::directory_iterator at(library.parent_path().parent_path(), failure), end;
         !failure && at != end; at.increment(failure)) {
        const auto name = at->path().filename().string();
        if (name.starts_with(notes) && name.ends_with(notes_end) &&
            name.size() > notes.size() + notes_end.size()) {
            return name.substr(notes.size(), name.size() - notes.size() - notes_end.size());
        }
    }
    return {};
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
