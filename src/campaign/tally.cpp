#include "campaign/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace trocar::campaign {

namespace {

// Texts by place, each once.
class Names {
public:
    explicit Names(std::vector<std::string>& names) : names_(names) {}
    std::uint32_t place(const std::string& name) {
        const auto [at, fresh] = places_.emplace(name, static_cast<std::uint32_t>(names_.size()));
        if (fresh) {
            names_.push_back(name);
        }
        return at->second;
    }

private:
    std::vector<std::string>& names_;
    std::map<std::string, std::uint32_t> places_;
};

void add(TrialTally& trial, const TrialResult& result) {
    const auto count = [&](Count what, bool holds = true) {
        trial.counts[static_cast<std::size_t>(what)] += holds ? 1 : 0;
    };
    count(Count::results);
    count(Count::crash, result.outcome == Outcome::crash);
    count(Count::hang, result.outcome == Outcome::hang);
    count(Count::failed, result.outcome == Outcome::failed);
    count(Count::due, result.outcome == Outcome::due);
    count(Count::sdc, result.outcome == Outcome::sdc);
    count(Count::benign, result.outcome == Outcome::benign);
    count(Count::masked, result.outcome == Outcome::masked);
    count(Count::sdc5, result.sdc5);
    count(Count::sdc10, result.sdc10);
    count(Count::sdc20, result.sdc20);
    const bool harmful = result.outcome <= Outcome::sdc;
    count(harmful ? Count::harmful : Count::harmless);
    count(harmful ? Count::harmful_detected : Count::false_alarms, result.detected);
    if (result.golden_correct) {
        count(Count::labelled);
        count(Count::golden_correct, *result.golden_correct);
        count(Count::faulty_correct, result.faulty_correct.value_or(false));
    }
    trial.counts[static_cast<std::size_t>(Count::positions)] += result.positions;
    trial.counts[static_cast<std::size_t>(Count::changed)] += result.changed;
    if (result.max_abs > trial.max_abs) {
        trial.max_abs = static_cast<float>(result.max_abs);
    }
}

std::vector<Named> grouped(const Tally& tally,
                           const std::function<std::int64_t(const TrialTally&)>& key,
                           const std::function<std::string(std::int64_t)>& name) {
    std::map<std::int64_t, Group> groups;
    for (const auto& trial : tally.trials) {
        groups[key(trial)].push_back(&trial);
    }
    std::vector<Named> named;
    for (auto& [which, group] : groups) {
        named.push_back({name(which), std::move(group), which});
    }
    return named;
}

}  // namespace

std::uint64_t Tally::total(Count what) const {
    std::uint64_t sum = 0;
    for (const auto& trial : trials) {
        sum += trial[what];
    }
    return sum;
}

Tally tally(const CampaignStore& store, std::uint64_t blocks) {
    Tally all;
    all.strata = store.strata();
    if (!store.header().decision.empty()) {
        all.decision = parse_decision(store.header().decision);
        all.decision_meaning = store.header().decision_meaning;
    }
    Names targets(all.targets);
    Names layers(all.layers);
    for (const auto& stratum : all.strata) {
        if (!stratum.target.empty()) {
            targets.place(stratum.target);
        }
        if (!stratum.layer.empty()) {
            layers.place(stratum.layer);
        }
    }
    store.each_fault([&](const FaultRecord& fault) {
        auto& trial = all.trials.emplace_back();
        trial.trial = fault.trial;
        trial.stratum = fault.stratum;
        trial.weight = static_cast<float>(fault.weight);
        trial.target = targets.place(fault.target);
        trial.layer = layers.place(fault.layer);
        trial.bit = fault.bit;
        trial.rate = static_cast<float>(fault.rate);
        return true;
    });
    // Both come in the order of trials.
    std::size_t at = 0;
    std::set<std::uint64_t> inputs;
    store.each_result([&](const TrialResult& result) {
        while (at < all.trials.size() && all.trials[at].trial < result.trial) {
            ++at;
        }
        if (at == all.trials.size() || all.trials[at].trial != result.trial) {
            TrialTally fresh;
            fresh.trial = result.trial;
            fresh.target = targets.place("");
            fresh.layer = layers.place("");
            fresh.rate = std::numeric_limits<float>::quiet_NaN();
            all.trials.insert(all.trials.begin() + static_cast<std::ptrdiff_t>(at), fresh);
        }
        add(all.trials[at], result);
        all.most_positions = std::max(all.most_positions, result.positions);
        const auto measured = [&](const std::string& metric, double number) {
            if (std::isnan(number)) {
                return;
            }
            auto& sums = all.metrics[metric];
            if (sums.empty() || sums.back().trial != result.trial) {
                sums.push_back({result.trial});
            }
            ++sums.back().results;
            sums.back().sum += number;
        };
        measured("metric", result.metric);
        for (const auto& [metric, number] : result.metrics) {
            measured(metric, number);
        }
        inputs.insert(result.input);
        return true;
    });
    std::erase_if(all.trials, [](const TrialTally& trial) { return trial[Count::results] == 0; });
    keep_whole_blocks(store, blocks, inputs.size(), all);
    for (const auto& trial : all.trials) {
        ++all.drawn[trial.stratum];
    }
    all.inputs = inputs.size();
    return all;
}

Group everything(const Tally& tally) {
    Group group;
    for (const auto& trial : tally.trials) {
        group.push_back(&trial);
    }
    return group;
}

std::vector<Named> by_target(const Tally& tally) {
    return grouped(
        tally, [](const TrialTally& trial) { return std::int64_t{trial.target}; },
        [&](std::int64_t place) {
            const auto& name = tally.targets[static_cast<std::size_t>(place)];
            return name.empty() ? std::string("(several)") : name;
        });
}

std::vector<Named> by_layer(const Tally& tally) {
    return grouped(
        tally, [](const TrialTally& trial) { return std::int64_t{trial.layer}; },
        [&](std::int64_t place) {
            const auto& name = tally.layers[static_cast<std::size_t>(place)];
            return name.empty() ? std::string("(several)") : name;
        });
}

std::vector<Named> by_bit(const Tally& tally) {
    return grouped(
        tally, [](const TrialTally& trial) { return std::int64_t{trial.bit}; },
        [](std::int64_t bit) { return bit < 0 ? "(several)" : fmt::format("{}", bit); });
}

}  // namespace trocar::campaign
