#include "inject/universe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>

#include "trocar/error.h"
#include "trocar/intervals.h"
#include "trocar/random.h"
#include "util/text.h"

namespace trocar::inject {

std::uint64_t permuted(std::uint64_t number, std::uint64_t count, std::uint64_t key) {
    if (count < 2) {
        return number;
    }
    // A Feistel network over the next power of 4; what falls outside goes through it again.
    const auto half = static_cast<unsigned>(std::bit_width(count - 1) + 1) / 2;
    const auto mask = (std::uint64_t{1} << half) - 1;
    do {
        auto left = number >> half;
        auto right = number & mask;
        for (std::uint64_t round = 0; round < 6; ++round) {
            const auto words = philox(key, round, right);
            const auto mixed = left ^ ((std::uint64_t{words[0]} << 32 | words[1]) & mask);
            left = right;
            right = mixed;
        }
        number = left << half | right;
    } while (number >= count);
    return number;
}

std::string layer_name(const Circuit& circuit, OpId id) {
    if (const auto* deployed = circuit.deployed()) {
        for (const auto source : deployed->sources[index(id)]) {
            const auto& name = circuit.source().graph.op(source).name;
            if (!name.empty()) {
                return name;
            }
        }
    }
    const auto& name = circuit.graph().op(id).name;
    return name.empty() ? circuit.graph().describe(id) : name;
}

namespace {

bool selected(const Circuit& circuit, const Selector& selector, OpId id) {
    if (selector(circuit.graph(), id)) {
        return true;
    }
    if (const auto* deployed = circuit.deployed()) {
        const auto& sources = deployed->sources[index(id)];
        return std::any_of(sources.begin(), sources.end(),
                           [&](OpId source) { return selector(circuit.source().graph, source); });
    }
    return false;
}

std::string target_name(Population::Target target) {
    switch (target) {
        case Population::Target::weights:
            return "weights";
        case Population::Target::activations:
            return "activations";
        case Population::Target::reads:
            return "reads";
        case Population::Target::inputs:
            return "inputs";
        case Population::Target::constants:
            return "constants";
    }
    return {};
}

bool has_bits(const Effect& effect) {
    return effect.kind == Effect::Kind::flip || effect.kind == Effect::Kind::stuck0 ||
           effect.kind == Effect::Kind::stuck1;
}

// Constants that are numbers the model was trained to have, not shapes or indices.
bool is_weight(const Constant& constant) {
    return is_float(constant.dtype()) || constant.dtype() == DType::i8 ||
           constant.dtype() == DType::u8 || constant.dtype() == DType::i4 ||
           constant.dtype() == DType::u4 || constant.dtype() == DType::i2 ||
           constant.dtype() == DType::u2;
}

// How many elements belong to a unit of this extent, and so how many units a tensor has.
std::uint64_t unit_count(Population::Extent extent, const Shape& shape, bool constant) {
    const auto count = element_count(shape);
    if (count == 0) {
        return 0;
    }
    switch (extent) {
        case Population::Extent::tensor:
            return 1;
        case Population::Extent::row:
            return shape.empty() ? 1 : count / static_cast<std::uint64_t>(shape.back());
        case Population::Extent::channel: {
            const std::size_t axis = constant || shape.size() < 3 ? 0 : 1;
            return shape.empty() ? 1
                                 : static_cast<std::uint64_t>(shape[axis]) *
                                       (axis == 1 ? static_cast<std::uint64_t>(shape[0]) : 1);
        }
        case Population::Extent::element:
            return count;
    }
    return count;
}

}  // namespace

Universe::Universe(const Circuit& circuit, const std::vector<Type>& types,
                   const CampaignOptions& options)
    : options_(options), circuit_(circuit) {
    if (!options.sampling.list.empty()) {
        trials_ = population_ = options.sampling.list.size();
        strata_.push_back(
            {.name = "listed", .target = "listed", .population = trials_, .planned = trials_});
        first_trial_.push_back(0);
        return;
    }
    find_sites(circuit, types);
    stratify();
    weigh();
    plan();
}

void Universe::find_sites(const Circuit& circuit, const std::vector<Type>& types) {
    for (std::size_t p = 0; p < options_.populations.size(); ++p) {
        const auto& population = options_.populations[p];
        const auto before = sites_.size();
        if (population.target == Population::Target::weights ||
            population.target == Population::Target::constants) {
            add_constants(circuit, p);
        } else {
            add_tensors(circuit, types, p);
        }
        if (sites_.size() == before) {
            const auto near = near_matches(circuit.source().graph, population.ops);
            std::string hint = "`trocar summary MODEL` lists the ops";
            if (!near.empty()) {
                hint = fmt::format("did you mean {}?", join(near, ", "));
            }
            throw Error(Fault::usage,
                        fmt::format("there are no {} to change at '{}'{}",
                                    target_name(population.target), population.ops.text(),
                                    population.tensors.empty()
                                        ? ""
                                        : fmt::format(" named '{}'", population.tensors)),
                        hint);
        }
    }
}

void Universe::add_constants(const Circuit& circuit, std::size_t p) {
    const auto& population = options_.populations[p];
    std::vector<bool> seen(circuit.graph().tensor_limit(), false);
    for (std::size_t s = 0; s < circuit.steps().size(); ++s) {
        const auto id = circuit.steps()[s].op;
        if (!selected(circuit, population.ops, id)) {
            continue;
        }
        const auto& op = circuit.graph().op(id);
        std::vector<TensorId> here;
        for (const auto* list : {&op.inputs, &op.captures}) {
            here.insert(here.end(), list->begin(), list->end());
        }
        std::sort(here.begin(), here.end());
        here.erase(std::unique(here.begin(), here.end()), here.end());
        for (const auto input : here) {
            const auto* constant = input == TensorId::none ? nullptr : circuit.constant(input);
            if (constant == nullptr || bits(constant->dtype()) == 0 ||
                (population.target == Population::Target::weights && !is_weight(*constant)) ||
                (population.all_readers && seen[index(input)])) {
                continue;
            }
            seen[index(input)] = true;
            const auto slot = static_cast<std::size_t>(
                std::find(op.inputs.begin(), op.inputs.end(), input) - op.inputs.begin());
            Site site{.population = p,
                      .tensor = input,
                      .reader = population.all_readers ? no_step : s,
                      .layer = layer_name(circuit, id),
                      .dtype = constant->dtype(),
                      .shape = plain_shape(constant->shape(), circuit.filter_layout(op, slot))};
            if (!constant->is_sparse()) {
                add(circuit, std::move(site));
                continue;
            }
            auto indices = site;
            site.part = ModelFault::Part::values;
            site.shape = constant->values().shape();
            add(circuit, std::move(site));
            if (population.target == Population::Target::constants) {
                indices.part = ModelFault::Part::indices;
                indices.dtype = constant->indices().dtype();
                indices.shape = constant->indices().shape();
                add(circuit, std::move(indices));
            }
        }
    }
}

void Universe::add_tensors(const Circuit& circuit, const std::vector<Type>& types, std::size_t p) {
    const auto& population = options_.populations[p];
    const auto add_tensor = [&](TensorId id, std::size_t reader, const std::string& layer) {
        const auto& type = types[index(id)];
        if (type.kind != Type::Kind::tensor || bits(type.dtype) == 0 || bits(type.dtype) > 64) {
            return;
        }
        add(circuit, {.population = p,
                      .tensor = id,
                      .reader = reader,
                      .layer = layer,
                      .dtype = type.dtype,
                      .shape = plain_shape(type.shape().value(), circuit.layout(id))});
    };
    if (population.target == Population::Target::inputs) {
        for (const auto id : circuit.graph().inputs()) {
            add_tensor(id, no_step, circuit.graph().tensor(id).name);
        }
        return;
    }
    for (std::size_t s = 0; s < circuit.steps().size(); ++s) {
        const auto& step = circuit.steps()[s];
        if (!selected(circuit, population.ops, step.op)) {
            continue;
        }
        const bool reads = population.target == Population::Target::reads;
        for (const auto id : reads ? step.inputs : step.outputs) {
            add_tensor(id, reads ? s : no_step, layer_name(circuit, step.op));
        }
    }
}

void Universe::add(const Circuit& circuit, Site site) {
    const auto& population = options_.populations[site.population];
    const auto& name = circuit.graph().tensor(site.tensor).name;
    if ((!population.tensors.empty() && !glob_match(population.tensors, name)) ||
        (population.dtype && *population.dtype != site.dtype)) {
        return;
    }
    const bool constant = circuit.constant(site.tensor) != nullptr;
    site.units = unit_count(population.extent, site.shape, constant);
    if (!population.elements.ranges.empty() || !population.elements.flat.empty()) {
        site.places = places(population.elements, site.shape);
        site.units = site.places.size();
    }
    if (has_bits(population.effect)) {
        const auto mask = parse_bits(population.bits, site.dtype);
        for (unsigned bit = 0; bit < 64; ++bit) {
            if ((mask >> bit & 1) != 0) {
                site.bits.push_back(bit);
            }
        }
    }
    if (site.units == 0) {
        return;
    }
    if (population.effect.kind == Effect::Kind::rate) {
        sweeps_.push_back(sites_.size());
    }
    sites_.push_back(std::move(site));
}

void Universe::stratify() {
    const auto& sampling = options_.sampling;
    if (!sweeps_.empty()) {
        if (sweeps_.size() != sites_.size()) {
            throw Error(Fault::usage,
                        "a rate changes all of its tensors together: it cannot be mixed with "
                        "single faults",
                        "make two campaigns of it");
        }
        strata_.push_back({.name = "rate", .target = "all", .population = 0});
        first_trial_.push_back(0);
        return;
    }
    std::map<std::tuple<std::string, std::string, int>, std::size_t> known;
    for (std::size_t s = 0; s < sites_.size(); ++s) {
        const auto& site = sites_[s];
        const auto target = target_name(options_.populations[site.population].target);
        const auto parts = sampling.by_bit && !site.bits.empty() ? site.bits.size() : 1;
        for (std::size_t part = 0; part < parts; ++part) {
            const int bit = parts > 1 || (sampling.by_bit && site.bits.size() == 1)
                                ? static_cast<int>(site.bits[part])
                                : -1;
            const auto key =
                std::tuple(sampling.by_target || sampling.by_layer || sampling.by_bit ? target : "",
                           sampling.by_layer ? site.layer : "", bit);
            const auto [found, fresh] = known.emplace(key, strata_.size());
            if (fresh) {
                std::vector<std::string> names = {target};
                if (sampling.by_layer) {
                    names.push_back(site.layer);
                }
                if (bit >= 0) {
                    names.push_back(fmt::format("bit {}", bit));
                }
                strata_.push_back({.name = fmt::format("{}", join(names, " / ")),
                                   .target = target,
                                   .layer = sampling.by_layer ? site.layer : "",
                                   .bit = bit});
                members_.emplace_back();
            }
            auto& stratum = strata_[found->second];
            if (stratum.target != target) {
                stratum.target = "all";
                stratum.name = "all";
            }
            const auto choices = parts > 1 ? 1 : site.choices();
            stratum.population += site.units * choices;
            members_[found->second].push_back(
                {s, parts > 1 ? part : 0, choices, stratum.population});
        }
    }
    for (const auto& stratum : strata_) {
        population_ += stratum.population;
    }
}

namespace {

// What is expected of single bits of a type before anything is measured: the exponent's high bits
// matter, the mantissa's low ones do not. Only steers where trials go; rates are weighted.
double expected_rate(int bit) {
    if (bit < 0) {
        return 0.5;
    }
    return bit >= 30 ? 0.5 : bit >= 26 ? 0.2 : bit >= 23 ? 0.1 : bit >= 18 ? 0.02 : 0.005;
}

}  // namespace

// Of a finite population where each trial is one of its faults, drawn without replacement.
std::uint64_t Universe::trials_for(double margin, double confidence) const {
    const auto& sampling = options_.sampling;
    const bool finite =
        sweeps_.empty() && sampling.faults_per_trial == 1 && sampling.importance.empty();
    return sample_size(finite ? std::optional(population_) : std::nullopt, margin, confidence);
}

void Universe::plan() {
    const auto& sampling = options_.sampling;
    const auto wanted =
        sampling.margin > 0 ? trials_for(sampling.margin, sampling.confidence) : sampling.trials;
    if (!sweeps_.empty()) {
        trials_ = wanted;
        strata_[0].planned = trials_;
        return;
    }
    std::vector<StratumPlan> plans;
    for (const auto& stratum : strata_) {
        const bool aware = sampling.allocation == Allocation::data_aware;
        plans.push_back({stratum.population, aware ? expected_rate(stratum.bit) : 0.5});
    }
    std::vector<std::uint64_t> counts;
    const auto budget = std::min(wanted, population_);
    if (sampling.exhaustive) {
        for (const auto& stratum : strata_) {
            counts.push_back(stratum.population);
        }
    } else if (sampling.allocation == Allocation::equal) {
        std::uint64_t left = budget;
        for (std::size_t i = 0; i < strata_.size(); ++i) {
            counts.push_back(std::min(strata_[i].population, left / (strata_.size() - i)));
            left -= counts.back();
        }
    } else if (sampling.allocation == Allocation::data_aware) {
        counts = neyman_allocation(plans, budget, budget >= strata_.size() ? 1 : 0);
    } else {
        counts = proportional_allocation(plans, budget, budget >= strata_.size() ? 1 : 0);
    }
    for (std::size_t i = 0; i < strata_.size(); ++i) {
        strata_[i].planned = counts[i];
        first_trial_.push_back(trials_);
        trials_ += counts[i];
    }
}

ModelFault Universe::fault(const Site& site, std::uint64_t unit, std::size_t choice,
                           std::uint64_t key) const {
    const auto& population = options_.populations[site.population];
    ModelFault fault;
    fault.tensor = circuit_.graph().tensor(site.tensor).name;
    if (site.reader != no_step) {
        const auto op = circuit_.steps()[site.reader].op;
        const auto& name = circuit_.graph().op(op).name;
        const bool unique = !name.empty() && circuit_.graph().find_op(name) == op;
        fault.reader = unique ? name : fmt::format("#{}", site.reader);
    }
    fault.part = site.part;
    fault.effect = population.effect;
    fault.duration = population.duration;
    if (fault.effect.draws()) {
        fault.effect.key = key;
    }
    if (has_bits(fault.effect)) {
        fault.effect.mask = 0;
        for (int i = 0; i < population.bits_at_once; ++i) {
            const auto bit = site.bits[choice] + static_cast<unsigned>(i);
            if (bit < bits(site.dtype)) {
                fault.effect.mask |= std::uint64_t{1} << bit;
            }
        }
    }
    const auto& shape = site.shape;
    const bool constant = circuit_.constant(site.tensor) != nullptr;
    if (!site.places.empty()) {
        unit = site.places[unit];
    }
    if (population.extent == Population::Extent::tensor && site.places.empty()) {
        return fault;
    }
    if (population.extent == Population::Extent::channel && site.places.empty()) {
        const bool second = !constant && shape.size() > 2;
        const auto at = static_cast<std::int64_t>(unit);
        if (second) {
            fault.elements.ranges = {{at / shape[1], at / shape[1] + 1},
                                     {at % shape[1], at % shape[1] + 1}};
        } else if (!shape.empty()) {
            fault.elements.ranges = {{at, at + 1}};
        }
        return fault;
    }
    // An element, or a row of them, by its index.
    const bool row = population.extent == Population::Extent::row && site.places.empty();
    auto rest = static_cast<std::int64_t>(unit);
    fault.elements.ranges.resize(row && !shape.empty() ? shape.size() - 1 : shape.size());
    for (auto d = fault.elements.ranges.size(); d-- > 0;) {
        fault.elements.ranges[d] = {rest % shape[d], rest % shape[d] + 1};
        rest /= shape[d];
    }
    if (!row && !shape.empty() && population.elements_at_once > 1) {
        auto& last = fault.elements.ranges.back();
        last.last = std::min(last.first + population.elements_at_once, shape.back());
    }
    return fault;
}

ModelFault Universe::drawn(std::size_t stratum, std::uint64_t number, std::uint64_t key) const {
    const auto& members = members_[stratum];
    const auto member =
        std::upper_bound(members.begin(), members.end(), number,
                         [](std::uint64_t n, const Member& m) { return n < m.upto; });
    const auto& site = sites_[member->site];
    const auto within = number - (member->upto - site.units * member->count);
    return fault(site, within / member->count, member->first + within % member->count, key);
}

// Target and layer, where all faults agree.
void Universe::describe(Trial& trial) const {
    bool first = true;
    const auto agree = [&](std::string& so_far, std::string here) {
        so_far = first || so_far == here ? std::move(here) : "";
    };
    const auto& graph = circuit_.graph();
    for (const auto& fault : trial.faults) {
        const auto id = graph.find_tensor(fault.tensor);
        if (!id) {
            continue;  // said when it is run
        }
        const auto& tensor = graph.tensor(*id);
        const auto* constant = circuit_.constant(*id);
        auto op = tensor.producer;
        if (!fault.reader.empty()) {
            op = fault.reader.starts_with('#')
                     ? circuit_
                           .steps()[std::min<std::size_t>(std::stoull("0" + fault.reader.substr(1)),
                                                          circuit_.steps().size() - 1)]
                           .op
                     : graph.find_op(fault.reader).value_or(OpId::none);
        } else if (constant != nullptr && !tensor.uses.empty()) {
            op = tensor.uses.front().op;
        }
        agree(trial.target, constant != nullptr     ? is_weight(*constant) ? "weights" : "constants"
                            : !fault.reader.empty() ? "reads"
                            : tensor.producer == OpId::none ? "inputs"
                                                            : "activations");
        agree(trial.layer, op == OpId::none ? fault.tensor : layer_name(circuit_, op));
        first = false;
    }
}

Trial Universe::trial(std::uint64_t number) const {
    Trial trial;
    trial.number = number;
    const auto& sampling = options_.sampling;
    if (!sampling.list.empty()) {
        trial.faults = sampling.list.at(number);
        describe(trial);
        return trial;
    }
    const auto words = philox(sampling.seed, 0x6b6579, number);
    const auto key = std::uint64_t{words[0]} << 32 | words[1];
    if (!sweeps_.empty()) {
        for (const auto s : sweeps_) {
            auto one = fault(sites_[s], 0, 0, key + s);
            one.elements = options_.populations[sites_[s].population].elements;
            one.effect.mask =
                parse_bits(options_.populations[sites_[s].population].bits, sites_[s].dtype);
            trial.faults.push_back(std::move(one));
        }
        describe(trial);
        return trial;
    }
    const auto at = std::upper_bound(first_trial_.begin(), first_trial_.end(), number) -
                    first_trial_.begin() - 1;
    // Strata without trials begin where the next one does.
    auto stratum = static_cast<std::size_t>(at);
    while (strata_[stratum].planned == 0) {
        --stratum;
    }
    trial.stratum = static_cast<std::uint32_t>(stratum);
    if (!classes_.empty() && !classes_[stratum].empty()) {
        draw_weighted(trial, key);
    }
    const auto seed = philox(sampling.seed, 0x73747261, stratum);
    const auto drawn_number = permuted(number - first_trial_[stratum], strata_[stratum].population,
                                       std::uint64_t{seed[0]} << 32 | seed[1]);
    if (trial.faults.empty()) {
        trial.faults.push_back(drawn(stratum, drawn_number, key));
    }
    for (int extra = 1; extra < sampling.faults_per_trial; ++extra) {
        const auto more =
            philox(sampling.seed, number, 0x6d6f7265 + static_cast<std::uint64_t>(extra));
        auto place = (std::uint64_t{more[0]} << 32 | more[1]) % population_;
        std::size_t other = 0;
        while (place >= strata_[other].population) {
            place -= strata_[other].population;
            ++other;
        }
        trial.faults.push_back(drawn(other, place, key + static_cast<std::uint64_t>(extra)));
    }
    describe(trial);
    return trial;
}

}  // namespace trocar::inject
