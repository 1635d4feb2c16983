#include "mapping/control.h"

#include <fmt/format.h>

#include <algorithm>

#include "mapping/evaluate.h"
#include "util/op_label.h"

namespace trocar::mapping {

namespace {

constexpr std::size_t most_ops = 50'000;     // of all copies of bodies
constexpr std::size_t most_branches = 32;    // of a choice among many
constexpr std::uint64_t small_bytes = 1024;  // constants that are copied into bodies

std::shared_ptr<Graph> body(const Op& op, std::string_view name) {
    const auto* attribute = op.attribute(name);
    const auto* graph =
        attribute == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&attribute->value);
    return graph == nullptr ? nullptr : *graph;
}

bool fits(const ControlOp& made, const Op& op) {
    const std::size_t extra = made.kind == ControlOp::Kind::counted ? 1 : 0;
    return !made.bodies.empty() &&
           std::all_of(made.bodies.begin(), made.bodies.end(), [&](const auto& one) {
               return one != nullptr && one->inputs().size() == made.operands.size() + extra &&
                      one->outputs().size() == op.outputs.size() + extra;
           });
}

// --- torch ---

std::optional<ControlOp> torch_op(const Op& op) {
    ControlOp made;
    if (op.inputs.empty()) {
        return std::nullopt;
    }
    if (op.domain == "prim" && op.type == "If") {
        made.condition = op.inputs[0];
        made.bodies = {body(op, "then_branch"), body(op, "else_branch")};
    } else if (op.domain == "higher_order" && op.type == "cond") {
        made.condition = op.inputs[0];
        made.operands.assign(op.inputs.begin() + 1, op.inputs.end());
        made.bodies = {body(op, "true_fn"), body(op, "false_fn")};
        if (!made.bodies[0] && op.subgraphs().size() == 2) {
            made.bodies = op.subgraphs();
        }
    } else if (op.domain == "prim" && op.type == "Loop" && op.inputs.size() >= 2) {
        made.kind = ControlOp::Kind::counted;
        made.count = op.inputs[0];
        made.condition = op.inputs[1];
        made.operands.assign(op.inputs.begin() + 2, op.inputs.end());
        made.bodies = {body(op, "body")};
    }
    return fits(made, op) ? std::optional(std::move(made)) : std::nullopt;
}

// --- TensorFlow, and TensorFlow Lite ---

// The ops and the attributes that hold their bodies, or name them.
struct Form {
    const char* dialect;
    const char* type;
    ControlOp::Kind kind;
    const char* first;
    const char* second;
};
constexpr Form forms[] = {
    {"tf", "If", ControlOp::Kind::choice, "then_branch", "else_branch"},
    {"tf", "StatelessIf", ControlOp::Kind::choice, "then_branch", "else_branch"},
    {"tf", "While", ControlOp::Kind::repeated, "cond", "body"},
    {"tf", "StatelessWhile", ControlOp::Kind::repeated, "cond", "body"},
    {"tf", "PartitionedCall", ControlOp::Kind::called, "f", nullptr},
    {"tf", "StatefulPartitionedCall", ControlOp::Kind::called, "f", nullptr},
    {"tflite", "IF", ControlOp::Kind::choice, "then_subgraph", "else_subgraph"},
    {"tflite", "WHILE", ControlOp::Kind::repeated, "cond_subgraph", "body_subgraph"},
};

const Graph& named_body(const Op& op, const char* attribute, const Bodies& bodies) {
    if (const auto held = body(op, attribute)) {
        return *held;  // the op keeps it
    }
    const auto name = op.text(attribute, "");
    const auto* function = bodies.find(name);
    if (function == nullptr) {
        throw Declined{
            fmt::format("its {} is '{}', and there is no such function", attribute, name)};
    }
    return *function;
}

// Does a body return an input as it is?
bool is_kept(const Graph& body, std::size_t operand) {
    auto from = body.outputs()[operand];
    while (body.tensor(from).producer != OpId::none) {
        const auto& op = body.op(body.tensor(from).producer);
        if (op.type != "Identity" || op.inputs.size() != 1) {
            return false;
        }
        from = op.inputs[0];
    }
    return from == body.inputs()[operand];
}

// What is known of an operand that does not change is known in the body too.
void tell(Graph& body, std::size_t slot, const Tensor& operand) {
    const auto input = body.inputs()[slot];
    const bool fixed = operand.constant && !operand.is_input;
    if (fixed && bits(operand.constant->dtype()) != 0 &&
        operand.constant->bytes().size() <= small_bytes) {
        body.replace_uses(
            input, body.add_constant(body.fresh_name(body.tensor(input).name), *operand.constant));
    } else if (fixed || (operand.type.dims && !body.tensor(input).type.dims)) {
        body.set_type(input, operand.type);
    }
}

// Conditions may be numbers and texts too; nothing that writes models makes use of it.
void require_truth(const Op& op) {
    const auto kind = op.text("Tcond", "bool");
    if (kind != "bool") {
        throw Declined{fmt::format("its condition is of the type {}", kind)};
    }
}

// A choice among many is one between the first and all others.
std::shared_ptr<Graph> choice_from(const Graph& graph, const Op& op,
                                   const std::vector<std::string>& branches, std::size_t first) {
    auto made = std::make_shared<Graph>();
    OpSpec inner;
    for (const auto id : op.inputs) {
        const auto& facts = graph.tensor(id);
        inner.inputs.push_back(made->add_input(made->fresh_name(facts.name), facts.type));
    }
    for (const auto id : op.outputs) {
        const auto& facts = graph.tensor(id);
        inner.outputs.push_back(made->add_tensor(made->fresh_name(facts.name), facts.type));
    }
    const auto outputs = inner.outputs;
    if (first + 1 == branches.size()) {
        inner.type = "PartitionedCall";
        inner.inputs.erase(inner.inputs.begin());
        inner.attributes.push_back({"f", branches[first], {}, {}});
    } else {
        OpSpec equal;
        equal.type = "Equal";
        equal.name = "equal";
        const auto number = std::vector<std::int32_t>{static_cast<std::int32_t>(first)};
        equal.inputs = {inner.inputs[0], made->add_constant(made->fresh_name("number"),
                                                            Constant::of(DType::i32, {}, number))};
        equal.outputs = {
            made->add_tensor(made->fresh_name("chosen"), Type::tensor(DType::boolean, Shape()))};
        equal.attributes.push_back({"T", std::string("int32"), {}, {}});
        inner.type = "StatelessIf";
        inner.inputs.insert(inner.inputs.begin(), equal.outputs[0]);
        made->append(std::move(equal));
        inner.attributes.push_back(
            {"then_branch", choice_from(graph, op, {branches[first]}, 0), {}, {}});
        inner.attributes.push_back(
            {"else_branch", choice_from(graph, op, branches, first + 1), {}, {}});
    }
    inner.name = "branch";
    made->append(std::move(inner));
    made->set_outputs(outputs);
    return made;
}

std::optional<ControlOp> case_op(const Graph& graph, OpId id, Bodies& bodies) {
    const auto& op = graph.op(id);
    const auto* attribute = op.attribute("branches");
    const auto* branches =
        attribute == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&attribute->value);
    if (branches == nullptr || branches->empty() || branches->size() > most_branches ||
        op.inputs.empty() || std::count(op.inputs.begin(), op.inputs.end(), TensorId::none) != 0) {
        throw Declined{fmt::format("it is not one of 1 to {} branches", most_branches)};
    }
    ControlOp made;
    made.kind = ControlOp::Kind::called;
    made.operands = op.inputs;
    made.bodies = {bodies.copy(*choice_from(graph, op, *branches, 0), op_label(graph, id) + "/")};
    return made;
}

