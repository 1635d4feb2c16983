#pragma once

#include <string>

#include "trocar/command.h"
#include "trocar/graph_diff.h"

namespace trocar::diff {

struct ModelOptions {
    Tolerance tolerance;
    std::string ignore;  // words with commas between them
    bool names = false;
    std::size_t worst = 0;  // constants to show; 0: all
};

// What two models have that differs.
Report compare_models(const std::string& a, const std::string& b, const ModelOptions& options,
                      Context& context);

}  // namespace trocar::diff
