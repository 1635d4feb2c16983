#include "trocar/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profile/instrument.h"
#include "trocar/error.h"
#include "util/samples.h"

namespace trocar {

namespace profiling {

Runner::Runner(std::unique_ptr<Program> program, const std::vector<NamedValue>& inputs)
    : program_(std::move(program)) {
    for (const auto& name : program_->input_names()) {
        const auto given = std::find_if(inputs.begin(), inputs.end(), [&](const NamedValue& value) {
            return value.name == name;
        });
        inputs_.push_back(given == inputs.end() ? Value{} : given->value);
    }
    outputs_.resize(program_->output_names().size());
}

double Runner::run() {
    const auto begin = now_ns();
    program_->run(inputs_, outputs_);
    const auto spent = now_ns() - begin;
    std::fill(outputs_.begin(), outputs_.end(), Value{});
    return spent;
}

}  // namespace profiling

namespace {

constexpr std::size_t least_runs = 5;
// The engine keeps every time in memory until it is asked: so many are enough.
constexpr std::size_t most_samples = 200'000;

// With those of subgraphs: the engine times them too.
std::size_t count_ops(const Graph& graph) {
    std::size_t count = graph.op_count();
    for (const auto id : graph.ops()) {
        for (const auto& body : graph.op(id).subgraphs()) {
            count += body ? count_ops(*body) : 0;
        }
    }
    return count;
}

// A program is given no values for inputs that have a default.
void check_overrides(const Graph& graph, const std::vector<NamedValue>& inputs) {
    for (const auto& input : inputs) {
        const auto id = graph.find_tensor(input.name);
        if (id && graph.tensor(*id).constant) {
            throw Error(Fault::unsupported,
                        fmt::format("input '{}' has a default, and a profile is of the model with "
                                    "its defaults",
                                    input.name),
                        "leave it out");
        }
    }
}

// Profiled and plain runs take turns, and turns in who comes first: what the machine does meanwhile
// falls on both.
void run_in_turns(profiling::Runner& plain, profiling::Instrument& profiled, std::size_t ops,
                  const ProfileOptions& options, Profile& to) {
    const auto most = options.runs > 0
                          ? options.runs
                          : std::max(least_runs, most_samples / std::max<std::size_t>(ops, 1));
    const auto begin = now_ns();
    for (std::size_t run = 0; run < most; ++run) {
        const auto spent = (now_ns() - begin) * 1e-9;
        if (options.runs == 0 && run >= least_runs && spent > options.seconds) {
            break;
        }
        if (options.interrupted && options.interrupted()) {
            to.partial = true;
            break;
        }
        if (options.progress) {
            if (options.runs > 0) {
                options.progress("profiling", run, most);
            } else {
                options.progress("profiling", static_cast<std::uint64_t>(spent * 1000),
                                 static_cast<std::uint64_t>(options.seconds * 1000));
            }
        }
        const bool plain_first = run % 2 == 0;
        if (plain_first) {
            to.plain_ns.push_back(plain.run());
        }
        to.begin_ns.push_back(now_ns() - begin);
        to.wall_ns.push_back(profiled.run());
        if (!plain_first) {
            to.plain_ns.push_back(plain.run());
        }
    }
    if (to.wall_ns.empty()) {
        throw Error(Fault::interrupted, "interrupted before the first profiled run");
    }
}

// One more run of the whole model, which is not timed.
void count_events(profiling::Runner& plain, Profile& to) {
    HardwareCounters counters;
    to.counts_unavailable = counters.unavailable();
    if (to.counts_unavailable.empty()) {
        counters.start();
        plain.run();
        to.counts = counters.stop();
    }
}

}  // namespace

Profile profile(const Model& model, const std::shared_ptr<Engine>& engine,
                const std::vector<NamedValue>& inputs, const ProfileOptions& options) {
    check_overrides(model.graph, inputs);
    Profile result;
    result.view = options.view;
    const auto begin = now_ns();
    auto whole = engine->compile(model, {});
    result.compile_ns = now_ns() - begin;
    profiling::Runner plain(std::move(whole), inputs);
    const auto profiled = options.view == View::deployed
                              ? profiling::time_kernels(model, engine, inputs)
                              : profiling::time_layers(model, engine, inputs, options.cut);
    result.cold_plain_ns = plain.run();
    result.cold_ns = profiled->run();
    run_in_turns(plain, *profiled, count_ops(model.graph), options, result);
    profiled->report(result);
    count_events(plain, result);
    result.steady = steady_start(result.wall_ns);
    if (options.count && !result.partial) {
        profiling::count_parts(model, engine, inputs, options, result);
    } else {
        for (auto& part : result.parts) {
            part.uncounted = result.partial ? "interrupted" : "not asked for";
        }
    }
    return result;
}

std::vector<std::size_t> typical_runs(const Profile& profile) {
    const auto steady = std::span(profile.wall_ns).subspan(profile.steady);
    auto runs = middle_half(steady);
    for (auto& run : runs) {
        run += profile.steady;
    }
    return runs;
}

double typical(const std::vector<double>& by_run, const std::vector<std::size_t>& runs) {
    double sum = 0;
    for (const auto run : runs) {
        sum += by_run[run];
    }
    return runs.empty() ? 0 : sum / static_cast<double>(runs.size());
}

double unattributed(const Profile& profile, const std::vector<std::size_t>& runs) {
    double rest = typical(profile.wall_ns, runs);
    for (const auto& part : profile.parts) {
        rest -= typical(part.self_ns, runs);
    }
    return rest;
}

}  // namespace trocar
