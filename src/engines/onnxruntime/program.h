#pragma once

#include <filesystem>
#include <memory>

#include "engines/onnxruntime/settings.h"
#include "engines/onnxruntime/values.h"
#include "trocar/engine.h"

namespace trocar::ort {

// What a program is compiled with.
struct Compiler {
    std::shared_ptr<Environment> environment;
    std::shared_ptr<LogTarget> log;
    const Settings& settings;
    int threads;
    std::filesystem::path scratch = {};
};

// Files that the engine writes of its own. Empty: none.
struct SessionFiles {
    std::filesystem::path optimized_model = {};
};

// Throws Error(engine) when the engine refuses the model.
std::unique_ptr<Program> compile_program(const Compiler& compiler, const Model& model,
                                         const CompileOptions& options,
                                         const SessionFiles& files = {});

}  // namespace trocar::ort
