#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/ports.h"
#include "run/sites.h"
#include "run/taps.h"
#include "trocar/deployed.h"
#include "trocar/session.h"

namespace trocar {

// The tools of a session: the sites that their selectors chose, lowered as taps and cuts.
class Instruments {
public:
    // Throws Error(unsupported) where a port cannot be lowered as asked, and Error(usage) on
    // options that do not go together. `main_as_cuts`: no taps in the model's own graph.
    Instruments(const Model& model, Engine& engine, const SessionOptions& options,
                bool main_as_cuts = false);
    Instruments(const Instruments&) = delete;
    Instruments& operator=(const Instruments&) = delete;

    // What programs are to be made of, and how.
    const Model& model() const { return tapped_ ? *tapped_ : view_model(); }
    CompileOptions compile_options(CompileOptions options);
    CutAt cut_at(OpId op) const;
    // After the plan was made; nothing is called before.
    void prepare(const Plan& plan);
    const Ports& ports() const { return ports_; }

    // Around every run. `start` also calls at ops that only pass constants on. Both may throw what
    // callbacks throw.
    void start();
    void end();
    RunState& state() { return state_; }

    // At a cut. nullptr: nobody is there.
    struct AtCut {
        std::size_t site;
        std::unique_ptr<SitePort> before;
        std::unique_ptr<SitePort> after;
        std::unique_ptr<SitePort> instead;
        bool constants = false;  // constants are inputs of its program
        bool alone = false;      // the op has a program of its own: its inputs are at hand
        bool modifies = false;   // a callback after the op may change its outputs
    };
    AtCut* at(OpId op);
    void call(AtCut& cut, Port::When when);

private:
    const Model& view_model() const;
    void lower(const Model& model, Engine& engine, const SessionOptions& options,
               bool main_as_cuts);
    bool tap_serves(const Model& model, const Engine& engine, const SessionOptions& options,
                    const Site& site, bool main_as_cuts);
    bool cannot_be_reached(const Engine& engine, const SessionOptions& options, const Site& site);
    void insert_taps(std::size_t site);
    void called(std::int64_t number, HostCall& call);
    std::unique_ptr<SitePort> make_port(std::size_t site, Port::When when);
    void call_at_constants();

    const Model& given_;
    std::vector<Tool*> tools_;
    std::optional<Deployed> deployed_;
    std::optional<Model> inlined_;
    std::optional<Model> tapped_;
    std::vector<Site> sites_;
    std::vector<Tap> taps_;
    std::vector<std::unique_ptr<SitePort>> tap_ports_;
    std::map<OpId, AtCut> cuts_;
    std::vector<std::size_t> constant_sites_;
    std::vector<std::unique_ptr<SitePort>> constant_ports_;
    std::vector<const Constant*> constants_;
    std::map<const Graph*, std::vector<const Constant*>> body_constants_;
    PlainMemory plain_memory_;
    Ports ports_;
    RunState state_;
    std::uint64_t runs_ = 0;
};

// Thrown through an engine when a tool stops a run.
struct StopRun {};

}  // namespace trocar
