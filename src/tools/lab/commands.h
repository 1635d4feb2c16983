#pragma once

#include "trocar/command.h"

namespace trocar {

extern const Command lab_run;

}  // namespace trocar
