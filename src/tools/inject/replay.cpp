#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tools/inject/commands.h"
#include "tools/inject/prepare.h"
#include "trocar/error.h"

namespace trocar::inject {

namespace {

struct ReplayOptions {
    std::string store;
    std::int64_t fault = -1;
    std::int64_t input = -1;
    std::string model;
    std::string data;
};

void tell(const TrialResult& result, Decision::Kind kind, Section& section) {
    using Kind = Decision::Kind;
    auto& s = section.scalars;
    s.push_back({"outcome", "Outcome", name(result.outcome), Show::plain, result.failure});
    if (kind != Kind::none && kind != Kind::error) {
        const std::string where = result.positions > 1 ? "at the first position" : "";
        s.push_back(
            {"golden_top", "First choice without faults", result.golden_top, Show::plain, where});
        s.push_back({"faulty_top", "With them", result.faulty_top, Show::plain, where});
    }
    if (result.positions > 0) {
        s.push_back({"changed", "Positions changed", result.changed, Show::count,
                     fmt::format("of {}", result.positions)});
    }
    s.push_back({"max_abs", "Largest difference of an output", result.max_abs, Show::plain, ""});
    s.push_back({"detected", "A range was left", result.detected, Show::plain, ""});
}

Report run_replay(const ReplayOptions& options, Context& context) {
    if (options.fault < 0) {
        throw Error(Fault::usage, "which fault? --fault takes the number of a trial");
    }
    const auto store = CampaignStore::read(options.store);
    const auto number = static_cast<std::uint64_t>(options.fault);
    const auto record = store.fault(number);
    if (!record) {
        throw Error(Fault::usage, fmt::format("'{}' has no trial {}", options.store, number),
                    fmt::format("it has {} trials with results", store.trial_count()));
    }
    const auto& context_of = store.header().context;
    const auto text = std::find_if(context_of.begin(), context_of.end(),
                                   [](const auto& p) { return p.key == "campaign_file"; });
    if (text == context_of.end()) {
        throw Error(Fault::input,
                    fmt::format("'{}' does not say how its campaign was run", options.store));
    }
    auto file = parse_campaign(text->value, options.store);
    file.model = options.model.empty() ? file.model : options.model;
    if (file.data && !options.data.empty()) {
        file.data->path = options.data;
    }
    // The engine of the campaign, unless another one than the usual is named.
    const auto engine = context.engine_options().name;
    if (file.engine.empty() && engine == EngineOptions{}.name && engine != store.header().engine) {
        file.engine = store.header().engine;
    }
    auto prepared = prepare(std::move(file), context);
    if (prepared.header.model_sha256 != store.header().model_sha256) {
        throw Error(Fault::usage,
                    fmt::format("'{}' is not the model of the campaign", prepared.file.model),
                    "--model names it");
    }
    prepared.options.sampling.list = {parse_faults(record->text)};
    const bool decided = !store.header().decision.empty();  // or of an older schema
    if (decided) {
        prepared.options.monitoring.decision = parse_decision(store.header().decision);
    }
    prepared.options.recipe = recipe_of(prepared);
    Campaign campaign(*prepared.model, prepared.engine, prepared.inputs, prepared.options);
    Trial trial = campaign.trial(0);
    trial.number = number;
    Report report;
    report.tool = "inject replay";
    report.context = context.describe(*prepared.model, false);
    Section section{"fault", "", {}};
    section.scalars.push_back({"trial", "Trial", number, Show::plain, ""});
    section.scalars.push_back({"fault", "Fault", record->text, Show::plain, ""});
    section.scalars.push_back(
        {"decision", "Decision",
         decided ? store.header().decision_meaning : campaign.decision().meaning, Show::plain, ""});
    report.sections.push_back(std::move(section));
    Table layers{
        .key = "layers", .title = "What it did on its way", .columns = {}, .rows = {}, .note = {}};
    layers.columns = {{.key = "input", .title = "Input"},
                      {.key = "tensor", .title = "Tensor", .left = true},
                      {.key = "changed", .title = "Elements changed", .show = Show::count},
                      {.key = "bad", .title = "NaN, inf", .show = Show::count},
                      {.key = "max_abs", .title = "Largest difference"}};
    for (const auto& kept : store.results_of(number)) {
        if (options.input >= 0 && kept.input != static_cast<std::uint64_t>(options.input)) {
            continue;
        }
        std::vector<LayerEffect> effects;
        auto result = campaign.replay(trial, kept.input, effects);
        if (prepared.file.metric.empty()) {  // one that was given in C++
            result.metric = kept.metric;
            result.metrics = kept.metrics;
        }
        if (!decided) {
            result.positions = kept.positions;
            result.changed = kept.changed;
        }
        Section one{fmt::format("input_{}", kept.input), fmt::format("Input {}", kept.input), {}};
        tell(result, campaign.decision().decision.kind, one);
        one.scalars.push_back({"same", "As in the store", result == kept, Show::plain, ""});
        report.verdict = report.verdict && result == kept;
        report.sections.push_back(std::move(one));
        for (const auto& e : effects) {
            layers.rows.push_back(
                {{Cell(e.input), Cell(e.tensor), Cell(e.changed), Cell(e.bad), Cell(e.max_abs)}});
        }
    }
    report.tables.push_back(std::move(layers));
    return report;
}

std::function<Report(Context&)> bind_replay(Args& args) {
    const auto options = std::make_shared<ReplayOptions>();
    args.positional(options->store, "STORE", "Store of a campaign");
    args.option("--fault", options->fault, "N", "Number of the trial");
    args.option("--input-number", options->input, "N", "Only this input; all it was tried with");
    args.option("--model", options->model, "FILE", "The model, where it is not where it was");
    args.option("--data", options->data, "PATH", "The data, where it is not where it was");
    args.example("trocar inject replay run.db --fault 1234",
                 "one fault again, with what it did to every layer");
    return [options](Context& context) { return run_replay(*options, context); };
}

}  // namespace

extern const Command replay_command{
    .name = "replay",
    .summary = "Run one fault of a campaign again and show what it did to every layer",
    .bind = bind_replay,
};

}  // namespace trocar::inject
