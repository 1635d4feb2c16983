#include "engines/executorch/find.h"

namespace trocar::executorch {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view notes = "executorch-";
constexpr std::string_view notes_end = ".dist-info";
constexpr const char* bridge_name = "trocar_executorch.so";

// The wheel's notes lie beside the package: executorch-1.5.1.dist-info.
std::string version_beside(const fs::path& library) {
    std::error_code failure;
    const auto packages = library.parent_path().parent_path().parent_path();
    for (fs::directory_iterator at(packages, failure), end; !failure && at != end;
         at.increment(failure)) {
        const auto name = at->path().filename().string();
        if (name.starts_with(notes) && name.ends_with(notes_end) &&
            name.size() > notes.size() + notes_end.size()) {
            return name.substr(notes.size(), name.size() - notes.size() - notes_end.size());
        }
    }
    return {};
}

const std::vector<std::string> below{"", "lib", "executorch/lib", "*/executorch/lib",
                                     "lib/python*/site-packages/executorch/lib"};

}  // namespace

std::vector<LibraryFile> find_libraries(const EngineOptions& options) {
    LibrarySearch search("libexecutorch.so", version_beside);
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
    return search.take();
}

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
