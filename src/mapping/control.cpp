#include "mapping/control.h"

#include <algorithm>

#include "trocar/engine.h"

namespace trocar::mapping {

namespace {

std::shared_ptr<Graph> body(const Op& op, std::string_view name) {
    const auto* attribute = op.attribute(name);
    const auto* graph =
        attribute == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&attribute->value);
    return graph == nullptr ? nullptr : *graph;
}

}  // namespace

Type stated(const Type& type) {
    const auto& inner = type.element.empty() ? type : type.element[0];
    const bool open = inner.kind == Type::Kind::unknown ||
                      (inner.kind == Type::Kind::tensor && inner.dtype == DType::undefined);
    return open ? Type() : type;
}

std::optional<ControlOp> control_op(const Graph&, const Op& op, const std::string& dialect) {
    ControlOp made;
    if (dialect != "aten" || op.inputs.empty()) {
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
        made.kind = ControlOp::Kind::loop;
        made.count = op.inputs[0];
        made.condition = op.inputs[1];
        made.operands.assign(op.inputs.begin() + 2, op.inputs.end());
        made.bodies = {body(op, "body")};
    }
    const auto missing = [](const std::shared_ptr<Graph>& one) { return one == nullptr; };
    if (made.bodies.empty() || std::any_of(made.bodies.begin(), made.bodies.end(), missing)) {
        return std::nullopt;
    }
    const std::size_t extra = made.kind == ControlOp::Kind::loop ? 1 : 0;
    for (const auto& one : made.bodies) {
        if (one->inputs().size() != made.operands.size() + extra ||
            one->outputs().size() != op.outputs.size() + extra) {
            return std::nullopt;
        }
    }
    return made;
}

bool has_effects(const Op& op) {
    return op.domain == host_domain || op.domain == "executorch";
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
