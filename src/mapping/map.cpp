#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "mapping/evaluate.h"
#include "mapping/fuse.h"
#include "mapping/integers.h"
#include "mapping/layout.h"
#include "mapping/match.h"
#include "mapping/rule_files.h"
#include "trocar/engine.h"
#include "trocar/error.h"
#include "trocar/mapping.h"
#include "util/op_label.h"
#include "util/text.h"

namespace trocar {

namespace mapping {

namespace {

// A rule of one of the files that are in use.
struct Choice {
    const RuleFile* file;
    const Rule* rule;
};

class Mapper {
public:
    Mapper(const Graph& source, const std::string& dialect, const RuleFiles& files, Mapped& result)
        : source_(source),
          dialect_(dialect),
          result_(result),
          builder_(source_, result_.model.graph, *files.back()) {
        for (const auto& file : files) {
            for (const auto& rule : file->rules) {
                for (const auto& type : rule->match.back().types) {
                    choices_[type].push_back({file.get(), rule.get()});
                }
            }
        }
        // Rules of several ops are asked before those of fewer; otherwise in order.
        for (auto& [type, list] : choices_) {
            std::stable_sort(list.begin(), list.end(), [](const Choice& a, const Choice& b) {
                return a.rule->match.size() > b.rule->match.size();
            });
        }
    }

    void run() {
        auto& target = result_.model.graph;
        for (const auto input : source_.inputs()) {
            const auto& facts = source_.tensor(input);
            builder_.set(input, target.add_input(facts.name, facts.type));
        }
        claim();
        for (const auto op : source_.ops()) {
            if (!claimed_.contains(op) || claimed_.at(op) == op) {
                map(op);
            }
        }
        outputs();
    }

private:
    // Ops that a rule of several ops takes, from the end on: to the op that ends it.
    void claim() {
        for (auto op = source_.last(); op != OpId::none; op = source_.previous(op)) {
            if (claimed_.contains(op)) {
                continue;
            }
            for (const auto& choice : of(op)) {
                if (choice.rule->match.size() < 2) {
                    break;
                }
                std::string why;
                const auto match = find_match(*choice.rule, source_, dialect_, op, why);
                if (match && std::none_of(match->ops.begin(), match->ops.end(),
                                          [&](OpId one) { return claimed_.contains(one); })) {
                    for (const auto one : match->ops) {
                        claimed_[one] = op;
                    }
                    taken_[op] = {choice, *match};
                    break;
                }
            }
        }
    }
    const std::vector<Choice>& of(OpId op) const {
        static const std::vector<Choice> none;
        const auto at = choices_.find(rule_type(source_.op(op), dialect_));
        return at == choices_.end() ? none : at->second;
    }

    void map(OpId op) {
        if (const auto at = taken_.find(op); at != taken_.end()) {
            const auto& [choice, match] = at->second;
            std::string why;
            if (apply_rule(choice, match, why)) {
                for (const auto one : match.ops) {
                    note(one, MappedOp::State::mapped, choice.rule->name, "");
                }
                return;
            }
            // Then one by one; those before the last are read by nobody else.
            auto inner = match.ops;
            std::sort(inner.begin(), inner.end(),
                      [&](OpId a, OpId b) { return source_.before(a, b); });
            for (const auto one : inner) {
                map_one(one);
            }
            return;
        }
        map_one(op);
    }

    // An op that is the same in the target's words, as those of instruments are.
    void carry(OpId op) {
        auto& target = result_.model.graph;
        OpSpec spec = static_cast<const OpSpec&>(source_.op(op));
        for (auto& input : spec.inputs) {
            input = input == TensorId::none ? input : builder_.tensor(input, true);
        }
        for (auto& output : spec.outputs) {
            if (output != TensorId::none) {
                const auto& facts = source_.tensor(output);
                const auto made = target.add_tensor(facts.name, facts.type);
                builder_.set(output, made);
                given_.insert(made);
                output = made;
            }
        }
        target.append(std::move(spec));
    }

    void map_one(OpId op) {
        if (source_.op(op).outputs.empty() && source_.op(op).domain != host_domain) {
            note(op, MappedOp::State::mapped, "left out: it makes nothing", "");
            return;
        }
        const auto& inputs = source_.op(op).inputs;
        if (std::any_of(inputs.begin(), inputs.end(), [&](TensorId id) {
                return id != TensorId::none && !builder_.has(id) && !source_.tensor(id).constant;
            })) {
            note(op, MappedOp::State::impossible, "", "it reads what cannot be mapped");
            return;
        }
        if (source_.op(op).domain == host_domain) {
            carry(op);
            note(op, MappedOp::State::mapped, "as it is", "");
            return;
        }
        std::string reasons;
        for (const auto& choice : of(op)) {
            if (choice.rule->match.size() > 1) {
                continue;
            }
            std::string why;
            const auto match = find_match(*choice.rule, source_, dialect_, op, why);
            if (match && apply_rule(choice, *match, why)) {
                note(op, MappedOp::State::mapped, choice.rule->name, "");
                return;
            }
            if (!why.empty() && reasons.find(why) == std::string::npos) {
                reasons += (reasons.empty() ? "" : "; ") + why;
            }
        }
        // Rules of a dialect to itself say what changes.
        if (reasons.empty() && dialect_ == result_.model.dialect) {
            carry(op);
            note(op, MappedOp::State::mapped, "as it is", "");
            return;
        }
        note(op, MappedOp::State::impossible, "",
             reasons.empty() ? fmt::format("no rule maps {}", rule_type(source_.op(op), dialect_))
                             : reasons);
    }

