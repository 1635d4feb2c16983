#pragma once

#include <map>
#include <memory>
#include <string>

#include "ops/load.h"
#include "run/isolate.h"

namespace trocar::ops {

// What is asked of the process that measures, and what it answers.
struct WindowsRequest {
    static constexpr std::int64_t whole = -1;
    std::int64_t op = whole;  // place in OpModelFacts::ops
    CacheMode mode = CacheMode::reuse;
    double seconds = 0;  // of one window
    std::size_t count = 0;
};
struct WindowsAnswer {
    std::vector<OpWindow> windows;
    std::size_t operators = 1;
    // What the calls cost beside the op, at the time: of one operator.
    double call_ns = 0;
};

// A model, an engine and its operators in a process of its own, that an op may crash or hang.
class Worker {
public:
    // Keeps what it is given by reference.
    Worker(const Model& model, const std::vector<NamedValue>& inputs,
           const MeasureOptions& options);
    ~Worker();

    const std::string& version() const { return version_; }
    const CallCost& cost() const { return cost_; }
    // An op that crashes or hangs is left out, and says so. Throws Error(engine).
    std::vector<ModelOp> survey();
    // Throws Error(unsupported) where the mode does not apply, Error(engine) where it failed;
    // `end()` tells whether the process lives.
    WindowsAnswer windows(const WindowsRequest& request);
    // Why there are no joules; empty: there are. The idle power is measured before the first one.
    const std::string& no_energy() const { return no_energy_; }
    // Of calls for as long as the counter needs.
    OpEnergy energy(std::int64_t op, CacheMode mode);
    Isolated::End end() const { return process_->end(); }
    bool alive() const { return process_->alive(); }
    void restart() { start(); }  // after it ended

private:
    void start();
    std::string ask(const std::string& request);
    const Model& model_;
    const std::vector<NamedValue>& inputs_;
    const MeasureOptions& options_;
    std::map<std::size_t, std::string> skip_;  // parts that the process does not survive
    std::shared_ptr<std::size_t> doing_;       // shared with it: the part that it is at
    std::unique_ptr<Isolated> process_;
    std::string version_;
    CallCost cost_;
    std::string no_energy_;
};

}  // namespace trocar::ops