std::optional<ControlOp> named_op(const Graph& graph, OpId id, const std::string& dialect,
                                  Bodies& bodies) {
    const auto& op = graph.op(id);
    const auto* const form = std::find_if(std::begin(forms), std::end(forms), [&](const Form& one) {
        return dialect == one.dialect && op.type == one.type;
    });
    if (form == std::end(forms) || !op.domain.empty()) {
        return std::nullopt;
    }
    ControlOp made;
    made.kind = form->kind;
    made.operands = op.inputs;
    if (made.kind == ControlOp::Kind::choice) {
        require_truth(op);
        if (op.inputs.empty()) {
            throw Declined{"it has no condition"};
        }
        made.condition = op.inputs[0];
        made.operands.erase(made.operands.begin());
    }
    const auto label = op_label(graph, id);
    for (const auto* attribute : {form->first, form->second}) {
        if (attribute != nullptr) {
            made.bodies.push_back(bodies.copy(named_body(op, attribute, bodies),
                                              fmt::format("{}/{}/", label, attribute)));
        }
    }
    const bool repeated = made.kind == ControlOp::Kind::repeated;
    for (const auto& one : made.bodies) {
        const auto results = repeated && one == made.bodies[0] ? 1 : op.outputs.size();
        if (one->inputs().size() != made.operands.size() || one->outputs().size() < results ||
            (repeated && one == made.bodies[1] && one->outputs().size() != made.operands.size())) {
            throw Declined{"the inputs and outputs of its bodies are not its own"};
        }
        // Results that nobody reads are not there.
        auto outputs = std::vector<TensorId>(one->outputs().begin(), one->outputs().end());
        if (!repeated && outputs.size() > results) {
            outputs.resize(results);
            one->set_outputs(std::move(outputs));
        }
    }
    for (std::size_t i = 0; i < made.operands.size(); ++i) {
        made.kept.push_back(repeated && is_kept(*made.bodies[1], i));
        if (made.operands[i] == TensorId::none || (repeated && !made.kept[i])) {
            continue;
        }
        for (const auto& one : made.bodies) {
            tell(*one, i, graph.tensor(made.operands[i]));
        }
    }
    return made;
}

}  // namespace

