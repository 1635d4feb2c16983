#include "tools/summary/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "tools/summary/assume.h"
#include "tools/summary/observe.h"
#include "trocar/error.h"
#include "util/text.h"

namespace trocar::summary {
namespace {

std::optional<std::uint64_t> activation_bytes(const Scope& scope, TensorId id) {
    const Fact& fact = scope.fact(id);
    if (fact.constant != nullptr) {
        return 0;
    }
    if (!fact.shape || bits(fact.dtype) == 0) {
        return std::nullopt;
    }
    try {
        return byte_size(fact.dtype, element_count(*fact.shape));
    } catch (const Error&) {
        return std::nullopt;
    }
}

// The memory of a graph; a body adds its own peak to its op's.
Liveness memory_of(const Scope& scope) {
    return liveness(
        *scope.graph, [&](TensorId id) { return activation_bytes(scope, id); },
        [&](OpId id) {
            std::uint64_t most = 0;
            if (const auto* bodies = scope.bodies_of(id)) {
                for (const Body& body : *bodies) {
                    most = std::max(most, body.taken ? memory_of(*body.scope).peak_bytes : 0);
                }
            }
            return most;
        });
}

// Says what could not run: the cause is the op that failed first, not those that waited for it.
void report_failures(Summary& summary) {
    const auto& failures = summary.scope->failures;
    if (failures.empty()) {
        return;
    }
    const Graph& graph = *summary.scope->graph;
    std::size_t causes = 0;
    OpId first = OpId::none;
    for (const auto& [id, why] : failures) {
        if (!why.starts_with("not run:")) {
            ++causes;
            first = first == OpId::none || graph.before(id, first) ? id : first;
        }
    }
    if (first == OpId::none) {
        return;
    }
    summary.warnings.push_back(
        fmt::format("{} of {} ops did not run, so shapes after them are those the file declares, "
                    "if any; the first "
                    "is {}",
                    failures.size(), graph.op_count(), failures.at(first)));
    bool chosen = !summary.notes.empty();
    if (chosen) {
        summary.warnings.back() += "; --shape gives the dimensions that were assumed";
    }
}

std::optional<Inputs> inputs_of(Summary& summary, Context& context, const Options& options) {
    InputSpec spec = options.inputs;
    spec.seed = context.seed();
    spec.unknown_dims = 1;
    if (spec.fill.empty()) {
        spec.fill = "random";
    }
    try {
        Inputs inputs = make_inputs(*summary.model, spec);
        summary.notes = inputs.notes;
        return inputs;
    } catch (const Error& e) {
        if (!options.inputs.sources.empty() || !options.inputs.shapes.empty()) {
            throw;
        }
        summary.warnings.push_back(
            fmt::format("nothing was run, shapes are those the file declares: {}", e.what()));
        return std::nullopt;
    }
}

// What can be said of shapes without a run: those that are declared, with the inputs' sizes in the
// place of symbols.
void assume(Summary& summary, Context& context, const Options& options) {
    const auto warnings = summary.warnings.size();
    auto inputs = inputs_of(summary, context, options);
    if (!inputs) {
        summary.warnings.resize(warnings);  // nothing would have been run anyway
        return;
    }
    auto sizes = assume_sizes(*summary.scope, inputs->values);
    if (!sizes.empty()) {
        summary.shapes = fmt::format("declared in the file, with {}", join(sizes, ", "));
    }
}

void run(Summary& summary, Context& context, const Options& options) {
    const Model& model = *summary.model;
    std::shared_ptr<Engine> engine;
    try {
        engine = context.engine();
    } catch (const Error& e) {
        summary.warnings.push_back(
            fmt::format("nothing was run, shapes are those the file declares: {}{}{}", e.what(),
                        e.hint().empty() ? "" : "; ", e.hint()));
        assume(summary, context, options);
        return;
    }
    const auto dialects = engine->info().can.dialects;
    if (std::find(dialects.begin(), dialects.end(), model.dialect) == dialects.end()) {
        assume(summary, context, options);
        summary.notes.push_back(
            fmt::format("nothing was run: {} does not run ops of the dialect {}",
                        engine->info().name, model.dialect));
        return;
    }
    auto made = inputs_of(summary, context, options);
    if (!made) {
        return;
    }
    const Inputs& inputs = *made;
    bool given = !options.inputs.sources.empty() || !options.inputs.shapes.empty();
    ObserveHooks hooks;
    hooks.progress = [&](std::size_t done, std::size_t total) {
        context.progress("running ops", done, total);
    };
    hooks.interrupted = [&] { return context.interrupted(); };
    hooks.doing = [&](const std::string& what) { context.doing(what); };
    hooks.run_all = options.run_all;
    try {
        observe(*summary.scope, model, engine, inputs.values, hooks);
        summary.ran = true;
        summary.shapes =
            fmt::format("from a run on {} {}", engine->info().name, engine->info().version);
    } catch (const Error& e) {
        if (e.fault() == Fault::interrupted) {
            summary.interrupted = true;
            summary.shapes = "from a run that was interrupted";
            return;
        }
        if (e.fault() != Fault::engine && e.fault() != Fault::unsupported && given) {
            throw;
        }
        summary.warnings.push_back(
            fmt::format("the run failed, shapes are those the file declares: {}", e.what()));
    }
    report_failures(summary);
}

}  // namespace

Summary gather(Context& context, const std::string& path, const Options& options) {
    Summary summary;
    summary.model = std::make_unique<Model>(context.load(path));
    summary.scope = read_scope(*summary.model);
    settle(*summary.scope);
    summary.inventory = take_inventory(*summary.scope);
    summary.shapes = "declared in the file";

    std::future<std::vector<Zeros>> zeros;
    if (!options.no_weights) {
        // Beside the run one thread is enough: the scan is done before the ops are.
        int threads = options.no_run ? context.threads() : 1;
        zeros = std::async(std::launch::async, [&summary, threads] {
            return scan_all(summary.inventory.jobs, threads);
        });
    }
    if (!options.no_run) {
        run(summary, context, options);
        settle(*summary.scope);
    }
    if (zeros.valid()) {
        summary.zeros = zeros.get();
    }
    summary.rows = count_rows(*summary.scope, summary.inventory, summary.zeros, summary.ran);
    summary.memory = memory_of(*summary.scope);
    return summary;
}

}  // namespace trocar::summary
