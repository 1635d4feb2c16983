#pragma once

#include <span>
#include <string>

#include "cli/declarations.h"

namespace trocar::cli {

// Sets the variables of `declarations` from the arguments that follow the command's name. An option
// that is given twice and does not repeat takes the last value. Throws Error(usage).
void parse(const std::string& command, const Declarations& declarations,
           std::span<const std::string> arguments);

}  // namespace trocar::cli
