#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "trocar/engine.h"

// For tests that run on every engine of this build that is on this machine.
namespace trocar::testing {

// An engine in the dependency folder, the newest version of it, with one thread.
inline EngineOptions engine_options(const std::string& name) {
    EngineOptions options;
    options.name = name;
    options.threads = 1;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(TROCAR_SOURCE_DIR "/.deps", ignored)) {
        if (entry.path().filename().string().starts_with(name + "-")) {
            options.search.push_back(entry.path().string());
        }
    }
    std::sort(options.search.rbegin(), options.search.rend());
    return options;
}

inline EngineInfo engine_info(const std::string& name) {
    for (const auto* kind : engine_kinds()) {
        if (name == kind->name) {
            return kind->find(engine_options(name)).front();
        }
    }
    return {};
}

// The engines that are there.
inline std::vector<std::string> engine_names() {
    std::vector<std::string> names;
    for (const auto* kind : engine_kinds()) {
        if (engine_info(kind->name).available) {
            names.emplace_back(kind->name);
        }
    }
    return names;
}

// What an engine cannot run, and why.
struct Cannot {
    const char* engine;
    const char* test;  // without its suite
    const char* reason;
};

// Empty: the engine of a test "Name/engine" can run it.
inline std::string why_not(const std::string& engine, const std::string& test,
                           const std::vector<Cannot>& list) {
    for (const auto& entry : list) {
        if (engine == entry.engine && test.starts_with(std::string(entry.test) + "/")) {
            return entry.reason;
        }
    }
    return {};
}

}  // namespace trocar::testing
