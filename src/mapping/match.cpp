#include "mapping/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "util/text.h"

namespace trocar::mapping {

namespace {

class Matcher {
public:
    Matcher(const Rule& rule, const Graph& graph, const std::string& dialect)
        : rule_(rule), graph_(graph), dialect_(dialect) {}

    std::optional<Match> at(OpId anchor, std::string& why) {
        match_.ops.assign(rule_.match.size(), OpId::none);
        if (!op(rule_.match.size() - 1, anchor)) {
            why = why_;
            return std::nullopt;
        }
        for (std::size_t i = 0; i < match_.ops.size(); ++i) {
            if (match_.ops[i] == OpId::none) {
                return std::nullopt;
            }
        }
        if (!closed()) {
            why = "what it computes on the way is read elsewhere too";
            return std::nullopt;
        }
        return std::move(match_);
    }

private:
    // Takes `id` for the rule's op `place`; back to what it was where that fails.
    bool op(std::size_t place, OpId id) {
        const auto& wanted = rule_.match[place];
        const auto& op = graph_.op(id);
        const auto type = rule_type(op, dialect_);
        if (std::find(wanted.types.begin(), wanted.types.end(), type) == wanted.types.end()) {
            return false;
        }
        if (match_.ops[place] != OpId::none) {
            return match_.ops[place] == id;
        }
        const auto before = match_;
        for (const bool swapped : {false, true}) {
            if (swapped && (!wanted.unordered || op.inputs.size() != 2)) {
                break;
            }
            match_.ops[place] = id;
            auto inputs = op.inputs;
            if (swapped) {
                std::swap(inputs[0], inputs[1]);
            }
            if (outputs(wanted, id, op) && take_inputs(wanted, inputs)) {
                return true;
            }
            match_ = before;
        }
        return false;
    }

    bool outputs(const MatchedOp& wanted, OpId id, const Op& op) {
        RuleValue::List rest;
        for (std::size_t i = 0; i < std::max(op.outputs.size(), wanted.outputs.size()); ++i) {
            const auto tensor = i < op.outputs.size() ? op.outputs[i] : TensorId::none;
            if (i >= wanted.outputs.size() && !wanted.outputs.back().rest) {
                if (tensor != TensorId::none && is_read(tensor)) {
                    why_ = fmt::format("its output {} is read", i);
                    return false;
                }
                continue;
            }
            const auto& place = wanted.outputs[std::min(i, wanted.outputs.size() - 1)];
            match_.makers[place.name] = id;
            const RuleValue value =
                tensor == TensorId::none ? RuleValue() : RuleValue(TensorRef{.source = tensor});
            if (place.rest) {
                rest.push_back(value);
                match_.names[place.name] = RuleValue::list(rest);
            } else if (!bind(place.name, value)) {
                return false;
            }
        }
        return true;
    }
    bool is_read(TensorId tensor) const {
        const auto& facts = graph_.tensor(tensor);
        return !facts.uses.empty() || facts.is_output;
    }

    bool take_inputs(const MatchedOp& wanted, const std::vector<TensorId>& inputs) {
        RuleValue::List rest;
        bool all = false;
        for (std::size_t i = 0; i < std::max(inputs.size(), wanted.inputs.size()); ++i) {
            if (i >= wanted.inputs.size() && !all) {
                why_ = fmt::format("it has {} inputs", inputs.size());
                return false;
            }
            const auto& place = wanted.inputs[std::min(i, wanted.inputs.size() - 1)];
            const auto tensor = i < inputs.size() ? inputs[i] : TensorId::none;
            if (place.rest) {
                all = true;
                if (i < inputs.size()) {
                    rest.push_back(tensor == TensorId::none
                                       ? RuleValue()
                                       : RuleValue(TensorRef{.source = tensor}));
                }
                match_.names[place.name] = RuleValue::list(rest);
                continue;
            }
            if (tensor == TensorId::none) {
                if (!place.optional) {
                    why_ = fmt::format("its input {} is missing", i);
                    return false;
                }
                match_.names[place.name] = RuleValue();
                continue;
            }
            if (!bind(place.name, TensorRef{.source = tensor}) ||
                !made_by_rule(place.name, tensor)) {
                return false;
            }
        }
        return true;
    }

    // Where another op of the rule makes what is called so, it must be made that way.
    bool made_by_rule(const std::string& name, TensorId tensor) {
        for (std::size_t i = 0; i + 1 < rule_.match.size(); ++i) {
            const auto& outs = rule_.match[i].outputs;
            for (std::size_t slot = 0; slot < outs.size(); ++slot) {
                if (outs[slot].name != name) {
                    continue;
                }
                const auto& facts = graph_.tensor(tensor);
                if (facts.producer == OpId::none || facts.producer_slot != slot) {
                    why_ = fmt::format("its input '{}' is not made by {}", name,
                                       join(rule_.match[i].types, " or "));
                    return false;
                }
                if (!op(i, facts.producer)) {
                    if (why_.empty()) {
                        why_ = fmt::format("its input '{}' is not made by {}", name,
                                           join(rule_.match[i].types, " or "));
                    }
                    return false;
                }
                return true;
            }
        }
        return true;
    }

    bool bind(const std::string& name, const RuleValue& value) {
        if (name == "_") {
            return true;
        }
        const auto [at, fresh] = match_.names.emplace(name, value);
        if (fresh) {
            return true;
        }
        const auto* there = at->second.tensor();
        const auto* here = value.tensor();
        return there != nullptr && here != nullptr && there->source == here->source;
    }

    // Nothing outside reads what is made inside, but for the anchor's outputs.
    bool closed() const {
        const std::set<OpId> inside(match_.ops.begin(), match_.ops.end());
        for (const auto id : match_.ops) {
            if (id == match_.ops.back()) {
                continue;
            }
            for (const auto tensor : graph_.op(id).outputs) {
                if (tensor == TensorId::none) {
                    continue;
                }
                const auto& facts = graph_.tensor(tensor);
                if (facts.is_output ||
                    std::any_of(facts.uses.begin(), facts.uses.end(), [&](const Use& use) {
                        return !inside.contains(use.op) || use.slot == Use::captured;
                    })) {
                    return false;
                }
            }
        }
        return true;
    }

    const Rule& rule_;
    const Graph& graph_;
    const std::string& dialect_;
    Match match_;
    std::string why_;
};

}  // namespace

std::string rule_type(const Op& op, const std::string& dialect) {
    auto type = op.type;
    if (!op.overload.empty()) {
        // "aten.add.Tensor": with an overload the dialect is said too.
        type = fmt::format("{}.{}.{}", op.domain.empty() ? dialect : op.domain, type, op.overload);
    } else if (!op.domain.empty()) {
        type = fmt::format("{}.{}", op.domain, type);
    }
    return type;
}

void set_type(OpSpec& op, const std::string& rule_type, const std::string& dialect) {
    const auto parts = split(rule_type, '.');
    op.type = parts.back();
    if (parts.size() == 1) {
        return;
    }
    if (parts.front() == dialect) {
        op.type = parts[1];
        op.overload = parts.size() > 2 ? parts[2] : "";
    } else if (dialect == "aten" && parts.size() == 3) {
        op.domain = parts[0];
        op.type = parts[1];
        op.overload = parts[2];
    } else {
        op.domain = rule_type.substr(0, rule_type.size() - op.type.size() - 1);
    }
}

std::optional<Match> find_match(const Rule& rule, const Graph& graph, const std::string& dialect,
                                OpId anchor, std::string& why) {
    return Matcher(rule, graph, dialect).at(anchor, why);
}

}  // namespace trocar::mapping
