#include <array>

#include "tools/lab/commands.h"

namespace trocar {

namespace {

constexpr std::array<const Command*, 1> lab_commands{&lab_run};

}  // namespace

extern const Command lab_tool{
    .name = "lab",
    .summary = "Run the layers that `trocar split` made, on any engine or device",
    .bind = nullptr,
    .commands = lab_commands,
};

}  // namespace trocar
