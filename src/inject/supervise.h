#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/fork_server.h"
#include "inject/injector.h"
#include "inject/patience.h"

namespace trocar::inject {

class CampaignChild;

// Has the work of an injector done in child processes, and finds the trials that they do not
// survive. A child is forked from this process where the engine lives on in one: the engine is
// there already, so that a new one is soon made. Where it does not, for its threads are not there,
// the fork server makes the child, which starts an engine of its own. Trials that were under way
// when a child ended are run again by brute force, one by one: that says what came of each,
// whatever they were run with.
class Supervisor {
public:
    explicit Supervisor(Injector& injector);
    ~Supervisor();

    // Does a child have the golden bits of its parent, also of ops that it compiles itself?
    bool rehearse();
    // Why it has not, where the engine says.
    const std::string& why_not() const { return why_not_; }
    // As of an injector, with outcomes for trials that crash or hang. Throws Error(engine) when
    // the engine does not survive what has no fault.
    bool work(const Share& share, Sink& sink);
    TrialResult replay(const Trial& trial, std::uint64_t input, std::vector<LayerEffect>& effects);

    const Saved& saved() const { return saved_; }
    void forget_saved() { saved_ = {}; }

private:
    struct Ended;
    class Filter;

    bool renew(std::unique_ptr<CampaignChild>& child, bool quiet,
               const std::function<bool()>& stop);
    Ended listen(CampaignChild& child, const Share& share, Filter& filter);
    bool runs_golden(CampaignChild& child, bool all);
    bool works_without_faults();
    bool work_together(const Share& share, Filter& filter, std::vector<std::uint64_t>& suspects);
    bool work_alone(const Share& share, Filter& filter, const std::vector<std::uint64_t>& suspects);

    Injector& injector_;
    ForkServer* server_ = nullptr;             // makes the children; nullptr: this process does
    Patience patience_;                        // with one trial
    std::unique_ptr<CampaignChild> together_;  // runs trials as they come
    std::unique_ptr<CampaignChild> alone_;     // runs those that may not end well
    std::set<std::uint64_t> dangerous_;        // crashed or hung with an earlier input
    bool proven_ = false;                      // children survive what has no fault
    std::string given_;                        // faults of a trial that is not drawn
    std::string why_not_;
    Saved saved_;
};

}  // namespace trocar::inject
