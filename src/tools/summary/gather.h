#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/summary/parameters.h"
#include "tools/summary/rows.h"
#include "tools/summary/scope.h"
#include "trocar/command.h"
#include "trocar/inputs.h"
#include "trocar/liveness.h"

namespace trocar::summary {

// What the user asked for.
struct Options {
    std::vector<std::string> models;
    InputSpec inputs;
    bool no_run = false;
    bool run_all = false;
    bool no_weights = false;
    bool flat = false;
    bool expand = false;
    bool configs = false;
    std::int64_t depth = 0;  // 0: as deep as fits
    std::int64_t top = 0;    // 0: all
    std::string sort = "order";
    std::string select;
};

// All there is to say about one model.
struct Summary {
    std::unique_ptr<Model> model;  // the rest refers to it
    std::unique_ptr<Scope> scope;
    Inventory inventory;
    std::vector<Zeros> zeros;
    Rows rows;
    Liveness memory;
    bool ran = false;
    bool interrupted = false;
    std::string shapes;  // where they come from, in words
    std::vector<std::string> notes;
    std::vector<std::string> warnings;
};

// Reads and runs a model. Throws Error on a file that cannot be read and on inputs that the user
// gave and that do not fit; an engine that is missing or fails is a warning.
Summary gather(Context& context, const std::string& path, const Options& options);

}  // namespace trocar::summary
