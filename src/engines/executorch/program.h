#pragma once

#include <memory>

#include "engines/executorch/library.h"
#include "trocar/engine.h"

namespace trocar::executorch {

// Throws Error(engine), Error(unsupported).
std::unique_ptr<Program> compile_program(std::shared_ptr<Library> library, const Model& model,
                                         const CompileOptions& options);

}  // namespace trocar::executorch
