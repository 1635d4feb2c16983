#include "tools/summary/scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "trocar/error.h"

namespace trocar::summary {
namespace {

constexpr int deepest = 64;  // graphs within graphs; a hostile file could go on for ever

class Reader {
public:
    explicit Reader(const Model& model) : dialect_(model.dialect.empty() ? "onnx" : model.dialect) {
        for (const auto& f : model.functions) {
            functions_.try_emplace(fmt::format("{}:{}:{}", f->domain, f->name, f->overload),
                                   f.get());
        }
    }

    std::unique_ptr<Scope> read(const Graph& graph, const Scope* outer, int depth) {
        auto scope = std::make_unique<Scope>();
        scope->graph = &graph;
        scope->dialect = dialect_;
        scope->roles = roles_;
        scope->outer = outer;
        scope->tensors.resize(graph.tensor_limit());
        scope->passes_constant.resize(graph.op_limit());
        for (TensorId id : graph.tensors()) {
            const Tensor& t = graph.tensor(id);
            scope->fact(id) = t.constant ? fact_of(*t.constant) : fact_of(t.type);
            if (auto role = declared_role(t)) {
                roles_->emplace(&*t.constant, *role);
            }
        }
        capture(*scope);
        for (OpId id : graph.ops()) {
            pass_constant(*scope, id);
            if (depth < deepest) {
                read_bodies(*scope, id, depth);
            }
        }
        return scope;
    }

    static void capture(Scope& scope) {
        if (scope.outer == nullptr) {
            return;
        }
        for (TensorId id : scope.graph->captured()) {
            const std::string& name = scope.graph->tensor(id).name;
            for (const Scope* at = scope.outer; at != nullptr; at = at->outer) {
                auto found = at->graph->find_tensor(name);
                if (found && !at->graph->tensor(*found).is_captured) {
                    scope.fact(id) = at->fact(*found);
                    break;
                }
            }
        }
    }

private:
    static void pass_constant(Scope& scope, OpId id) {
        const Op& op = scope.graph->op(id);
        if (scope.dialect != "onnx" || !op.domain.empty() || op.outputs.size() != 1 ||
            op.outputs[0] == TensorId::none) {
            return;
        }
        const Constant* value = nullptr;
        if (op.type == "Identity" && op.inputs.size() == 1 && op.inputs[0] != TensorId::none) {
            value = scope.fact(op.inputs[0]).constant;
        } else if (op.type == "Constant" && !op.attributes.empty()) {
            value = constant_of(scope, op.attributes[0]);
        }
        if (value != nullptr) {
            scope.fact(op.outputs[0]) = fact_of(*value);
            scope.passes_constant[index(id)] = true;
        }
    }

    static const Constant* constant_of(Scope& scope, const Attribute& a) {
        auto make = [&](Constant c) { return &scope.made.emplace_back(std::move(c)); };
        auto length = [](const auto& v) { return Shape{static_cast<std::int64_t>(v.size())}; };
        if (const auto* c = std::get_if<Constant>(&a.value)) {
            return c;
        }
        if (const auto* f = std::get_if<float>(&a.value)) {
            return make(Constant::of(DType::f32, {}, std::vector<float>{*f}));
        }
        if (const auto* fs = std::get_if<std::vector<float>>(&a.value)) {
            return make(Constant::of(DType::f32, length(*fs), *fs));
        }
        if (const auto* i = std::get_if<std::int64_t>(&a.value)) {
            return make(Constant::of(DType::i64, {}, std::vector<std::int64_t>{*i}));
        }
        if (const auto* is = std::get_if<std::vector<std::int64_t>>(&a.value)) {
            return make(Constant::of(DType::i64, length(*is), *is));
        }
        if (const auto* s = std::get_if<std::string>(&a.value)) {
            return make(Constant::strings({}, {*s}));
        }
        if (const auto* ss = std::get_if<std::vector<std::string>>(&a.value)) {
            return make(Constant::strings(length(*ss), *ss));
        }
        return nullptr;
    }

    void read_bodies(Scope& scope, OpId id, int depth) {
        const Op& op = scope.graph->op(id);
        for (const Attribute& a : op.attributes) {
            auto add = [&](const std::shared_ptr<Graph>& graph) {
                Body body{.label = a.name, .scope = read(*graph, &scope, depth + 1), .times = {}};
                scope.bodies[id].push_back(std::move(body));
            };
            if (const auto* one = std::get_if<std::shared_ptr<Graph>>(&a.value); one && *one) {
                add(*one);
            } else if (const auto* many =
                           std::get_if<std::vector<std::shared_ptr<Graph>>>(&a.value)) {
                for (const auto& graph : *many) {
                    add(graph);
                }
            }
        }
        if (functions_.empty()) {
            return;
        }
        read_function(scope, id, op.type, fmt::format("{}:{}:{}", op.domain, op.type, op.overload),
                      depth);
        if (dialect_ == "tf") {  // calls name their functions in attributes
            for (const char* name : {"f", "cond", "body", "then_branch", "else_branch"}) {
                if (auto function = op.text(name, ""); !function.empty()) {
                    read_function(scope, id, name, fmt::format(":{}:", function), depth);
                }
            }
        }
    }

