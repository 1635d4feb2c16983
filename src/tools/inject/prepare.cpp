#include "tools/inject/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/kernel_set.h"
#include "trocar/error.h"
#include "util/sha256.h"

namespace trocar::inject {

namespace {

std::shared_ptr<Engine> open(const CampaignFile& file, EngineOptions options) {
    if (!file.engine.empty()) {
        const auto given = parse_engine(file.engine);
        options.name = given.name;
        options.path = given.path;
        options.options = given.options;
    }
    options.threads = 1;  // workers are the threads; the bits do not depend on it
    return open_engine(options);
}

std::string hash_of(const std::vector<NamedValue>& values) {
    Sha256 hash;
    for (const auto& value : values) {
        hash.add(std::as_bytes(std::span(value.name)));
        const auto text = value_text(value.value);
        hash.add(std::as_bytes(std::span(text)));
        if (value.value.is_tensor() && bits(value.value.dtype()) > 0) {
            hash.add(value.value.bytes());
        }
    }
    return hash.hex();
}

// Data where there is some; else one input, made or given.
void find_inputs(Prepared& made) {
    const auto& file = made.file;
    if (file.data) {
        DataArguments arguments;
        arguments.path = file.data->path;
        arguments.kind = file.data->kind;
        arguments.labels = file.data->labels;
        arguments.split = file.data->split;
        for (const auto& [key, value] : file.data->preprocess) {
            arguments.preprocess.push_back(fmt::format("{}={}", key, value));
        }
        arguments.offset = static_cast<std::int64_t>(file.data->offset);
        arguments.limit = static_cast<std::int64_t>(file.data->limit.value_or(0));
        made.data = open_data(chosen_data(arguments), made.model->graph);
        made.inputs.count = made.data->size();
        made.inputs.get = [data = made.data.get()](std::uint64_t i) {
            auto sample = data->sample(i);
            return CampaignInput{std::move(sample.inputs), sample.label, std::move(sample.name)};
        };
        made.header.data = file.data->path;
        made.header.data_hash = made.data->hash();
        for (const auto& note : made.data->notes()) {
            made.notes.push_back(note);
        }
        return;
    }
    auto spec = file.inputs;
    spec.seed = file.seed.value_or(0);
    spec.unknown_dims = spec.unknown_dims.value_or(1);
    auto inputs = make_inputs(*made.model, spec);
    for (const auto& note : inputs.notes) {
        made.notes.push_back(note);
    }
    made.header.data_hash = hash_of(inputs.values);
    made.inputs.count = 1;
    made.inputs.get = [values = std::move(inputs.values)](std::uint64_t) {
        return CampaignInput{values, std::nullopt, "input"};
    };
}

Sampling sampling_of(const CampaignFile& file) {
    Sampling sampling;
    sampling.seed = file.seed.value_or(0);
    sampling.exhaustive = file.exhaustive;
    sampling.faults_per_trial = file.faults_per_trial;
    sampling.by_layer = file.by_layer;
    sampling.by_bit = file.by_bit;
    sampling.by_target = file.by_target;
    sampling.allocation = file.allocation;
    sampling.importance = file.importance;
    sampling.list = file.list;
    sampling.trials = file.trials.value_or(1000);
    sampling.margin = file.margin.value_or(0);
    sampling.confidence = file.confidence;
    return sampling;
}

Monitoring monitoring_of(const CampaignFile& file) {
    Monitoring monitoring;
    monitoring.nan_everywhere = file.nan_everywhere;
    monitoring.ranges = file.ranges;
    monitoring.margin = file.range_margin;
    monitoring.only_correct = file.only_correct;
    monitoring.layers = file.layer_effects;
    monitoring.decision = file.decision;
    if (!file.metric.empty()) {
        monitoring.metric = metric_command(file.metric, file.answer_limit.value_or(0));
    }
    if (!file.postprocess.empty()) {
        monitoring.postprocess =
            postprocess_command(file.postprocess, file.answer_limit.value_or(0));
    }
    return monitoring;
}

// What tool libraries do comes after what commands do.
void take_tools(Prepared& made) {
    if (made.file.tools.empty()) {
        return;
    }
    const auto tools = load_evaluations(made.file.tools, made.file.seed.value_or(0));
    auto& monitoring = made.options.monitoring;
    if (tools.preprocess) {
        made.inputs.get = [get = made.inputs.get, make = tools.preprocess](std::uint64_t i) {
            auto input = get(i);
            input.values = make(input);
            return input;
        };
    }
    if (tools.postprocess) {
        monitoring.postprocess = [first = monitoring.postprocess, tools]() -> Postprocess {
            return [before = first ? first() : Postprocess(), after = tools.postprocess()](
                       const auto& outputs, const CampaignInput& input) {
                return after(before ? before(outputs, input) : outputs, input);
            };
        };
    }
    if (tools.metric) {
        monitoring.metric = [first = monitoring.metric, tools]() -> Metric {
            return [one = first ? first() : Metric(), more = tools.metric()](
                       const auto& golden, const auto& faulty, const CampaignInput& input) {
                auto all = one ? one(golden, faulty, input) : Metrics();
                for (auto& metric : more(golden, faulty, input)) {
                    all.push_back(std::move(metric));
                }
                return all;
            };
        };
    }
}

}  // namespace

Prepared prepare(CampaignFile file, Context& context) {
    if (!file.seed) {
        file.seed = context.seed();
    }
    // The engine goes by the model, where none is named.
    auto model = std::make_unique<Model>(context.load(file.model));
    return prepare(std::move(file), std::move(model), context.engine_options(), context.threads());
}

Prepared prepare(CampaignFile file, std::unique_ptr<Model> model,
                 const EngineOptions& engine_options, int threads) {
    Prepared made;
    made.file = std::move(file);
    made.model = std::move(model);
    made.engine_options = engine_options;
    made.engine = open(made.file, engine_options);
    find_inputs(made);
    made.file.view = campaign_view(made.file.view, made.engine->info());
    made.options.view = made.file.view;
    made.options.populations = made.file.populations;
    made.options.sampling = sampling_of(made.file);
    made.options.monitoring = monitoring_of(made.file);
    take_tools(made);
    made.options.accelerate = made.file.accelerate;
    made.options.inputs_per_fault = made.file.inputs_per_fault;
    made.options.memory_budget = made.file.memory;
    made.options.workers = made.file.workers > 0 ? made.file.workers : threads;
    made.options.audit = made.file.audit;
    made.options.isolate = made.file.isolate;
    made.options.time_limit = made.file.time_limit.value_or(0);
    auto& header = made.header;
    header.campaign = canonical_text(made.file);
    header.seed = *made.file.seed;
    header.model = made.file.model;
    header.model_sha256 = sha256_of_file(made.model->path);
    header.engine = made.engine->info().name;
    header.engine_version = made.engine->info().version;
    header.view = made.file.view == View::deployed ? "deployed" : "source";
    header.threads = made.options.workers;
    header.context.push_back({"campaign_file", campaign_text(made.file)});
    header.context.push_back({"kernels", kernel_set()});
    header.context.push_back({"inputs", fmt::format("{}", made.inputs.count)});
    return made;
}

Effect parse_effect(const std::string& text) {
    Effect effect;
    if (text == "bitflip" || text == "flip" || text == "stuck0" || text == "stuck1") {
        effect.kind = text == "stuck0"   ? Effect::Kind::stuck0
                      : text == "stuck1" ? Effect::Kind::stuck1
                                         : Effect::Kind::flip;
        return effect;
    }
    const bool rate = text.starts_with("rate ");
    try {
        effect = parse_faults("x [*] " + text + (rate ? " 0" : "")).front().effect;
    } catch (const Error&) {
        throw Error(Fault::usage, fmt::format("'{}' is no fault model", text),
                    "take bitflip, stuck0, stuck1, zero, 'set V', 'add V', 'multiply V', "
                    "'random LOW HIGH', 'noise SD', 'gain SD' or 'rate P'");
    }
    return effect;
}

}  // namespace trocar::inject
