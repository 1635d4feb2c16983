#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "trocar/graph.h"

namespace trocar {

// Adds members that are not among `known` to metadata, each as its JSON: what this version does
// not know is kept.
void keep_unknown(const Json& object, std::initializer_list<std::string_view> known,
                  std::vector<Property>& metadata);

}  // namespace trocar
