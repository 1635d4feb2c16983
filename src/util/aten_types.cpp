#include "util/aten_types.h"

#include <algorithm>
#include <set>

#include "util/aten_type_rules.h"

namespace trocar {

namespace {

constexpr int deepest_look = 40;

Type merged(const Type& a, const Type& b) {
    if (a == b) {
        return a;
    }
    if (a.kind == Type::Kind::sequence && b.kind == Type::Kind::sequence && !a.element.empty() &&
        !b.element.empty()) {
        auto made = a;
        made.element = {merged(a.element[0], b.element[0])};
        return made;
    }
    if (a.kind != Type::Kind::tensor || b.kind != Type::Kind::tensor) {
        return a.kind == Type::Kind::unknown ? b : b.kind == Type::Kind::unknown ? a : Type();
    }
    Type made = Type::tensor(a.dtype == b.dtype ? a.dtype : DType::undefined);
    if (a.dims && b.dims && a.dims->size() == b.dims->size()) {
        made.dims = a.dims;
        for (std::size_t i = 0; i < a.dims->size(); ++i) {
            if ((*a.dims)[i] != (*b.dims)[i]) {
                (*made.dims)[i] = Dim{};
            }
        }
    }
    return made;
}

constexpr const char* assumed = "assumed";

class Inference {
public:
    void run(Graph& graph) {
        for (const auto id : graph.ops()) {
            const auto& op = graph.op(id);
            if (!op.subgraphs().empty()) {
                bodies(graph, op);
                continue;
            }
            auto name = op.type;
            if (name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_') {
                name.pop_back();  // in place
            }
            const auto rule = aten::type_rule(name);
            if (rule == nullptr || (!op.domain.empty() && op.domain != "prim")) {
                continue;
            }
            const auto types = rule(aten::Look{graph, op});
            for (std::size_t i = 0; i < op.outputs.size() && i < types.size(); ++i) {
                set(graph, op.outputs[i], types[i]);
            }
        }
    }

private:
    // Only what was not known.
    static void set(Graph& graph, TensorId id, const Type& type) {
        if (id == TensorId::none) {
            return;
        }
        auto& held = graph.tensor_from_file(id).type;
        if (held.kind == Type::Kind::unknown) {
            if (type.dtype != DType::undefined || type.dims || type.kind == Type::Kind::sequence) {
                held = type;
            }
        } else if (held.kind == Type::Kind::sequence && type.kind == held.kind &&
                   held.element[0].kind == Type::Kind::unknown) {
            held = type;
        } else if (held.kind == Type::Kind::tensor && type.kind == Type::Kind::tensor) {
            held.dtype = held.dtype == DType::undefined ? type.dtype : held.dtype;
            held.dims = held.dims ? held.dims : type.dims;
        }
    }

    void bodies(Graph& graph, const Op& op) {
        const auto all = op.subgraphs();
        for (const auto& body : all) {
            for (const auto id : body->captured()) {
                const auto outer = graph.find_tensor(body->tensor(id).name);
                if (outer) {
                    body->tensor_from_file(id).type = graph.tensor(*outer).type;
                }
            }
        }
        if (op.type == "Loop" && all.size() == 1) {
            auto& body = *all[0];
            for (std::size_t i = 1; i < body.inputs().size() && i + 1 < op.inputs.size(); ++i) {
                auto type = graph.tensor(op.inputs[i + 1]).type;
                if (type.kind == Type::Kind::tensor && type.dims) {
                    type.dims = aten::unknown_dims(type.dims->size());
                }
                set(body, body.inputs()[i], type);
            }
            run(body);
            for (std::size_t i = 0; i < op.outputs.size() && i + 1 < body.outputs().size() &&
                                    i + 1 < body.inputs().size() && i + 2 < op.inputs.size();
                 ++i) {
                // What an empty list is of shows when something is put into it.
                const auto& made = body.tensor(body.outputs()[i + 1]).type;
                if (made.kind == Type::Kind::sequence) {
                    set(body, body.inputs()[i + 1], made);
                    set(graph, op.inputs[i + 2], made);
                }
                set(graph, op.outputs[i],
                    merged(graph.tensor(op.inputs[i + 2]).type,
                           body.tensor(body.outputs()[i + 1]).type));
            }
            return;
        }
        for (const auto& body : all) {
            run(*body);
        }
        if (all.size() != 2) {
            return;
        }
        for (std::size_t i = 0; i < op.outputs.size(); ++i) {
            if (i < all[0]->outputs().size() && i < all[1]->outputs().size()) {
                set(graph, op.outputs[i],
                    merged(all[0]->tensor(all[0]->outputs()[i]).type,
                           all[1]->tensor(all[1]->outputs()[i]).type));
            }
        }
    }
};

using Seen = std::set<std::pair<const Graph*, TensorId>>;

// The element type that readers of a tensor settle: that of weights it meets.
DType settled_by_readers(const Graph& graph, TensorId id, int depth, Seen& seen) {
    if (depth > deepest_look || !seen.emplace(&graph, id).second) {
        return DType::undefined;
    }
    for (const auto& use : graph.tensor(id).uses) {
        const auto& op = graph.op(use.op);
        if (use.slot == Use::captured) {
            for (const auto& body : op.subgraphs()) {
                const auto inner = body->find_tensor(graph.tensor(id).name);
                const auto found =
                    inner ? settled_by_readers(*body, *inner, depth + 1, seen) : DType::undefined;
                if (found != DType::undefined) {
                    return found;
                }
            }
            continue;
        }
        if (op.type == "embedding" && use.slot == 1) {
            return DType::i64;
        }
        const bool weighted = op.type.starts_with("conv") || op.type == "linear" ||
                              op.type == "matmul" || op.type == "batch_norm" ||
                              op.type == "layer_norm" || op.type == "lstm" ||
                              op.type == "lstm_cell" || op.type == "gru" || op.type == "add" ||
                              op.type == "mul" || op.type == "_convolution";
        for (std::size_t i = 0; weighted && i < op.inputs.size(); ++i) {
            if (i != use.slot && op.inputs[i] != TensorId::none) {
                const auto& type = graph.tensor(op.inputs[i]).type;
                const bool number = type.dims && type.dims->empty();  // it gives way to tensors
                if (is_float(type.dtype) && !number) {
                    return type.dtype;
                }
            }
        }
        if (use.slot == 0 && aten::keeps_element_type(op.type) && !op.outputs.empty()) {
            const auto found = settled_by_readers(graph, op.outputs[0], depth + 1, seen);
            if (found != DType::undefined) {
                return found;
            }
        }
    }
    return DType::undefined;
}

}  // namespace

void infer_aten_types(Graph& graph) {
    for (const auto id : graph.inputs()) {
        auto& tensor = graph.tensor_from_file(id);
        const bool open =
            tensor.type.kind == Type::Kind::unknown ||
            (tensor.type.kind == Type::Kind::tensor && tensor.type.dtype == DType::undefined);
        if (!open) {
            continue;
        }
        Seen seen;
        const auto found = settled_by_readers(graph, id, 0, seen);
        tensor.type.kind = Type::Kind::tensor;
        tensor.type.dtype = found == DType::undefined ? DType::f32 : found;
        tensor.metadata.push_back(
            {"element type", found == DType::undefined ? assumed : "that of weights it meets"});
    }
    Inference().run(graph);
}

bool has_assumed_type(const Tensor& tensor) {
    return std::any_of(tensor.metadata.begin(), tensor.metadata.end(), [](const Property& one) {
        return one.key == "element type" && one.value == assumed;
    });
}

}  // namespace trocar
