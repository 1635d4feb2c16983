#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "mapping/control.h"
#include "mapping/evaluate.h"
#include "mapping/fuse.h"
#include "mapping/integers.h"
#include "mapping/layout.h"
#include "mapping/match.h"
#include "mapping/rule_files.h"
#include "trocar/engine.h"
#include "trocar/error.h"
#include "trocar/mapping.h"
#include "util/aten_types.h"
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
    // Into `target`; `outer` is the mapper of the graph around this one, for bodies.
    Mapper(const Graph& source, const std::string& dialect, const RuleFiles& files, Graph& target,
           Mapper* outer)
        : source_(source),
          dialect_(dialect),
          files_(files),
          target_(target),
          outer_(outer),
          builder_(source_, target_, *files.back()) {
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
        for (const auto input : source_.inputs()) {
            const auto& facts = source_.tensor(input);
            const auto made = target_.add_input(facts.name, stated(facts.type));
            if (facts.constant) {
                target_.set_constant(made, *facts.constant);
                target_.set_type(made, facts.type);
            }
            builder_.set(input, made);
        }
        map_ops();
        outputs();
    }
    std::vector<MappedOp> take_notes() { return std::move(notes_); }

private:
    void map_ops() {
        find_needed();
        claim();
        for (const auto op : source_.ops()) {
            if (!needed_.contains(op)) {
                note(op, MappedOp::State::mapped, "left out: nothing reads it", "");
            } else if (!claimed_.contains(op) || claimed_.at(op) == op) {
                map(op);
            }
        }
    }

    // Ops that outputs come from, those with effects, and those that write to what others read.
    void find_needed() {
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
        auto& target = target_;
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
        if (source_.op(op).outputs.empty() && !has_effects(source_.op(op))) {
            note(op, MappedOp::State::mapped, "left out: it makes nothing", "");
            return;
        }
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
        if (const auto control = control_op(source_, source_.op(op), dialect_)) {
            map_control(op, *control);
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
        if (reasons.empty() && dialect_ == files_.back()->to) {
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
        auto& target = target_;
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
        if (!target.find_tensor(facts.name)) {
            target.rename(made, facts.name);
        }
        target.set_type(made, stated(facts.type));
        given_.insert(made);
        builder_.set(source, made);
    }

    void note(OpId op, MappedOp::State state, const std::string& rule, const std::string& why) {
        const auto& facts = source_.op(op);
        notes_.push_back({state, op, rule_type(facts, dialect_), op_label(source_, op), rule, why});
    }

    // --- Ops with bodies ---

    void map_control(OpId op, const ControlOp& control) {
        try {
            if (target_name() != "onnx") {
                throw Declined{fmt::format("bodies cannot be mapped to {}", target_name())};
            }
            const Match match{.ops = {op}, .names = {}, .makers = {}};
            builder_.begin(match);
            const auto rule = control.kind == ControlOp::Kind::loop ? map_loop(op, control)
                                                                    : map_choice(op, control);
            note(op, MappedOp::State::mapped, rule, "");
        } catch (const Declined& declined) {
            note(op, MappedOp::State::impossible, "", declined.why);
        }
    }
    const std::string& target_name() const { return files_.back()->to; }

    // What a name of the source stands for in the target, outside of this body.
    TensorId around(const std::string& name) {
        const auto id = source_.find_tensor(name);
        if (!id || (!builder_.has(*id) && !source_.tensor(*id).constant)) {
            throw Declined{fmt::format("its body reads '{}', which cannot be mapped", name)};
        }
        return builder_.tensor(*id, true);
    }
    TensorId mapped_input(TensorId id) {
        if (id == TensorId::none || (!builder_.has(id) && !source_.tensor(id).constant)) {
            throw Declined{"it reads what cannot be mapped"};
        }
        return builder_.tensor(id, true);
    }
    // The tensor of an outer graph as a body reads it.
    static TensorId captured(Graph& body, const Graph& outer, TensorId made) {
        const auto& name = outer.tensor(made).name;
        const auto there = body.find_tensor(name);
        return there ? *there : body.add_capture(name);
    }

    std::string map_choice(OpId op, const ControlOp& control) {
        const auto condition = mapped_input(control.condition);
        const auto& known = target_.tensor(condition).constant;
        const bool fails[2] = {always_fails(*control.bodies[0], dialect_),
                               always_fails(*control.bodies[1], dialect_)};
        if (known && !target_.tensor(condition).is_input && known->element_count() == 1) {
            const bool truth = *elements(*known).items()->front().integer() != 0;
            inline_body(op, control, *control.bodies[truth ? 0 : 1]);
            return "the body that is chosen";
        }
        if (fails[0] != fails[1]) {
            inline_body(op, control, *control.bodies[fails[0] ? 1 : 0]);
            return "the body that does not fail";
        }
        OpSpec spec;
        spec.type = "If";
        spec.inputs = {condition};
        const char* const names[] = {"then_branch", "else_branch"};
        for (std::size_t i = 0; i < 2; ++i) {
            auto body = std::make_shared<Graph>();
            body->name = names[i];
            Mapper inner(*control.bodies[i], dialect_, files_, *body, this);
            inner.take_operands(control);
            inner.map_body(op);
            spec.attributes.push_back({names[i], std::move(body), {}, {}});
        }
        append_control(op, std::move(spec));
        return "If";
    }

    std::string map_loop(OpId op, const ControlOp& control) {
        OpSpec spec;
        spec.type = "Loop";
        spec.inputs = {mapped_input(control.count), mapped_input(control.condition)};
        for (const auto operand : control.operands) {
            spec.inputs.push_back(mapped_input(operand));
        }
        auto body = std::make_shared<Graph>();
        body->name = "body";
        const auto& source = *control.bodies[0];
        Mapper inner(source, dialect_, files_, *body, this);
        inner.builder_.set(source.inputs()[0],
                           body->add_input(source.tensor(source.inputs()[0]).name,
                                           Type::tensor(DType::i64, Shape())));
        body->add_input(body->fresh_name(unused_around(op, "goes_on")),
                        Type::tensor(DType::boolean, Shape()));
        for (std::size_t i = 0; i < control.operands.size(); ++i) {
            const auto id = source.inputs()[i + 1];
            inner.builder_.set(
                id, body->add_input(source.tensor(id).name, stated(source.tensor(id).type)));
        }
        inner.map_body(op);
        spec.attributes.push_back({"body", std::move(body), {}, {}});
        append_control(op, std::move(spec));
        return "Loop";
    }

    // The body's own inputs are tensors of the graph around it.
    void take_operands(const ControlOp& control) {
        for (std::size_t i = 0; i < control.operands.size(); ++i) {
            const auto made = outer_->mapped_input(control.operands[i]);
            builder_.set(source_.inputs()[i], captured(target_, outer_->target_, made));
        }
    }
    void take_captured() {
        for (const auto id : source_.captured()) {
            const auto made = outer_->around(source_.tensor(id).name);
            builder_.set(
                id, &target_ == &outer_->target_ ? made : captured(target_, outer_->target_, made));
        }
    }

    // Maps the ops of a body. Throws Declined when one of them cannot be.
    void map_inside() {
        take_captured();
        map_ops();
        for (const auto& one : notes_) {
            if (one.state == MappedOp::State::impossible) {
                throw Declined{
                    fmt::format("in its body, {} '{}': {}", one.type, one.name, one.why)};
            }
        }
    }
    // As a graph of its own, whose outputs are all made in it and have names that nobody around
    // has.
    void map_body(OpId op) {
        map_inside();
        std::vector<TensorId> all;
        for (const auto output : source_.outputs()) {
            auto made = mapped_input(output);
            const bool again = std::find(all.begin(), all.end(), made) != all.end();
            if (target_.tensor(made).producer == OpId::none || again) {
                OpSpec spec;
                spec.type = "Identity";
                spec.inputs = {made};
                const auto type = target_.tensor(made).type;
                spec.outputs = {target_.add_tensor(
                    builder_.fresh_name(source_.tensor(output).name + "/result"), type)};
                made = spec.outputs[0];
                target_.append(std::move(spec));
            }
            if (target_.tensor(made).type.kind == Type::Kind::unknown) {
                target_.set_type(made, stated(source_.tensor(output).type));
            }
            all.push_back(made);
        }
        target_.set_outputs(all);
        target_.remove_unused();
        for (const auto id : target_.tensors()) {
            const auto& tensor = target_.tensor(id);
            if (!tensor.is_captured && outer_->knows(tensor.name)) {
                target_.rename(id, outer_->unused_around(op, tensor.name));
            }
        }
    }
    // In the place of the op.
    void inline_body(OpId op, const ControlOp& control, const Graph& body) {
        Mapper inner(body, dialect_, files_, target_, this);
        for (std::size_t i = 0; i < control.operands.size(); ++i) {
            inner.builder_.set(body.inputs()[i], mapped_input(control.operands[i]));
        }
        inner.map_inside();
        const auto& outputs = source_.op(op).outputs;
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            if (outputs[i] != TensorId::none) {
                builder_.set(outputs[i], inner.mapped_input(body.outputs()[i]));
            }
        }
    }

    bool knows(const std::string& name) const {
        return source_.find_tensor(name) || target_.find_tensor(name) ||
               (outer_ != nullptr && outer_->knows(name));
    }
    std::string unused_around(OpId op, const std::string& stem) const {
        const auto base = fmt::format("{}/{}", op_label(source_, op), stem);
        auto name = base;
        for (int i = 2; knows(name); ++i) {
            name = fmt::format("{}_{}", base, i);
        }
        return name;
    }

    void append_control(OpId op, OpSpec spec) {
        const auto& facts = source_.op(op);
        for (const auto& attribute : spec.attributes) {
            const auto& body = std::get<std::shared_ptr<Graph>>(attribute.value);
            for (const auto id : body->captured()) {
                const auto& name = body->tensor(id).name;
                if (!target_.find_tensor(name)) {
                    target_.add_capture(name);  // from further out
                }
            }
        }
        for (const auto output : facts.outputs) {
            const auto& tensor = source_.tensor(output);
            const auto made = target_.add_tensor(tensor.name, stated(tensor.type));
            spec.outputs.push_back(made);
            builder_.set(output, made);
            given_.insert(made);
        }
        spec.name = facts.name;
        spec.origin = facts.origin;
        target_.append(std::move(spec));
    }

    void outputs() {
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
                set_type(spec, builder_.rules().copy, files_.back()->to);
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
    const RuleFiles& files_;
    Graph& target_;
    Mapper* outer_;
    Builder builder_;
    std::vector<MappedOp> notes_;
    std::set<OpId> needed_;
    std::map<std::string, std::vector<Choice>> choices_;
    std::map<OpId, OpId> claimed_;
    std::map<OpId, std::pair<Choice, Match>> taken_;
    std::set<TensorId> given_;
};

}  // namespace

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
    auto mapper = mapping::Mapper(source, model.dialect, files, target.graph, nullptr);
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