    void read_function(Scope& scope, OpId id, const std::string& label, const std::string& key,
                       int depth) {
        auto found = functions_.find(key);
        if (found == functions_.end() || expanded_ > most_expanded ||
            std::find(open_.begin(), open_.end(), found->second) != open_.end()) {
            return;  // one that calls itself is shown once
        }
        const Op& op = scope.graph->op(id);
        expanded_ += found->second->body.op_count() + 1;
        Body body{.label = label, .function = found->second, .scope = nullptr, .times = {}};
        if (op.type != "While" && op.type != "StatelessWhile") {
            body.times = 1;
        }
        std::shared_ptr<const Graph> made = instantiate(*found->second, op);
        open_.push_back(found->second);
        body.scope = read(made ? *made : found->second->body, nullptr, depth + 1);
        open_.pop_back();
        body.scope->owner = std::move(made);
        scope.bodies[id].push_back(std::move(body));
    }

    // The body with the attributes of this call put in; nullptr when it refers to none.
    static std::shared_ptr<const Graph> instantiate(const Function& function, const Op& call) {
        bool refers = false;
        for (OpId id : function.body.ops()) {
            for (const Attribute& a : function.body.op(id).attributes) {
                refers = refers || !a.reference.empty();
            }
        }
        if (!refers) {
            return nullptr;
        }
        auto body = std::make_shared<Graph>(function.body.clone());
        for (OpId id : body->ops()) {
            std::vector<Attribute> attributes = body->op(id).attributes;
            for (const Attribute& a : attributes) {
                if (a.reference.empty()) {
                    continue;
                }
                const Attribute* given = call.attribute(a.reference);
                for (const Attribute& d : function.defaults) {
                    given = given == nullptr && d.name == a.reference ? &d : given;
                }
                body->remove_attribute(id, a.name);
                if (given != nullptr) {
                    body->set_attribute(id, a.name, given->value);
                }
            }
        }
        return body;
    }

    // Functions that call functions twice each would grow without end.
    static constexpr std::size_t most_expanded = 1'000'000;

    std::string dialect_;
    std::shared_ptr<std::map<const Constant*, Role>> roles_ =
        std::make_shared<std::map<const Constant*, Role>>();
    std::unordered_map<std::string, const Function*> functions_;
    std::vector<const Function*> open_;  // whose bodies are being read
    std::size_t expanded_ = 0;           // ops of function bodies, one count for each call
};

std::optional<std::int64_t> scalar(const Fact& fact) {
    if (fact.constant == nullptr || fact.constant->is_sparse() || fact.dtype != DType::i64 ||
        fact.constant->element_count() != 1) {
        return std::nullopt;
    }
    std::int64_t value = 0;
    std::memcpy(&value, fact.constant->bytes().data(), sizeof value);
    return value;
}

// Does a loop's condition never change: is its output the body's own input, or constantly true?
bool goes_on(const Scope& body) {
    if (body.graph->outputs().empty()) {
        return false;
    }
    TensorId at = body.graph->outputs()[0];
    for (int steps = 0; steps < deepest; ++steps) {
        if (const Constant* c = body.fact(at).constant) {
            return c->dtype() == DType::boolean && c->element_count() == 1 && !c->is_sparse() &&
                   c->bytes()[0] != std::byte{0};
        }
        const Tensor& t = body.graph->tensor(at);
        if (t.producer == OpId::none) {
            return body.graph->inputs().size() > 1 && body.graph->inputs()[1] == at;
        }
        const Op& op = body.graph->op(t.producer);
        if (op.type != "Identity" || op.inputs.empty() || op.inputs[0] == TensorId::none) {
            return false;
        }
        at = op.inputs[0];
    }
    return false;
}

std::optional<std::uint64_t> extent(const Fact& fact, std::int64_t axis) {
    if (!fact.shape) {
        return std::nullopt;
    }
    auto rank = static_cast<std::int64_t>(fact.shape->size());
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank) {
        return std::nullopt;
    }
    return static_cast<std::uint64_t>((*fact.shape)[static_cast<std::size_t>(axis)]);
}

// How often a body of `op` runs, as far as shapes and constants tell.
std::optional<std::uint64_t> iterations(const Scope& scope, OpId id, const Scope& body) {
    const Op& op = scope.graph->op(id);
    if (is_choice(scope, op) || op.type.starts_with("wrap_") || op.type == "invoke_subgraph") {
        return 1;
    }
    if (op.type == "Loop" && op.inputs.size() >= 2) {
        for (std::size_t slot = op.inputs.size() - 2; slot < op.outputs.size(); ++slot) {
            if (op.outputs[slot] != TensorId::none) {
                if (auto n = extent(scope.fact(op.outputs[slot]), 0)) {
                    return n;
                }
            }
        }
        if (op.inputs[0] != TensorId::none && goes_on(body)) {
            auto limit = scalar(scope.fact(op.inputs[0]));
            if (auto seen = scope.limits.find(id); seen != scope.limits.end()) {
                limit = seen->second;
            }
            if (limit && *limit >= 0) {
                return static_cast<std::uint64_t>(*limit);
            }
        }
    }
    if (op.type == "Scan") {
        auto scanned = op.integer("num_scan_inputs", 0);
        auto count = static_cast<std::int64_t>(op.inputs.size());
        if (scanned > 0 && scanned <= count) {
            auto axes = op.integers("scan_input_axes");
            TensorId first = op.inputs[static_cast<std::size_t>(count - scanned)];
            return first == TensorId::none ? std::nullopt
                                           : extent(scope.fact(first), axes.empty() ? 0 : axes[0]);
        }
    }
    return std::nullopt;
}

}  // namespace

