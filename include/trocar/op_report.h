#pragma once

#include <string>
#include <vector>

#include "trocar/op_predict.h"
#include "trocar/op_store.h"

#pragma GCC visibility push(default)
namespace trocar {

// Pictures (SVG).
std::string explanation_plot(const Explanation& explanation);  // the operators beside the whole
std::string prediction_plot(const OpEvaluation& evaluation);   // against what was measured
std::string roofline_plot(const std::vector<OpSample>& samples, const OpPeaks& peaks);

}  // namespace trocar
#pragma GCC visibility pop
