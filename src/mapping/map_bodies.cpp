#include <fmt/format.h>

#include <algorithm>

#include "mapping/mapper.h"
#include "trocar/error.h"
#include "util/op_label.h"

namespace trocar::mapping {

namespace {

constexpr int deepest_bodies = 40;  // bodies in bodies
constexpr const char* inside = "in its body, ";

// The tensor of an outer graph as a body reads it.
TensorId captured(Graph& body, const Graph& outer, TensorId made) {
    if (&body == &outer) {
        return made;
    }
    const auto& name = outer.tensor(made).name;
    const auto there = body.find_tensor(name);
    return there ? *there : body.add_capture(name);
}

bool is_true(const Constant& constant) {
    const auto first = elements(constant).items()->front();
    const auto* truth = first.truth();
    const auto* integer = first.integer();
    const auto* number = first.number();
    return (truth != nullptr && *truth) || (integer != nullptr && *integer != 0) ||
           (number != nullptr && *number != 0);
}

}  // namespace

// False: it is no op with bodies.
bool Mapper::map_control(OpId op) {
    try {
        const auto control = control_op(source_, op, job_.dialect, job_.bodies);
        if (!control) {
            return false;
        }
        if (target_name() != "onnx") {
            throw Declined{fmt::format("bodies cannot be mapped to {}", target_name())};
        }
        if (depth_ >= deepest_bodies) {
            throw Declined{fmt::format("bodies are nested more than {} deep", deepest_bodies)};
        }
        const Match match{.ops = {op}, .names = {}, .makers = {}};
        builder_.begin(match);
        note(op, MappedOp::State::mapped, map_bodies(op, *control), "");
    } catch (const Declined& declined) {
        note(op, MappedOp::State::impossible, "", declined.why);
    }
    return true;
}

std::string Mapper::map_bodies(OpId op, const ControlOp& control) {
    switch (control.kind) {
        case ControlOp::Kind::choice:
            return map_choice(op, control);
        case ControlOp::Kind::counted:
            return map_counted(op, control);
        case ControlOp::Kind::repeated:
            return map_repeated(op, control);
        case ControlOp::Kind::called:
            break;
    }
    inline_body(op, control, *control.bodies[0]);
    return "its body";
}

// What a name of the source stands for in the target, outside of this body.
TensorId Mapper::around(const std::string& name) {
    const auto id = source_.find_tensor(name);
    if (!id || (!builder_.has(*id) && !source_.tensor(*id).constant)) {
        throw Declined{fmt::format("its body reads '{}', which cannot be mapped", name)};
    }
    return builder_.tensor(*id, true);
}

TensorId Mapper::mapped_input(TensorId id) {
    if (id == TensorId::none || (!builder_.has(id) && !source_.tensor(id).constant)) {
        throw Declined{"it reads what cannot be mapped"};
    }
    return builder_.tensor(id, true);
}

std::string Mapper::map_choice(OpId op, const ControlOp& control) {
    const auto condition = mapped_input(control.condition);
    const auto& known = target_.tensor(condition).constant;
    const bool fails[2] = {always_fails(*control.bodies[0], job_.dialect),
                           always_fails(*control.bodies[1], job_.dialect)};
    if (known && !target_.tensor(condition).is_input && known->element_count() == 1 &&
        !known->is_string()) {
        inline_body(op, control, *control.bodies[is_true(*known) ? 0 : 1]);
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
        Mapper inner(*control.bodies[i], job_, *body, this);
        inner.take_operands(control);
        inner.map_inside();
        inner.close_body(op, inner.mapped_outputs());
        spec.attributes.push_back({names[i], std::move(body), {}, {}});
    }
    append_control(op, std::move(spec), source_.op(op).outputs);
    return "If";
}

std::string Mapper::map_counted(OpId op, const ControlOp& control) {
    OpSpec spec;
    spec.type = "Loop";
    spec.inputs = {mapped_input(control.count), mapped_input(control.condition)};
    for (const auto operand : control.operands) {
        spec.inputs.push_back(mapped_input(operand));
    }
    auto body = std::make_shared<Graph>();
    body->name = "body";
    const auto& source = *control.bodies[0];
    Mapper inner(source, job_, *body, this);
    inner.builder_.set(source.inputs()[0], body->add_input(source.tensor(source.inputs()[0]).name,
                                                           Type::tensor(DType::i64, Shape())));
    body->add_input(body->fresh_name(unused_around(op, "goes_on")),
                    Type::tensor(DType::boolean, Shape()));
    for (std::size_t i = 0; i < control.operands.size(); ++i) {
        const auto id = source.inputs()[i + 1];
        inner.builder_.set(id,
                           body->add_input(source.tensor(id).name, stated(source.tensor(id).type)));
    }
    inner.map_inside();
    inner.close_body(op, inner.mapped_outputs());
    spec.attributes.push_back({"body", std::move(body), {}, {}});
    append_control(op, std::move(spec), source_.op(op).outputs);
    return "Loop";
}

// The first question is asked before the loop, all others at the end of a round. Operands that stay
// the same are read from around the loop.
std::string Mapper::map_repeated(OpId op, const ControlOp& control) {
    const auto& question = *control.bodies[0];
    const auto& round = *control.bodies[1];
    Mapper first(question, job_, target_, this);
    first.take_operands(control);
    first.map_inside();

    OpSpec spec;
    spec.type = "Loop";
    spec.inputs = {TensorId::none, first.answer()};
    auto body = std::make_shared<Graph>();
    body->name = "body";
    body->add_input(unused_around(op, "round"), Type::tensor(DType::i64, Shape()));
    body->add_input(unused_around(op, "goes_on"), Type::tensor(DType::boolean, Shape()));
    Mapper inner(round, job_, *body, this);
    Mapper last(question, job_, *body, this);
    const auto& outputs = source_.op(op).outputs;
    std::vector<TensorId> results;
    std::vector<std::size_t> carried;
    for (std::size_t i = 0; i < control.operands.size(); ++i) {
        const auto operand = mapped_input(control.operands[i]);
        const auto id = round.inputs()[i];
        if (control.kept[i]) {
            inner.builder_.set(id, captured(*body, target_, operand));
            if (i < outputs.size() && outputs[i] != TensorId::none) {
                builder_.set(outputs[i], operand);
            }
            continue;
        }
        spec.inputs.push_back(operand);
        carried.push_back(i);
        results.push_back(i < outputs.size() ? outputs[i] : TensorId::none);
        inner.builder_.set(id,
                           body->add_input(round.tensor(id).name, stated(round.tensor(id).type)));
    }
    if (carried.empty()) {
        throw Declined{"no round changes anything: it never ends, or is never begun"};
    }
    inner.map_inside();
    const auto made = inner.mapped_outputs();
    for (std::size_t i = 0; i < made.size(); ++i) {
        last.builder_.set(question.inputs()[i], made[i]);
    }
    last.map_inside();
    std::vector<TensorId> all{last.answer()};
    for (const auto i : carried) {
        all.push_back(made[i]);
    }
    inner.close_body(op, all);
    spec.attributes.push_back({"body", std::move(body), {}, {}});
    append_control(op, std::move(spec), results);
    return "Loop";
}

// The body's own inputs are tensors of the graph around it.
void Mapper::take_operands(const ControlOp& control) {
    for (std::size_t i = 0; i < control.operands.size(); ++i) {
        const auto made = outer_->mapped_input(control.operands[i]);
        builder_.set(source_.inputs()[i], captured(target_, outer_->target_, made));
    }
}

void Mapper::take_captured() {
    for (const auto id : source_.captured()) {
        const auto made = outer_->around(source_.tensor(id).name);
        builder_.set(id, captured(target_, outer_->target_, made));
    }
}

// Maps the ops of a body. Throws Declined when one of them cannot be.
void Mapper::map_inside() {
    take_captured();
    map_ops();
    for (const auto& one : notes_) {
        if (one.state == MappedOp::State::impossible) {
            // Of bodies in bodies the innermost is what stands in the way.
            throw Declined{one.why.starts_with(inside)
                               ? one.why
                               : fmt::format("{}{} '{}': {}", inside, one.type, one.name, one.why)};
        }
    }
}

std::vector<TensorId> Mapper::mapped_outputs() {
    std::vector<TensorId> all;
    for (const auto output : source_.outputs()) {
        const auto made = mapped_input(output);
        if (target_.tensor(made).type.kind == Type::Kind::unknown) {
            target_.set_type(made, stated(source_.tensor(output).type));
        }
        all.push_back(made);
    }
    return all;
}

// The first output, which says whether a loop goes on: one truth, not a list of one.
TensorId Mapper::answer() {
    const auto made = mapped_outputs()[0];
    const auto& type = source_.tensor(source_.outputs()[0]).type;
    if (!type.dims || type.dims->empty()) {
        return made;
    }
    OpSpec spec;
    spec.type = "Reshape";
    const auto none = Constant::of(DType::i64, {0}, std::vector<std::int64_t>{});
    const auto name = target_.tensor(made).name;
    spec.inputs = {made, target_.add_constant(builder_.fresh_name(name + "/shape"), none)};
    spec.outputs = {target_.add_tensor(builder_.fresh_name(name + "/scalar"),
                                       Type::tensor(DType::boolean, Shape()))};
    const auto scalar = spec.outputs[0];
    target_.append(std::move(spec));
    return scalar;
}

// A graph of its own, whose outputs are all made in it and have names that nobody around has.
void Mapper::close_body(OpId op, const std::vector<TensorId>& outputs) {
    std::vector<TensorId> all;
    for (auto made : outputs) {
        const bool again = std::find(all.begin(), all.end(), made) != all.end();
        if (target_.tensor(made).producer == OpId::none || again) {
            OpSpec spec;
            spec.type = "Identity";
            spec.inputs = {made};
            const auto& facts = target_.tensor(made);
            const auto type = facts.type;
            spec.outputs = {target_.add_tensor(builder_.fresh_name(facts.name + "/result"), type)};
            made = spec.outputs[0];
            target_.append(std::move(spec));
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
void Mapper::inline_body(OpId op, const ControlOp& control, const Graph& body) {
    Mapper inner(body, job_, target_, this);
    inner.take_operands(control);
    inner.map_inside();
    const auto& outputs = source_.op(op).outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i] != TensorId::none) {
            builder_.set(outputs[i], inner.mapped_input(body.outputs()[i]));
        }
    }
}

bool Mapper::knows(const std::string& name) const {
    return source_.find_tensor(name) || target_.find_tensor(name) ||
           (outer_ != nullptr && outer_->knows(name));
}

std::string Mapper::unused_around(OpId op, const std::string& stem) const {
    const auto base = fmt::format("{}/{}", op_label(source_, op), stem);
    auto name = base;
    for (int i = 2; knows(name); ++i) {
        name = fmt::format("{}_{}", base, i);
    }
    return name;
}

// `results`: for each output of the new op what it is in the source; none where nobody asks.
void Mapper::append_control(OpId op, OpSpec spec, const std::vector<TensorId>& results) {
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
    for (const auto result : results) {
        if (result == TensorId::none) {
            spec.outputs.push_back(target_.add_tensor(unused_around(op, "unread"), {}));
            continue;
        }
        const auto& tensor = source_.tensor(result);
        const auto made = target_.add_tensor(free_name(tensor.name), stated(tensor.type));
        spec.outputs.push_back(made);
        builder_.set(result, made);
        given_.insert(made);
    }
    spec.name = facts.name;
    spec.origin = facts.origin;
    target_.append(std::move(spec));
}

}  // namespace trocar::mapping
