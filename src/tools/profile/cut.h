#pragma once

#include <string>

#include "trocar/model.h"
#include "trocar/selector.h"

namespace trocar::profiles {

// The ops after which layers end: those of `selector`, or where ops of one module, `modules` levels
// deep, give way to those of another; every op where neither is given. Throws Error(usage) with
// near matches when it chooses no op, unless `allow_empty`.
Selector find_cut(const Model& model, const std::string& selector, int modules, bool allow_empty);

}  // namespace trocar::profiles
