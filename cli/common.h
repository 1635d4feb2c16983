#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/declarations.h"

namespace trocar::cli {

// The options that every command has.
struct Common {
    bool json = false;
    bool quiet = false;
    bool verbose = false;
    std::vector<std::string> reports;
    std::string colour = "auto";
    std::int64_t width = -1;  // -1: that of the terminal
    std::string engine;
    std::vector<std::string> engines;  // of a command that takes several
    std::int64_t threads = 0;
    std::string format;
    std::int64_t seed = 0;

    int verbosity() const { return quiet ? -1 : verbose ? 1 : 0; }
    // The context of a report will be seen by someone.
    bool wants_context() const { return json || verbose || !reports.empty(); }
};

void declare(Declarations& declarations, Common& common, bool several_engines);

// Throws Error(usage) where the values contradict one another or make no sense.
void check(const Common& common);

}  // namespace trocar::cli
