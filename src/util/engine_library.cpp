#include "util/engine_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace trocar {

namespace {

std::string nothing_found(const EngineLibrary& library, const EngineOptions& options) {
    return options.path.empty()
               ? fmt::format("no {} was found", library.title)
               : fmt::format("there is no {} at '{}'", library.title, options.path);
}

}  // namespace

std::vector<LibraryFile> find_libraries(const EngineLibrary& library,
                                        const EngineOptions& options) {
    LibrarySearch search(library.stem, library.version_in);
    if (!options.path.empty()) {
        std::error_code ignored;
        if (std::filesystem::is_directory(options.path, ignored)) {
            search.add_folder(options.path, library.below);
        } else {
            search.add_file(options.path);
        }
        return search.take();
    }
    for (const auto& folder : options.search) {
        search.add_folder(folder, library.below);
    }
    if (library.system) {
        search.add_system();
    }
    return search.take();
}

std::vector<EngineInfo> find_engines(
    const EngineLibrary& library, const EngineOptions& options, const EngineInfo& blank,
    const std::function<std::string(const std::string& path)>& version_of,
    const std::function<void(EngineInfo&)>& complete) {
    std::vector<EngineInfo> result;
    for (const auto& found : find_libraries(library, options)) {
        auto& info = result.emplace_back(blank);
        info.path = found.path;
        try {
            info.version = found.version;
            check_library_file(found.path, library.install_hint);
            if (info.version.empty() && !library.only) {
                info.version = version_of(found.path);
            }
            if (const auto wrong = wrong_version(library, info.version); !wrong.empty()) {
                throw Error(Fault::engine, wrong);
            }
            if (complete) {
                complete(info);
            }
            info.available = true;
        } catch (const Error& e) {
            info.missing = e.what();
            info.hint = e.hint().empty() ? library.install_hint : e.hint();
        }
    }
    if (result.empty()) {
        auto& none = result.emplace_back(blank);
        none.missing = nothing_found(library, options);
        none.hint = library.install_hint;
    }
    return result;
}

std::string wrong_version(const EngineLibrary& library, const std::string& version) {
    if (library.only) {
        return version.empty()
                   ? "its version is not known: the notes of its wheel are not beside it"
               : version != library.oldest ? fmt::format("{} {} cannot be used: it has to be {}",
                                                         library.title, version, library.oldest)
                                           : "";
    }
    return older_version(version, library.oldest)
               ? fmt::format("{} {} is too old: {} or newer is needed", library.title, version,
                             library.oldest)
               : "";
}

int thread_count(const EngineOptions& options) {
    return options.threads > 0
               ? options.threads
               : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

void throw_nothing_found(const EngineLibrary& library, const EngineOptions& options) {
    throw Error(Fault::engine, nothing_found(library, options), library.install_hint);
}

}  // namespace trocar
