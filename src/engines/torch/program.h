#pragma once

#include <memory>

#include "engines/torch/bridge/bridge.h"
#include "trocar/engine.h"

namespace trocar::libtorch {

std::unique_ptr<Program> compile_program(const Bridge& bridge, const Model& model);

}  // namespace trocar::libtorch
