#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inject/circuit.h"
#include "inject/lane.h"
#include "trocar/campaign.h"
#include "trocar/inject.h"

namespace trocar::inject {

// All the faults of one population at one tensor: `units` places that are changed together, each
// with any of some bits.
struct Site {
    std::size_t population = 0;
    TensorId tensor = TensorId::none;
    std::size_t reader = no_step;  // the only step that sees it; no_step: all
    ModelFault::Part part = ModelFault::Part::whole;
    std::string layer = {};
    DType dtype = DType::undefined;
    Shape shape = {};                        // plain
    std::vector<std::uint64_t> places = {};  // that may be changed; empty: all
    std::uint64_t units = 0;
    std::vector<unsigned> bits = {};  // the lowest of those changed; empty: the effect has none
    std::uint64_t choices() const { return bits.empty() ? 1 : bits.size(); }
};

// All faults of all populations, in strata, in an order of their own.
class Universe {
public:
    // `types` by TensorId, as a golden run has them.
    Universe(const Circuit& circuit, const std::vector<Type>& types,
             const CampaignOptions& options);

    const std::vector<Stratum>& strata() const { return strata_; }
    std::uint64_t population() const { return population_; }
    std::uint64_t trials() const { return trials_; }
    std::uint64_t trials_for(double margin, double confidence) const;
    Trial trial(std::uint64_t number) const;

private:
    void describe(Trial& trial) const;
    // The faults of a stratum at a site: with bits `first` … `first` + `count` - 1 of its list.
    struct Member {
        std::size_t site;
        std::size_t first;
        std::size_t count;
        std::uint64_t upto;  // faults of the stratum up to and with this one
    };
    // The faults of a stratum at a site that change one bit: all with the same chance.
    struct Class {
        std::size_t site;
        std::size_t choice;
        double factor;
        double upto;  // factors of all faults of the stratum up to and with these
    };
    void weigh();
    double factor(const Site& site, std::size_t choice) const;
    void draw_weighted(Trial& trial, std::uint64_t key) const;
    void find_sites(const Circuit& circuit, const std::vector<Type>& types);
    void add_constants(const Circuit& circuit, std::size_t population);
    void add_tensors(const Circuit& circuit, const std::vector<Type>& types,
                     std::size_t population);
    void add(const Circuit& circuit, Site site);
    void stratify();
    void plan();
    ModelFault fault(const Site& site, std::uint64_t unit, std::size_t choice,
                     std::uint64_t key) const;
    ModelFault drawn(std::size_t stratum, std::uint64_t fault, std::uint64_t key) const;

    const CampaignOptions& options_;
    const Circuit& circuit_;
    std::vector<Site> sites_;
    std::vector<Stratum> strata_;
    std::vector<std::vector<Member>> members_;  // by stratum
    std::vector<std::vector<Class>> classes_;   // by stratum, where chances differ; else empty
    std::vector<std::uint64_t> first_trial_;    // by stratum
    std::vector<std::size_t> sweeps_;           // sites that a rate changes all together
    std::uint64_t population_ = 0;
    std::uint64_t trials_ = 0;
};

// A number in [0, count) for each number in [0, count), each once, in an order made of the key.
std::uint64_t permuted(std::uint64_t number, std::uint64_t count, std::uint64_t key);

// The lane of a trial on run `run`. Throws Error(usage) on a tensor, an op or an element that is
// not there.
Lane make_lane(const Circuit& circuit, const std::vector<Type>& types,
               const std::vector<ModelFault>& faults, std::uint64_t run,
               const std::map<std::string, CustomEffect>& effects);

// The name that a person knows the op by: that of the first op of the model that it computes.
std::string layer_name(const Circuit& circuit, OpId op);

}  // namespace trocar::inject
