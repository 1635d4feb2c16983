#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engines/onnxruntime/settings.h"
#include "engines/onnxruntime/values.h"
#include "trocar/engine.h"

namespace trocar::ort {

// A constant as the engine sees it: its own bytes, or a copy where they are not aligned to their
// type.
class SharedConstant {
public:
    SharedConstant(std::shared_ptr<Environment> environment, Constant constant);
    const OrtValue* get() const { return view_.get(); }
    const Constant& constant() const { return constant_; }

private:
    std::shared_ptr<Environment> environment_;
    Constant constant_;
    Value value_;
    Owned view_;  // last: goes first
};

// The constants of all live programs of an engine, each once, however many programs read it.
class SharedConstants {
public:
    std::shared_ptr<SharedConstant> share(const std::shared_ptr<Environment>& environment,
                                          const Constant& constant);

private:
    std::mutex mutex_;
    std::map<const std::byte*, std::weak_ptr<SharedConstant>> by_address_;  // protected by mutex_
    std::size_t sweep_at_ = 64;                                             // protected by mutex_
};

// What a program is compiled with.
struct Compiler {
    std::shared_ptr<Environment> environment;
    std::shared_ptr<LogTarget> log;
    const Settings& settings;
    int threads;
    SharedConstants& constants;
};

// Throws Error(engine) when the engine refuses the model.
std::unique_ptr<Program> compile_program(const Compiler& compiler, const Model& model,
                                         const CompileOptions& options);

}  // namespace trocar::ort
