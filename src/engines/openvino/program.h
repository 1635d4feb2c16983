#pragma once

#include <memory>

#include "engines/openvino/library.h"
#include "engines/openvino/settings.h"
#include "trocar/engine.h"

namespace trocar::ov {

// What a program is compiled with.
struct Compiler {
    std::shared_ptr<Library> library;
    Settings settings;
    int threads = 1;
};

// Throws Error(engine) when the engine refuses the model, Error(unsupported) where it would not
// compute what the model says.
std::unique_ptr<Program> compile_program(const Compiler& compiler, const Model& model,
                                         const CompileOptions& options);

}  // namespace trocar::ov
