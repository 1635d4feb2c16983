#pragma once

#include <span>

#include "tools/summary/gather.h"
#include "trocar/report.h"

namespace trocar::summary {

// The parts of a report, each from the facts alone.

Section model_section(const Summary& summary);
Section parameter_section(const Summary& summary);
Section compute_section(const Summary& summary);
Section memory_section(const Summary& summary);

Table op_table(const Summary& summary);                             // every op, for programs
Table layer_table(const Summary& summary, const Options& options);  // for people
Table type_table(const Summary& summary);  // MACs and parameters by op type
Table uncounted_table(const Summary& summary);

// Distinct configurations of layers over several models, with how often each occurs.
Table config_table(std::span<const Summary> summaries, const Options& options);

// 0 of nothing.
double ratio(std::uint64_t part, std::uint64_t whole);

}  // namespace trocar::summary
