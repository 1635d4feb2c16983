#pragma once

#include <string>

namespace trocar {

// A library of Trocar's own that an engine opens at run time: beside the program, where it is
// installed, or where it was built. Empty: it is nowhere.
std::string find_bridge(const std::string& name);

}  // namespace trocar
