#include <fmt/format.h>

#include <algorithm>

#include "mapping/fuse.h"
#include "mapping/integers.h"
#include "mapping/layout.h"
#include "mapping/mapper.h"
#include "trocar/engine.h"
#include "trocar/error.h"
#include "util/aten_types.h"
#include "util/op_label.h"

namespace trocar {

namespace mapping {

namespace {

// Those of instruments, and those that say where ExecuTorch goes on.
bool has_effects(const Op& op) {
    return op.domain == host_domain || op.domain == "executorch";
}

}  // namespace

MapJob::MapJob(const Model& model, const RuleFiles& rules)
    : dialect(model.dialect), files(rules), bodies(model.functions) {
    for (const auto& file : files) {
        for (const auto& rule : file->rules) {
            for (const auto& type : rule->match.back().types) {
                choices[type].push_back({file.get(), rule.get()});
            }
        }
    }
    // Rules of several ops are asked before those of fewer; otherwise in order.
    for (auto& [type, list] : choices) {
        std::stable_sort(list.begin(), list.end(), [](const Choice& a, const Choice& b) {
            return a.rule->match.size() > b.rule->match.size();
        });
    }
}

Mapper::Mapper(const Graph& source, MapJob& job, Graph& target, Mapper* outer)
    : source_(source),
      job_(job),
      target_(target),
      outer_(outer),
      depth_(outer == nullptr ? 0 : outer->depth_ + 1),
      builder_(source_, target_, *job.files.back()) {}

std::string Mapper::free_name(const std::string& name) const {
    return target_.find_tensor(name) ? builder_.fresh_name(name) : name;
}

void Mapper::run() {
    for (const auto input : source_.inputs()) {
        const auto& facts = source_.tensor(input);
        const auto made = target_.add_input(facts.name, stated(facts.type));
        // No other dialect has inputs with a default: there they must be given.
        if (facts.constant && target_name() == "onnx") {
            target_.set_constant(made, *facts.constant);
            target_.set_type(made, facts.type);
        }
        builder_.set(input, made);
    }
    map_ops();
    outputs();
}

void Mapper::map_ops() {
    find_needed();
    claim();
    for (const auto op : source_.ops()) {
        if (!needed_.contains(op)) {
            note(op, MappedOp::State::mapped,
                 source_.op(op).outputs.empty() ? "left out: it makes nothing"
                                                : "left out: nothing reads it",
                 "");
        } else if (!claimed_.contains(op) || claimed_.at(op) == op) {
            map(op);
        }
    }
}

// Ops that outputs come from, those with effects, and those that write to what others read.
void Mapper::find_needed() {
    for (auto op = source_.last(); op != OpId::none; op = source_.previous(op)) {
        const auto& facts = source_.op(op);
        const auto read = [&](TensorId output) {
            if (output == TensorId::none) {
                return false;
            }
            const auto& tensor = source_.tensor(output);
            return tensor.is_output ||
                   std::any_of(tensor.uses.begin(), tensor.uses.end(),
                               [&](const Use& use) { return needed_.contains(use.op); });
        };
        if (has_effects(facts) || facts.attribute("writes") != nullptr ||
            std::any_of(facts.outputs.begin(), facts.outputs.end(), read)) {
            needed_.insert(op);
        }
    }
}

// Ops that a rule of several ops takes, from the end on: to the op that ends it.
void Mapper::claim() {
    for (auto op = source_.last(); op != OpId::none; op = source_.previous(op)) {
        if (claimed_.contains(op)) {
            continue;
        }
        for (const auto& choice : of(op)) {
            if (choice.rule->match.size() < 2) {
                break;
            }
            std::string why;
            const auto match = find_match(*choice.rule, source_, job_.dialect, op, why);
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
const std::vector<Choice>& Mapper::of(OpId op) const {
    static const std::vector<Choice> none;
    const auto at = job_.choices.find(rule_type(source_.op(op), job_.dialect));
    return at == job_.choices.end() ? none : at->second;
}

void Mapper::map(OpId op) {
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
        std::sort(inner.begin(), inner.end(), [&](OpId a, OpId b) { return source_.before(a, b); });
        for (const auto one : inner) {
            map_one(one);
        }
        return;
    }
    map_one(op);
}

// An op that is the same in the target's words, as those of instruments are.
void Mapper::carry(OpId op) {
    auto& target = target_;
    OpSpec spec = static_cast<const OpSpec&>(source_.op(op));
    for (auto& input : spec.inputs) {
        input = input == TensorId::none ? input : builder_.tensor(input, true);
    }
    for (auto& output : spec.outputs) {
        if (output != TensorId::none) {
            const auto& facts = source_.tensor(output);
            const auto made = target.add_tensor(free_name(facts.name), facts.type);
            builder_.set(output, made);
            given_.insert(made);
            output = made;
        }
    }
    target.append(std::move(spec));
}

void Mapper::map_one(OpId op) {
    if (const auto* written = source_.op(op).attribute("writes")) {
        note(op, MappedOp::State::impossible, "",
             fmt::format("it writes to '{}' through a view of it", value_of(*written).shown()));
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
    if (map_control(op)) {
        return;
    }
    std::string reasons;
    for (const auto& choice : of(op)) {
        if (choice.rule->match.size() > 1) {
            continue;
        }
        std::string why;
        const auto match = find_match(*choice.rule, source_, job_.dialect, op, why);
        if (match && apply_rule(choice, *match, why)) {
            note(op, MappedOp::State::mapped, choice.rule->name, "");
            return;
        }
        if (!why.empty() && reasons.find(why) == std::string::npos) {
            reasons += (reasons.empty() ? "" : "; ") + why;
        }
    }
    // Rules of a dialect to itself say what changes.
    if (reasons.empty() && job_.dialect == target_name()) {
        carry(op);
        note(op, MappedOp::State::mapped, "as it is", "");
        return;
    }
    if (reasons.empty()) {
        reasons = fmt::format("no rule maps {}", rule_type(source_.op(op), job_.dialect));
        if (job_.dialect == "tflite" && source_.op(op).domain == "custom") {
            reasons += ", a custom op: its file does not say what it computes";
        }
    }
    note(op, MappedOp::State::impossible, "", reasons);
}

bool Mapper::apply_rule(const Choice& choice, const Match& match, std::string& why) {
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
void Mapper::give(TensorId source, const RuleValue& value, const Rule& rule) {
    auto& target = target_;
    const auto& facts = source_.tensor(source);
    const auto* how = rule.raw ? nullptr : quantization_of(facts);
    if (const auto* constant = value.constant()) {
        builder_.set(source, target.add_constant(free_name(facts.name), *constant));
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
    if (!target.find_tensor(facts.name)) {
        target.rename(made, facts.name);
    }
    target.set_type(made, stated(facts.type));
    given_.insert(made);
    builder_.set(source, made);
}

void Mapper::note(OpId op, MappedOp::State state, const std::string& rule, const std::string& why) {
    const auto& facts = source_.op(op);
    notes_.push_back({state, op, rule_type(facts, job_.dialect), op_label(source_, op), rule, why});
}

void Mapper::outputs() {
    auto& target = target_;
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
            set_type(spec, builder_.rules().copy, target_name());
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
}  // namespace mapping

Mapped map_model(const Model& model, const std::string& dialect, const MapOptions& options) {
    constexpr std::int64_t onnx_ir_version = 10;  // that knows the newest op set rules write
    const auto files = mapping::rule_files(model.dialect, dialect, options.rules);
    // Rules ask for types, also where a file does not tell them.
    std::optional<Graph> typed;
    if (model.dialect == "aten") {
        typed = model.graph.clone();
        infer_aten_types(*typed);
    }
    const auto& source = typed ? *typed : model.graph;
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
    mapping::MapJob job(model, files);
    mapping::Mapper mapper(source, job, target.graph, nullptr);
    mapper.run();
    mapped.ops = mapper.take_notes();
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