    bool apply_rule(const Choice& choice, const Match& match, std::string& why) {
        builder_.use(*choice.file);
        builder_.begin(match);
        try {
            const auto values = apply(*choice.rule, match, builder_);
            const auto& outputs = source_.op(match.ops.back()).outputs;
            for (std::size_t i = 0; i < values.size() && i < outputs.size(); ++i) {
                if (outputs[i] != TensorId::none && !values[i].is_none()) {
                    give(outputs[i], values[i], *choice.rule);
                }
            }
        } catch (const Declined& declined) {
            why = declined.why;
            builder_.roll_back();
            return false;
        }
        if (!builder_.made_ops().empty()) {
            const auto& name = source_.op(match.ops.back()).name;
            if (!name.empty()) {
                builder_.rename(builder_.made_ops().back(), name);
            }
        }
        return true;
    }

    // What the rule made of an output becomes the tensor of that name.
    void give(TensorId source, const Value& value, const Rule& rule) {
        auto& target = result_.model.graph;
        const auto& facts = source_.tensor(source);
        const auto* how = rule.raw ? nullptr : quantization_of(facts);
        if (const auto* constant = value.constant()) {
            builder_.set(source, target.add_constant(facts.name, *constant));
            return;
        }
        const auto* tensor = value.tensor();
        if (tensor == nullptr) {
            throw Error(Fault::input,
                        fmt::format("rule '{}' makes {} of an output", rule.name, value.kind()));
        }
        auto made = tensor->made;
        if (made == TensorId::none) {
            if (how != nullptr) {
                // Passed on, and another quantisation: through real numbers.
                made = builder_.tensor(tensor->source, false);
            } else {
                builder_.set(source, builder_.tensor(tensor->source, rule.raw));
                return;
            }
        }
        if (how != nullptr) {
            made = builder_.quantized(source, made);
        }
        const auto& current = target.tensor(made);
        const bool shared = std::find(given_.begin(), given_.end(), made) != given_.end();
        if (current.producer == OpId::none || shared) {
            builder_.set(source, made);
            return;
        }
        target.rename(made, facts.name);
        target.set_type(made, facts.type);
        given_.insert(made);
        builder_.set(source, made);
    }

    void note(OpId op, MappedOp::State state, const std::string& rule, const std::string& why) {
        const auto& facts = source_.op(op);
        result_.ops.push_back(
            {state, op, rule_type(facts, dialect_), op_label(source_, op), rule, why});
    }

    void outputs() {
        auto& target = result_.model.graph;
        std::vector<TensorId> all;
        for (const auto output : source_.outputs()) {
            const auto& facts = source_.tensor(output);
            TensorId made = TensorId::none;
            if (builder_.has(output)) {
                made = builder_.tensor(output, true);
            } else if (facts.constant) {
                made = target.add_constant(facts.name, *facts.constant);
            } else {
                continue;  // what makes it was not mapped
            }
            if (target.tensor(made).name != facts.name && !builder_.rules().copy.empty()) {
                OpSpec spec;
                set_type(spec, builder_.rules().copy, result_.model.dialect);
                spec.name = facts.name + "/" + spec.type;
                spec.inputs = {made};
                spec.outputs = {target.add_tensor(facts.name, facts.type)};
                made = spec.outputs[0];
                target.append(std::move(spec));
            }
            all.push_back(made);
        }
        target.set_outputs(all);
    }

    const Graph& source_;
    const std::string& dialect_;
    Mapped& result_;
    Builder builder_;
    std::map<std::string, std::vector<Choice>> choices_;
    std::map<OpId, OpId> claimed_;
    std::map<OpId, std::pair<Choice, Match>> taken_;
    std::set<TensorId> given_;
};

}  // namespace

}  // namespace mapping

namespace {

constexpr std::int64_t onnx_ir_version = 10;  // that knows the newest op set rules write

}  // namespace

bool Mapped::complete() const {
    return std::none_of(ops.begin(), ops.end(),
                        [](const MappedOp& op) { return op.state == MappedOp::State::impossible; });
}

Mapped map_model(const Model& model, const std::string& dialect, const MapOptions& options) {
    const auto files = mapping::rule_files(model.dialect, dialect, options.rules);
    Mapped mapped;
    auto& target = mapped.model;
    target.dialect = dialect;
    target.graph.name = model.graph.name;
    target.graph.doc = model.graph.doc;
    target.producer = "trocar";
    target.doc = model.doc;
    target.metadata = model.metadata;
    target.opsets = {{"", files.back()->version}};
    target.ir_version = dialect == "onnx" ? onnx_ir_version : 0;
    mapping::Mapper(model.graph, model.dialect, files, mapped).run();
    std::sort(mapped.ops.begin(), mapped.ops.end(),
              [&](const MappedOp& a, const MappedOp& b) { return model.graph.before(a.op, b.op); });
    const auto& layout = files.back()->layout;
    mapped.transposes_made = mapping::count_transposes(target.graph, layout);
    if (options.tidy && mapped.complete()) {
        mapping::tidy_layout(target.graph, layout);
        mapping::fuse_activations(target.graph, files.back()->fused);
        mapped.integers = mapping::use_integers(target.graph, *files.back());
    }
    mapped.transposes_left = mapping::count_transposes(target.graph, layout);
    std::set<std::string> domains;
    for (const auto op : target.graph.ops()) {
        domains.insert(target.graph.op(op).domain);
    }
    for (const auto& domain : domains) {
        if (!domain.empty()) {
            target.opsets.push_back({domain, 1});
        }
    }
    target.graph.remove_unused();
    return mapped;
}

}  // namespace trocar