Bodies::Bodies(const std::vector<std::shared_ptr<Function>>& functions) : left_(most_ops) {
    for (const auto& function : functions) {
        functions_.emplace(function->name, &function->body);
    }
}

const Graph* Bodies::find(const std::string& name) const {
    const auto at = functions_.find(name);
    return at == functions_.end() ? nullptr : at->second;
}

std::shared_ptr<Graph> Bodies::copy(const Graph& body, const std::string& scope) {
    if (body.op_count() >= left_) {
        throw Declined{fmt::format("bodies of more than {} ops together are not mapped", most_ops)};
    }
    left_ -= body.op_count() + 1;
    auto made = std::make_shared<Graph>(body.clone());
    for (const auto id : made->tensors()) {
        const auto name = scope + made->tensor(id).name;
        made->rename(id, made->find_tensor(name) ? made->fresh_name(name) : name);
    }
    for (const auto id : made->ops()) {
        made->rename(id, scope + made->op(id).name);
    }
    return made;
}

std::optional<ControlOp> control_op(const Graph& graph, OpId op, const std::string& dialect,
                                    Bodies& bodies) {
    if (dialect == "aten") {
        return torch_op(graph.op(op));
    }
    const auto& type = graph.op(op).type;
    return dialect == "tf" && (type == "Case" || type == "StatelessCase")
               ? case_op(graph, op, bodies)
               : named_op(graph, op, dialect, bodies);
}

Type stated(const Type& type) {
    const auto& inner = type.element.empty() ? type : type.element[0];
    const bool open = inner.kind == Type::Kind::unknown || inner.kind == Type::Kind::opaque ||
                      (inner.kind == Type::Kind::tensor && inner.dtype == DType::undefined);
    return open ? Type() : type;
}

bool always_fails(const Graph& body, const std::string& dialect) {
    if (dialect != "aten") {
        return false;
    }
    for (const auto id : body.ops()) {
        const auto& op = body.op(id);
        if (op.domain == "prim" && op.type == "RaiseException") {
            return true;
        }
        const auto bodies = op.domain == "prim" && op.type == "If"
                                ? op.subgraphs()
                                : std::vector<std::shared_ptr<Graph>>();
        if (bodies.size() == 2 && always_fails(*bodies[0], dialect) &&
            always_fails(*bodies[1], dialect)) {
            return true;
        }
    }
    return false;
}

}  // namespace trocar::mapping
