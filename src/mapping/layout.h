#pragma once

#include "mapping/syntax.h"
#include "trocar/graph.h"

namespace trocar::mapping {

// Moves transposes down through ops that work in any layout, joins those that follow one another,
// and takes out those that do nothing. The graph computes the same.
void tidy_layout(Graph& graph, const Layout& layout);
std::size_t count_transposes(const Graph& graph, const Layout& layout);

}  // namespace trocar::mapping
