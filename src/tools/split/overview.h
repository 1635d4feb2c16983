#pragma once

#include "trocar/lab.h"
#include "trocar/report.h"

namespace trocar {

// What a split gave: a table of all layers, with shapes, parameters and attributes.
Report split_report(const Chain& chain, const std::vector<Part>& parts, const Lab& lab);

// Writes the report into the lab: overview.txt and .json, layers.txt and .json.
void write_overview(const Lab& lab, const Report& report);

}  // namespace trocar
