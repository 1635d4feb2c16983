#include <array>

#include "tools/ops/commands.h"

namespace trocar {

namespace {

constexpr std::array<const Command*, 10> ops_commands{
    &ops_measure, &ops_explain, &ops_next,   &ops_predict, &ops_evaluate,
    &ops_list,    &ops_show,    &ops_export, &ops_merge,   &ops_verify};

}  // namespace

extern const Command ops_tool{
    .name = "ops",
    .summary = "Time and energy of single operators, and what of a whole model they explain",
    .bind = nullptr,
    .commands = ops_commands,
};

}  // namespace trocar
