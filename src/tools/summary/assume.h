#pragma once

#include <string>
#include <vector>

#include "tools/summary/scope.h"
#include "trocar/value.h"

namespace trocar::summary {

// Without a run: puts the sizes that inputs have in the place of the symbols in declared types, as
// far as these are symbols or expressions of them. Returns what was put in: "s77=1", each once.
std::vector<std::string> assume_sizes(Scope& scope, const std::vector<NamedValue>& inputs);

}  // namespace trocar::summary
