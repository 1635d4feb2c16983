#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "trocar/engine.h"
#include "trocar/error.h"
#include "util/library_files.h"

namespace trocar {

// The shared library behind a kind of engine: what it is called, and where it lies.
struct EngineLibrary {
    const char* title;  // "ONNX Runtime"
    const char* stem;   // of the file's name, "libonnxruntime.so"
    std::string (*version_in)(const std::filesystem::path&);  // see LibrarySearch
    std::vector<std::string> below;  // patterns, from a folder that a user names
    std::string oldest;              // version that can be used
    const char* install_hint;
    bool only = false;   // that version alone can be used; nothing but `version_in` tells it
    bool system = true;  // it may be among the libraries of the system
};

// Every such library that `options` leads to, best first: that of `path` alone when given, else
// those of the search folders in order (in each the newest first), then those of the system. Each
// file once.
std::vector<LibraryFile> find_libraries(const EngineLibrary& library, const EngineOptions& options);

// What can be said of them, each in a copy of `blank`; one entry with `missing` when there is none.
// A library is loaded, for `version_of`, only where its name does not tell the version. `complete`
// adds what else can be seen of one that can be used.
std::vector<EngineInfo> find_engines(
    const EngineLibrary& library, const EngineOptions& options, const EngineInfo& blank,
    const std::function<std::string(const std::string& path)>& version_of,
    const std::function<void(EngineInfo&)>& complete = {});

// Throws Error(engine): nothing was found.
[[noreturn]] void throw_nothing_found(const EngineLibrary& library, const EngineOptions& options);

// Why a library of this version cannot be used, in a sentence; empty: it can.
std::string wrong_version(const EngineLibrary& library, const std::string& version);

// Those that are asked for, or as many as there are cores.
int thread_count(const EngineOptions& options);

// `blank` with what a loaded library tells.
template <class Library>
EngineInfo info_of(const Library& library, EngineInfo blank) {
    blank.available = true;
    blank.version = library.version();
    blank.path = library.path();
    return blank;
}

// What `load` makes of the first library (its path and version) that it does not refuse; where none
// can be used, its error for the first.
template <class Load>
auto load_first(const EngineLibrary& library, const EngineOptions& options, Load&& load) {
    const auto found = find_libraries(library, options);
    std::exception_ptr first;
    for (const auto& candidate : found) {
        try {
            return load(candidate);
        } catch (const Error& e) {
            if (options.log) {
                options.log(LogLevel::info, e.what());
            }
            first = first ? first : std::current_exception();
        }
    }
    if (first) {
        std::rethrow_exception(first);
    }
    throw_nothing_found(library, options);
}

}  // namespace trocar
