#include "run/instruments.h"

#include <fmt/format.h>

#include <algorithm>

#include "trocar/error.h"

namespace trocar {

namespace {

bool changes_anything(const Site& site) {
    return !site.instead.empty() || !site.before.empty() || any(site.after, &Probe::modifies) ||
           any(site.after, &Probe::reads_inputs);
}

std::vector<const Constant*> own_constants(const Graph& graph) {
    std::vector<const Constant*> constants(graph.tensor_limit(), nullptr);
    for (const auto id : graph.tensors()) {
        const auto& tensor = graph.tensor(id);
        constants[index(id)] = tensor.constant ? &*tensor.constant : nullptr;
    }
    return constants;
}

}  // namespace

Instruments::Instruments(const Model& model, Engine& engine, const SessionOptions& options,
                         bool main_as_cuts)
    : given_(model), tools_(options.tools) {
    if (options.view == View::deployed) {
        deployed_ = deploy(model, engine);
    } else if (!model.functions.empty()) {
        inlined_ = clone(model);
        if (inline_functions(*inlined_) == 0) {
            inlined_.reset();
        }
    }
    SourceView source;
    if (deployed_) {
        source = {&model.graph, &deployed_->sources};
    }
    sites_ = find_sites(view_model(), tools_, source);
    ports_.unmatched = unmatched(sites_, tools_);
    lower(view_model(), engine, options, main_as_cuts);
}

const Model& Instruments::view_model() const {
    return deployed_ ? deployed_->model : inlined_ ? *inlined_ : given_;
}

CompileOptions Instruments::compile_options(CompileOptions options) {
    if (deployed_) {
        options.optimize = CompileOptions::Optimize::none;  // it is optimised already
    }
    if (!taps_.empty()) {
        options.host = [this](std::int64_t number, HostCall& call) { called(number, call); };
    }
    return options;
}

bool Instruments::tap_serves(const Model& model, const Engine& engine,
                             const SessionOptions& options, const Site& site, bool main_as_cuts) {
    auto reason = why_no_tap(view_model(), site);
    if (!engine.info().can.host_calls) {
        reason = fmt::format("{} takes no ops of ours", engine.info().name);
    }
    const auto place = site.graph->describe(site.op);
    if (site.in_body() && (options.lowering == Lowering::cut || !reason.empty())) {
        throw Error(Fault::unsupported,
                    fmt::format("{} stands in the body of another op, where only a tap can be{}{}",
                                place, reason.empty() ? "" : ", but ", reason),
                    "leave it out: Probe::outside_bodies()");
    }
    if (site.in_body()) {
        return true;
    }
    if (options.lowering == Lowering::tap) {
        if (!reason.empty()) {
            throw Error(Fault::unsupported, fmt::format("{} cannot have a tap: {}", place, reason),
                        "let the plan choose, or ask for cuts");
        }
        return true;
    }
    return options.lowering == Lowering::automatic && !main_as_cuts && reason.empty() &&
           site.instead.empty() && !options.cut(model.graph, site.op);
}

// An op in a body where no tap can stand is left alone when the plan may choose, and named.
bool Instruments::cannot_be_reached(const Engine& engine, const SessionOptions& options,
                                    const Site& site) {
    if (!site.in_body() || options.lowering != Lowering::automatic) {
        return false;
    }
    auto reason = why_no_tap(view_model(), site);
    if (!engine.info().can.host_calls) {
        reason = fmt::format("{} takes no ops of ours", engine.info().name);
    }
    if (reason.empty()) {
        return false;
    }
    ports_.notes.push_back(fmt::format("{}, in the body of another op, has no port: {}",
                                       site.graph->describe(site.op), reason));
    return true;
}

void Instruments::lower(const Model& model, Engine& engine, const SessionOptions& options,
                        bool main_as_cuts) {
    if (sites_.empty()) {
        return;
    }
    std::vector<bool> folded(model.graph.op_limit(), false);
    for (const auto id : make_plan(model, {}).folded) {
        folded[index(id)] = true;
    }
    for (std::size_t s = 0; s < sites_.size(); ++s) {
        const auto& site = sites_[s];
        if (!site.in_body() && folded[index(site.op)] && !changes_anything(site)) {
            constant_sites_.push_back(s);
            ++ports_.constants;
        } else if (cannot_be_reached(engine, options, site)) {
            continue;
        } else if (tap_serves(model, engine, options, site, main_as_cuts)) {
            insert_taps(s);
            ++ports_.taps;
        } else {
            cuts_.emplace(site.op,
                          AtCut{s, nullptr, nullptr, nullptr, any(site.before, &Probe::constants)});
            ++ports_.cuts;
        }
    }
}

void Instruments::insert_taps(std::size_t s) {
    if (!tapped_) {
        tapped_ = clone(view_model());
        tapped_->opsets.push_back({host_domain, 1});
    }
    const auto& site = sites_[s];
    const auto insert = [&](Port::When when) {
        taps_.push_back(insert_tap(*tapped_, site, s, when, taps_.size()));
    };
    // In this order each finds the op still there.
    if (!site.after.empty()) {
        insert(Port::When::after);
    }
    if (!site.before.empty()) {
        insert(Port::When::before);
    }
    if (!site.instead.empty()) {
        insert(Port::When::instead);
    }
}

CutAt Instruments::cut_at(OpId op) const {
    const auto found = cuts_.find(op);
    if (found == cuts_.end()) {
        return {};
    }
    const auto& site = sites_[found->second.site];
    const bool alone =
        !site.before.empty() || !site.instead.empty() || any(site.after, &Probe::reads_inputs);
    return {.after = !alone, .around = alone, .always = true};
}

std::unique_ptr<SitePort> Instruments::make_port(std::size_t s, Port::When when) {
    const auto& site = sites_[s];
    const auto* constants = &constants_;
    if (site.in_body()) {
        const auto [at, fresh] = body_constants_.try_emplace(site.graph);
        if (fresh) {
            at->second = own_constants(*site.graph);
        }
        constants = &at->second;
    }
    auto port = std::make_unique<SitePort>(site, when, state_, *constants);
    if (deployed_ && !site.in_body()) {
        port->set_sources(deployed_->sources[index(site.op)], deployed_->source_tensors);
        port->set_layouts(deployed_->layouts, plain_memory_);
    }
    return port;
}

void Instruments::prepare(const Plan& plan) {
    constants_ = plan.constants;
    tap_ports_.clear();
    for (const auto& tap : taps_) {
        tap_ports_.push_back(make_port(tap.site, tap.when));
    }
    for (auto& [op, cut] : cuts_) {
        const auto& site = sites_[cut.site];
        cut.alone = cut_at(op).around;
        cut.modifies = any(site.after, &Probe::modifies);
        cut.before = site.before.empty() ? nullptr : make_port(cut.site, Port::When::before);
        cut.after = site.after.empty() ? nullptr : make_port(cut.site, Port::When::after);
        cut.instead = site.instead.empty() ? nullptr : make_port(cut.site, Port::When::instead);
    }
    constant_ports_.clear();
    for (const auto site : constant_sites_) {
        constant_ports_.push_back(make_port(site, Port::When::after));
    }
}

void Instruments::start() {
    state_.number = runs_++;
    state_.stopped = false;
    for (auto& tap : taps_) {
        tap.calls = 0;
    }
    for (const auto* tool : tools_) {
        for (const auto& callback : tool->starts()) {
            callback(state_);
        }
    }
    call_at_constants();
}

void Instruments::end() {
    for (const auto* tool : tools_) {
        for (const auto& callback : tool->ends()) {
            callback(state_);
        }
    }
}

void Instruments::call_at_constants() {
    for (std::size_t i = 0; i < constant_sites_.size(); ++i) {
        auto& site = sites_[constant_sites_[i]];
        auto& port = *constant_ports_[i];
        port.open();
        const auto output = site.graph->op(site.op).outputs[0];
        const auto value = Value::of(*constants_[index(output)]);
        port.give_output(0, value);
        call_probes(site.after, port);
        port.end();
        if (state_.stopped) {
            throw StopRun{};
        }
    }
}

void Instruments::called(std::int64_t number, HostCall& call) {
    auto& tap = taps_.at(static_cast<std::size_t>(number));
    auto& site = sites_[tap.site];
    auto& port = *tap_ports_[static_cast<std::size_t>(number)];
    port.open(call, tap);
    auto& probes = tap.when == Port::When::before  ? site.before
                   : tap.when == Port::When::after ? site.after
                                                   : site.instead;
    call_probes(probes, port);
    port.close(call, tap);
    ++tap.calls;
    if (state_.stopped) {
        throw StopRun{};
    }
}

Instruments::AtCut* Instruments::at(OpId op) {
    const auto found = cuts_.find(op);
    return found == cuts_.end() ? nullptr : &found->second;
}

void Instruments::call(AtCut& cut, Port::When when) {
    auto& site = sites_[cut.site];
    auto& probes = when == Port::When::before  ? site.before
                   : when == Port::When::after ? site.after
                                               : site.instead;
    auto& port = when == Port::When::before  ? *cut.before
                 : when == Port::When::after ? *cut.after
                                             : *cut.instead;
    call_probes(probes, port);
}

}  // namespace trocar
