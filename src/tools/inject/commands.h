#pragma once

#include "trocar/command.h"

namespace trocar::inject {

// What may follow `trocar inject`, a file each.
extern const Command report_command;
extern const Command merge_command;
extern const Command export_command;
extern const Command schema_command;

}  // namespace trocar::inject
