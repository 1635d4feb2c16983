#pragma once

#include "trocar/command.h"

namespace trocar {

extern const Command partition_run;

}  // namespace trocar