bool is_choice(const Scope& scope, const Op& op) {
    if (scope.dialect == "tf") {
        return op.type == "If" || op.type == "StatelessIf";
    }
    return scope.dialect == "aten" ? op.domain == "higher_order" && op.type == "cond"
                                   : op.domain.empty() && op.type == "If";
}

std::optional<Role> Scope::role_of(const Constant& constant) const {
    auto found = roles->find(&constant);
    return found == roles->end() ? std::nullopt : std::optional(found->second);
}

const std::vector<Body>* Scope::bodies_of(OpId op) const {
    auto found = bodies.find(op);
    return found == bodies.end() ? nullptr : &found->second;
}

Fact fact_of(const Type& type) {
    Fact fact;
    fact.kind = type.kind;
    fact.dtype = type.dtype;
    if (type.kind == Type::Kind::tensor || type.kind == Type::Kind::sparse_tensor) {
        fact.shape = type.shape();
        fact.known = fact.shape ? Known::declared : Known::no;
    }
    if (!fact.shape) {
        fact.text = type_text(type);
    }
    return fact;
}

Fact fact_of(const Constant& constant) {
    return {.kind = Type::Kind::tensor,
            .dtype = constant.dtype(),
            .shape = constant.shape(),
            .known = Known::constant,
            .constant = &constant,
            .text = {}};
}

std::unique_ptr<Scope> read_scope(const Model& model) {
    return Reader(model).read(model.graph, nullptr, 0);
}

void settle(Scope& scope) {
    Reader::capture(scope);
    for (auto& [id, bodies] : scope.bodies) {
        const Op& op = scope.graph->op(id);
        for (Body& body : bodies) {
            const Graph& inner = *body.scope->graph;
            if (body.scope->outer == nullptr) {  // a function: its inputs are what the call reads
                auto inputs = inner.inputs();
                const std::size_t skipped = is_choice(scope, op) ? 1 : 0;  // what decides
                for (std::size_t i = 0; i < inputs.size() && i + skipped < op.inputs.size(); ++i) {
                    if (op.inputs[i + skipped] != TensorId::none) {
                        body.scope->fact(inputs[i]) = scope.fact(op.inputs[i + skipped]);
                    }
                }
                auto outputs = inner.outputs();
                for (std::size_t i = 0; i < outputs.size() && i < op.outputs.size(); ++i) {
                    if (op.outputs[i] != TensorId::none && !body.scope->fact(outputs[i]).shape) {
                        body.scope->fact(outputs[i]) = scope.fact(op.outputs[i]);
                    }
                }
            }
            if (!body.times) {
                body.times = iterations(scope, id, *body.scope);
            }
            settle(*body.scope);
        }
    }
}

OpFacts facts_of(const Scope& scope, OpId id) {
    const Op& op = scope.graph->op(id);
    OpFacts facts;
    facts.op = &op;
    facts.dialect = scope.dialect;
    auto add = [&](std::vector<TensorFacts>& to, TensorId tensor) {
        if (tensor == TensorId::none) {
            to.push_back({.shape = {}, .present = false});
            return;
        }
        const Fact& f = scope.fact(tensor);
        to.push_back({.dtype = f.dtype, .shape = f.shape, .constant = f.constant});
    };
    for (TensorId t : op.inputs) {
        add(facts.inputs, t);
    }
    for (TensorId t : op.outputs) {
        add(facts.outputs, t);
    }
    return facts;
}

std::string text_of(const Fact& fact) {
    if (!fact.shape) {
        return fact.text.empty() ? "unknown" : fact.text;
    }
    if (fact.dtype == DType::f32) {
        return shape_text(*fact.shape);
    }
    return fmt::format("{} {}", name(fact.dtype), shape_text(*fact.shape));
}

}  // namespace trocar::summary
