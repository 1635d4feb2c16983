#include <array>

#include "tools/inject/commands.h"

namespace trocar {

namespace {

constexpr std::array<const Command*, 4> commands_of_inject{
    &inject::report_command,
    &inject::merge_command,
    &inject::export_command,
    &inject::schema_command,
};

}  // namespace

extern const Command inject_tool{
    .name = "inject",
    .summary = "Inject faults into a model and say what they did",
    .bind = nullptr,
    .commands = commands_of_inject,
};

}  // namespace trocar
