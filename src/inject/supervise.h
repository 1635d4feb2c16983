#pragma once

#include <memory>
#include <set>

#include "inject/injector.h"
#include "inject/patience.h"

namespace trocar::inject {

class Process;

// Has the work of an injector done in child processes, and finds the trials that they do not
// survive. A child is forked from this process: the engine is there already, so that a new one is
// soon made, but not its threads, if it has some. Trials that were under way when a child ended are
// run again by brute force, one by one: that says what came of each, whatever they were run with.
class Supervisor {
public:
    explicit Supervisor(Injector& injector);
    ~Supervisor();

    // Does a child have the golden bits of its parent? An engine that needs its threads does not
    // live on in one.
    bool rehearse();
    // As of an injector, with outcomes for trials that crash or hang. Throws Error(engine) when
    // the engine does not survive what has no fault.
    bool work(const Share& share, Sink& sink);
    TrialResult replay(const Trial& trial, std::uint64_t input, std::vector<LayerEffect>& effects);

    const Saved& saved() const { return saved_; }
    void forget_saved() { saved_ = {}; }

private:
    struct Ended;
    class Filter;

    void renew(std::unique_ptr<Process>& process, bool quiet);
    Ended listen(Process& process, const Share& share, Filter& filter);
    bool work_together(const Share& share, Filter& filter, std::vector<std::uint64_t>& suspects);
    bool work_alone(const Share& share, Filter& filter, const std::vector<std::uint64_t>& suspects);

    Injector& injector_;
    Patience patience_;                  // with one trial
    std::unique_ptr<Process> together_;  // runs trials as they come
    std::unique_ptr<Process> alone_;     // runs those that may not end well
    std::set<std::uint64_t> dangerous_;  // crashed or hung with an earlier input
    Saved saved_;
};

}  // namespace trocar::inject
