#pragma once

#include <memory>

#include "engines/litert/variant.h"
#include "trocar/engine.h"

namespace trocar::litert {

std::unique_ptr<Program> compile_program(const Compiler& compiler, const Model& model,
                                         const CompileOptions& options);

}  // namespace trocar::litert
