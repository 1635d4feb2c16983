#pragma once

#include "trocar/graph.h"

namespace trocar::inject {

// Moves the constants that stand in bodies of If, Loop and Scan out of them: each becomes a
// constant of `graph` that the body reads from outside, under the name OP.ATTRIBUTE.NAME, so that
// it can be changed like others. Those that a body gives out as they are stay where they are, for a
// body must not give out what is not its own.
void lift_constants(Graph& graph);

}  // namespace trocar::inject
