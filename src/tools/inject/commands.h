#pragma once

#include "trocar/command.h"

namespace trocar::inject {

// What may follow `trocar inject`, a file each.
extern const Command plan_command;
extern const Command replay_command;
extern const Command report_command;
extern const Command merge_command;
extern const Command export_command;
extern const Command schema_command;

// `trocar inject` itself: runs a campaign.
std::function<Report(Context&)> bind_run(Args& args);

}  // namespace trocar::inject
