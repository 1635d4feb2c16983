#pragma once

#include <vector>

#include "cli/verbs.h"

namespace trocar::cli {

// The commands that are about trocar itself: engines, formats, tools, version, help, completion,
// man.
std::vector<Verb> builtin_verbs();

}  // namespace trocar::cli
