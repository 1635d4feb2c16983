#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trocar/engine.h"
#include "util/statistics.h"

// What the benchmarks have in common.
namespace trocar {

inline double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

inline double median(std::vector<double> samples) {
    return spread(std::move(samples)).median;
}

// The ONNX Runtimes of a dependency folder, the newest first.
inline EngineOptions engines_in(const std::string& folder) {
    EngineOptions options;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().filename().string().starts_with("onnxruntime-")) {
            options.search.push_back(entry.path().string());
        }
    }
    std::sort(options.search.rbegin(), options.search.rend());
    return options;
}

// The newest of them, with one thread.
inline std::shared_ptr<Engine> newest_engine(const std::string& folder) {
    auto options = engines_in(folder);
    options.threads = 1;
    return open_engine(options);
}

// A line of a table: what was measured, against what, and whether the target is met.
inline void row(const std::string& what, const std::string& against, const std::string& measured,
                const std::string& target, bool met) {
    fmt::print("{:<58} {:<46} {:>16} {:>10}  {}\n", what, against, measured, target,
               met ? "met" : "MISSED");
    std::fflush(stdout);
}

// The body of a main(): what is thrown is said, and is exit code 70.
template <class F>
int run_bench(const char* name, const F& bench) {
    try {
        return bench();
    } catch (const std::exception& e) {
        fmt::print(stderr, "{}: {}\n", name, e.what());
        return 70;
    }
}

}  // namespace trocar
