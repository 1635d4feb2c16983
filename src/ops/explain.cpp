#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "trocar/error.h"
#include "trocar/op_store.h"
#include "util/text.h"

namespace trocar {

namespace {

// Modes that a sum may be made in, and which one stands in where an operator does not have it: one
// without weights cannot have them streamed.
constexpr std::array<CacheMode, cache_modes> all_modes{
    CacheMode::reuse, CacheMode::stream_inputs, CacheMode::stream_weights,
    CacheMode::cold,  CacheMode::in_situ,       CacheMode::chain};
std::optional<CacheMode> stand_in(CacheMode mode) {
    switch (mode) {
        case CacheMode::stream_weights:
            return CacheMode::stream_inputs;
        case CacheMode::chain:
            return CacheMode::reuse;
        default:
            return std::nullopt;
    }
}

// All that was measured with one setting.
class Times {
public:
    explicit Times(const std::vector<OpMeasurement>& newest) {
        for (const auto& one : newest) {
            if (one.key.empty()) {
                wholes_[one.model] = one;
            } else {
                by_key_[{one.key, one.mode}] = one;
            }
        }
    }

    const OpMeasurement* find(const std::string& key, CacheMode mode) const {
        const auto at = by_key_.find({key, mode});
        if (at != by_key_.end() && at->second.state == OpState::measured) {
            return &at->second;
        }
        const auto other = stand_in(mode);
        return other && at != by_key_.end() && at->second.state == OpState::not_applicable
                   ? find(key, *other)
                   : nullptr;
    }
    // Why there is no time.
    std::string why(const std::string& key, CacheMode mode) const {
        const auto at = by_key_.find({key, mode});
        return at == by_key_.end()
                   ? "not measured"
                   : fmt::format("{}: {}", name(at->second.state), at->second.reason);
    }
    const OpMeasurement* whole(const std::string& model) const {
        const auto at = wholes_.find(model);
        return at != wholes_.end() && at->second.state == OpState::measured ? &at->second : nullptr;
    }

    std::optional<double> time(const std::string& key, const ModeMix& mix) const {
        const auto* first = find(key, mix.first);
        const auto* second = mix.share > 0 ? find(key, mix.second) : first;
        if (first == nullptr || second == nullptr) {
            return std::nullopt;
        }
        return (1 - mix.share) * first->time.ns + mix.share * second->time.ns;
    }

    // Has the mix every operator of the model that any mode has?
    bool serves(const OpModelFacts& model, const ModeMix& mix) const {
        bool some = false;
        for (const auto& op : model.ops) {
            const auto& key = op.config.key;
            const bool here = time(key, mix).has_value();
            some = some || here;
            if (!here && std::any_of(all_modes.begin(), all_modes.end(),
                                     [&](CacheMode mode) { return find(key, mode) != nullptr; })) {
                return false;
            }
        }
        return some;
    }

    // Of all operators; empty where one is missing.
    std::optional<double> sum(const OpModelFacts& model, const ModeMix& mix) const {
        double all = 0;
        for (const auto& op : model.ops) {
            const auto one = time(op.config.key, mix);
            if (!one) {
                return std::nullopt;
            }
            all += *one * static_cast<double>(op.count);
        }
        return all;
    }

private:
    std::map<std::pair<std::string, CacheMode>, OpMeasurement> by_key_;
    std::map<std::string, OpMeasurement> wholes_;
};

std::vector<ModeMix> candidates() {
    std::vector<ModeMix> all;
    for (const auto mode : all_modes) {
        all.push_back({mode, mode, 0});
    }
    for (const auto first : all_modes) {
        for (const auto second : all_modes) {
            if (first < second) {
                for (const double share : {0.25, 0.5, 0.75}) {
                    all.push_back({first, second, share});
                }
            }
        }
    }
    return all;
}

// A mix has to bring sums nearer to their wholes by this much on average than a single mode: with
// few models it otherwise follows their noise.
constexpr double worth_of_a_mix = 0.02;

struct Choice {
    ModeMix mix;
    std::size_t models = 0;
};

// What represents other models best: their sums against their wholes.
Choice choose(const std::vector<OpModelFacts>& models, const Times& times,
              const OpModelFacts& asked, double dispatch) {
    Choice best;
    double least = 0;
    for (const auto& mix : candidates()) {
        if (!times.serves(asked, mix)) {
            continue;
        }
        double error = 0;
        std::size_t count = 0;
        for (const auto& model : models) {
            const auto* whole = times.whole(model_id(model));
            if (model.sha256 == asked.sha256 || model.unit != asked.unit || whole == nullptr) {
                continue;
            }
            if (const auto sum = times.sum(model, mix)) {
                error += std::abs(std::log((*sum + dispatch) / whole->time.ns));
                ++count;
            }
        }
        if (count == 0) {
            continue;
        }
        // One that more models speak for is to be believed.
        const auto score =
            error / static_cast<double>(count) + (mix.share > 0 ? worth_of_a_mix : 0);
        if (best.models == 0 || count > best.models || (count == best.models && score < least)) {
            best = {mix, count};
            least = score;
        }
    }
    return best;
}

// Joules are known of modes that only run the operator: another one stands in for the rest.
void add_energy(Explanation& explanation, const Times& times) {
    const auto known = [](const OpMeasurement* one) {
        return one != nullptr && one->energy.label != "unavailable";
    };
    if (!known(&explanation.whole)) {
        explanation.energy_why = explanation.whole.energy.why;
        return;
    }
    explanation.whole_j = explanation.whole.energy.net;
    double sum = 0;
    for (const auto& op : explanation.model.ops) {
        const auto* one = times.find(op.config.key, explanation.mix.first);
        if (!known(one)) {
            one = times.find(op.config.key, CacheMode::reuse);
        }
        if (!known(one)) {
            explanation.energy_why =
                fmt::format("no joules are known of {}", op.config.features.type);
            return;
        }
        sum += one->energy.net * static_cast<double>(op.count);
    }
    explanation.measured_j = sum;
}

std::size_t port_count(const OpModelFacts& model) {
    return 1 + static_cast<std::size_t>(std::count(model.inputs.begin(), model.inputs.end(), ','));
}

}  // namespace

std::string text(const ModeMix& mix) {
    return mix.share <= 0 ? name(mix.first)
                          : fmt::format("{:g} {} + {:g} {}", 1 - mix.share, name(mix.first),
                                        mix.share, name(mix.second));
}

ModeMix usual_mix(const OpDatabase& database, std::int64_t setting) {
    auto usual = cache_modes;
    for (const auto& one : database.newest(setting)) {
        if (one.key.empty() || one.state != OpState::measured) {
            continue;
        }
        if (one.mode == CacheMode::in_situ) {
            return {one.mode, one.mode, 0};
        }
        usual = std::min(usual, static_cast<std::size_t>(one.mode));
    }
    const auto mode = usual < cache_modes ? all_modes[usual] : CacheMode::reuse;
    return {mode, mode, 0};
}

ModeMix parse_mode_mix(const std::string& text) {
    const auto parts = split(text, '+');
    if (parts.size() == 1) {
        const auto mode = parse_cache_mode(trim(text));
        return {mode, mode, 0};
    }
    ModeMix mix;
    double total = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto part = std::string(trim(parts[i]));
        const auto space = part.find(' ');
        double share = 0;
        const auto read =
            std::from_chars(part.data(), part.data() + std::min(space, part.size()), share);
        if (space == std::string::npos || read.ec != std::errc{} || parts.size() != 2 ||
            share < 0 || share > 1) {
            throw Error(Fault::usage, fmt::format("'{}' is no mix of two cache modes", text),
                        "as in '0.5 reuse + 0.5 stream-inputs'");
        }
        (i == 0 ? mix.first : mix.second) = parse_cache_mode(trim(part.substr(space)));
        mix.share = share;
        total += share;
    }
    if (std::abs(total - 1) > 1e-6) {
        throw Error(Fault::usage, fmt::format("the shares in '{}' do not add up to 1", text));
    }
    return mix;
}

