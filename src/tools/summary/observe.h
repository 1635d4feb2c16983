#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/summary/scope.h"
#include "trocar/engine.h"
#include "trocar/value.h"

namespace trocar::summary {

struct ObserveHooks {
    std::function<void(std::size_t done, std::size_t total)> progress;
    std::function<bool()> interrupted;
    std::function<void(const std::string&)> doing;  // before each op that is run
    bool run_all = false;  // also ops whose shapes an equal op has shown already
};

// Runs the model once, op by op, and puts the shapes and dtypes it sees into `scope`; of a branch
// those of the one taken, of a loop those of its first iteration. Ops that cannot run are noted in
// Scope::failures, and the run goes on without them. Throws Error(input) on inputs that do not
// fit, Error(interrupted) when the hook says so; what was seen by then is in `scope`.
void observe(Scope& scope, const Model& model, const std::shared_ptr<Engine>& engine,
             const std::vector<NamedValue>& inputs, const ObserveHooks& hooks);

}  // namespace trocar::summary
