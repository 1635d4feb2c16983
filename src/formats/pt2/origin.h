#pragma once

#include <string_view>

#include "trocar/graph.h"

namespace trocar::pt2 {

// Where an op comes from. `modules` is what torch calls nn_module_stack: "key,path,type" from
// outside in, with semicolons between; `trace` a stack trace as Python prints it. Both may be
// empty.
Origin read_origin(std::string_view modules, std::string_view trace);

}  // namespace trocar::pt2
