#pragma once

#include <string>

#include "trocar/compare.h"
#include "trocar/report.h"

#pragma GCC visibility push(default)
namespace trocar {

struct ComparisonView {
    bool worst_first = false;
    std::size_t most = 0;   // rows; 0: all
    bool only_bad = false;  // nothing that passes
};

// Tables and verdict. The context is for the caller to fill.
Report comparison_report(const Comparison& comparison, const ComparisonView& view);

// The error along the network, a line for each side and mode; and below it the worst tensors as a
// map of layers and sides. SVG.
std::string comparison_plot(const Comparison& comparison);

}  // namespace trocar
#pragma GCC visibility pop
