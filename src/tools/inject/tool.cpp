#include <array>

#include "tools/inject/commands.h"

namespace trocar {

namespace {

constexpr std::array<const Command*, 6> commands_of_inject{
    &inject::plan_command,  &inject::replay_command, &inject::report_command,
    &inject::merge_command, &inject::export_command, &inject::schema_command,
};

}  // namespace

extern const Command inject_tool{
    .name = "inject",
    .summary = "Inject faults into a model and say what they did",
    .bind = inject::bind_run,
    .commands = commands_of_inject,
};

}  // namespace trocar
