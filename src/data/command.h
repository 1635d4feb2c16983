#pragma once

#include <string>
#include <string_view>

#include "trocar/value.h"

namespace trocar::data {

// Has /bin/sh run `command` with the value as .npy on its standard input, and reads its standard
// output as another. Its standard error is told where it fails. Throws Error(input).
Value run_command(const std::string& command, const Value& value, std::string_view where);

}  // namespace trocar::data
