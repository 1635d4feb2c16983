#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "trocar/error.h"
#include "trocar/op_store.h"

namespace trocar {

namespace {

// Of a machine of which nothing is known: only the order that follows from it matters.
constexpr double some_flops_per_ns = 20;
constexpr double some_bytes_per_ns = 10;
constexpr double some_call_ns = 300;

double guess(const OpFeatures& features) {
    const auto flops = 2 * features.macs + features.other_flops;
    const auto bytes = features.input_bytes + features.weight_bytes + features.output_bytes;
    return some_call_ns + std::max(flops / some_flops_per_ns, bytes / some_bytes_per_ns);
}

double mixed(double first, double second, double share) {
    return (1 - share) * first + share * second;
}

}  // namespace

std::vector<OpSample> samples(const OpDatabase& database, std::int64_t setting,
                              const ModeMix& mix) {
    std::map<std::string, OpConfig> configs;
    for (auto& config : database.configs()) {
        auto key = config.key;
        configs.emplace(std::move(key), std::move(config));
    }
    std::map<std::string, const OpMeasurement*> first;
    std::map<std::string, const OpMeasurement*> second;
    const auto newest = database.newest(setting);
    for (const auto& one : newest) {
        if (one.state == OpState::measured && !one.key.empty()) {
            if (one.mode == mix.first) {
                first[one.key] = &one;
            }
            if (one.mode == mix.second) {
                second[one.key] = &one;
            }
        }
    }
    std::vector<OpSample> all;
    for (const auto& [key, a] : first) {
        const auto b = mix.share > 0 ? second.find(key) : second.end();
        const auto* other = b == second.end() ? a : b->second;
        OpSample sample;
        sample.key = key;
        sample.features = configs[key].features;
        sample.ns = mixed(a->time.ns, other->time.ns, mix.share);
        if (!(sample.ns > 0)) {
            continue;  // shorter than what can be told: nothing is learned from it
        }
        sample.spread = (a->time.interval.high - a->time.interval.low) / 2 / sample.ns;
        sample.watts = a->energy.label == "unavailable" ? 0 : a->energy.watts;
        all.push_back(std::move(sample));
    }
    return all;
}

std::vector<OpModel> measured_models(const OpDatabase& database, std::int64_t setting, View unit) {
    std::map<std::string, const OpMeasurement*> wholes;
    std::set<std::string> nothing;  // operators that are shorter than what can be told
    const auto newest = database.newest(setting);
    for (const auto& one : newest) {
        if (one.state != OpState::measured) {
            continue;
        }
        if (one.key.empty()) {
            wholes[one.model] = &one;
        } else if (!(one.time.ns > 0)) {
            nothing.insert(one.key);
        }
    }
    std::map<std::int64_t, CallCost> costs;
    for (const auto& run : database.runs()) {
        costs[run.id] = run.cost;
    }
    std::vector<OpModel> all;
    for (const auto& facts : database.models()) {
        const auto whole = wholes.find(model_id(facts));
        if (facts.unit != unit || whole == wholes.end()) {
            continue;
        }
        OpModel model;
        model.name = facts.name;
        model.whole_ns = whole->second->time.ns;
        model.fixed_ns = costs[whole->second->run].run_ns;
        for (const auto& op : facts.ops) {
            if (!nothing.contains(op.config.key)) {
                model.operators.emplace_back(op.config.key, static_cast<double>(op.count));
            }
        }
        all.push_back(std::move(model));
    }
    return all;
}

std::vector<NextOp> next_ops(const OpDatabase& database, std::int64_t setting,
                             const OpModelFacts& model, const ModeMix& mix) {
    const auto known = samples(database, setting, mix);
    std::set<std::string> there;
    for (const auto& one : database.newest(setting)) {
        if (!one.key.empty() && one.mode == mix.first) {
            there.insert(one.key);  // failed ones too: measuring again would not help
        }
    }
    std::optional<OpPredictor> predictor;
    if (!known.empty()) {
        predictor.emplace(known);
    }
    std::vector<NextOp> all;
    for (const auto& op : model.ops) {
        if (there.contains(op.config.key)) {
            continue;
        }
        NextOp next;
        next.op = &op;
        const auto calls = static_cast<double>(op.count);
        if (predictor) {
            const auto one = predictor->predict(op.config.features);
            next.expected_ns = one.ns * calls;
            next.low_ns = one.low * calls;
            next.high_ns = one.high * calls;
        } else {
            next.guessed = true;
            next.expected_ns = next.low_ns = next.high_ns = guess(op.config.features) * calls;
        }
        all.push_back(next);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.expected_ns > b.expected_ns; });
    return all;
}

std::vector<UntilRound> measure_until(OpDatabase& database, const Model& model,
                                      const std::vector<NamedValue>& inputs,
                                      const MeasureOptions& options, double target,
                                      const std::optional<ModeMix>& mix,
                                      const std::function<void(const UntilRound&)>& seen) {
    std::string version;
    const auto facts = survey(model, inputs, options, &version);
    database.add(facts);
    const auto setting = database.add(setting_of(options.engine, version));
    std::vector<UntilRound> rounds;
    const auto low = target / 100;
    const auto high = 2 - low;
    const auto next_mix = mix.value_or(ModeMix{options.modes.front(), options.modes.front(), 0});
    for (;;) {
        UntilRound round;
        auto how = options;
        how.again = false;
        const auto next = next_ops(database, setting, facts, next_mix);
        if (rounds.empty()) {
            how.only = {"none"};  // only the whole: what is there of operators is looked at first
        } else {
            // As many as are expected to close the gap, and at least one.
            double expected = rounds.back().ratio;
            double total = 0;
            for (const auto& one : next) {
                total += one.expected_ns;
            }
            const auto gap = 1 - rounds.back().ratio;
            for (const auto& one : next) {
                how.only.push_back(one.op->config.key);
                round.measured.push_back(one.op->config.features.type);
                expected += total > 0 ? gap * one.expected_ns / total : gap;
                if (expected >= (1 + low) / 2) {
                    break;
                }
            }
            how.whole = false;
        }
        if (!rounds.empty() && how.only.empty()) {
            return rounds;  // nothing is left
        }
        const auto summary = measure(database, model, inputs, how);
        if (!summary.complete) {
            throw Error(Fault::interrupted, "interrupted: what was measured is kept");
        }
        const auto explanation = explain(database, setting, model_id(facts), mix);
        round.ratio = explanation.ratio();
        round.left = static_cast<std::size_t>(
            std::count_if(explanation.ops.begin(), explanation.ops.end(),
                          [](const auto& op) { return !op.ns.has_value(); }));
        rounds.push_back(round);
        if (seen) {
            seen(round);
        }
        if (round.ratio >= low && round.ratio <= high) {
            return rounds;
        }
    }
}

}  // namespace trocar