double Explanation::ratio() const {
    return whole_ns() > 0 ? (measured_ns + dispatch_ns) / whole_ns() : 0;
}

Explanation explain(const OpDatabase& database, std::int64_t setting, const std::string& id,
                    const std::optional<ModeMix>& mix) {
    const auto models = database.models();
    const auto at = std::find_if(models.begin(), models.end(),
                                 [&](const auto& model) { return model_id(model) == id; });
    if (at == models.end()) {
        throw Error(Fault::input, "the database does not have this model with these inputs",
                    "`trocar ops measure MODEL --db FILE` adds it");
    }
    const Times times(database.newest(setting));
    const auto* whole = times.whole(id);
    if (whole == nullptr) {
        throw Error(Fault::input, "the model as a whole was not measured here",
                    "`trocar ops measure MODEL --db FILE` measures it");
    }
    Explanation explanation;
    explanation.model = *at;
    explanation.whole = *whole;
    CallCost cost;
    for (const auto& run : database.runs()) {
        if (run.id == whole->run) {
            cost = run.cost;
        }
    }
    explanation.dispatch_ns = cost.run_ns + cost.port_ns * static_cast<double>(port_count(*at) - 1);
    if (mix) {
        explanation.mix = *mix;
    } else {
        const auto choice = choose(models, times, *at, explanation.dispatch_ns);
        explanation.mix = choice.models > 0 ? choice.mix : usual_mix(database, setting);
        explanation.chosen_on = choice.models;
    }
    for (const auto& op : explanation.model.ops) {
        ExplainedOp one;
        one.op = &op;
        const auto calls = static_cast<double>(op.count);
        if (const auto ns = times.time(op.config.key, explanation.mix)) {
            one.ns = *ns * calls;
            explanation.measured_ns += *one.ns;
            one.grade = times.find(op.config.key, explanation.mix.first)->time.grade;
        } else {
            one.why = times.why(op.config.key, explanation.mix.first);
            explanation.unmeasured += op.count;
        }
        explanation.ops.push_back(std::move(one));
    }
    add_energy(explanation, times);
    std::stable_sort(
        explanation.ops.begin(), explanation.ops.end(),
        [](const auto& a, const auto& b) { return a.ns.value_or(0) > b.ns.value_or(0); });
    for (const auto mode : all_modes) {
        if (const auto sum = times.sum(*at, {mode, mode, 0})) {
            explanation.otherwise.emplace_back(name(mode), *sum + explanation.dispatch_ns);
        }
    }
    for (const auto& model : models) {
        if (model.sha256 == at->sha256 && model.inputs == at->inputs && model.unit != at->unit) {
            if (const auto sum = times.sum(model, explanation.mix)) {
                explanation.otherwise.emplace_back(
                    model.unit == View::source ? "the model's own ops, unfused" : "fused ops",
                    *sum + explanation.dispatch_ns);
            }
        }
    }
    return explanation;
}

}  // namespace trocar
