#pragma once

#include <span>
#include <string>

#include "cli/terminal.h"
#include "trocar/command.h"

namespace trocar::cli {

// The whole command: takes what follows `trocar` on the command line, does it, and returns the exit
// code. Never throws.
int run(std::span<const std::string> arguments, std::span<const Command* const> tools,
        Console console);

}  // namespace trocar::cli
