#include "formats/tensorflow/flatten.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace trocar::tensorflow {

namespace {

constexpr int deepest = 60;
constexpr std::size_t op_bytes = 400;  // what an op takes beside its texts
constexpr std::size_t tensor_bytes = 300;

bool is_call(const std::string& type) {
    return type == "PartitionedCall" || type == "StatefulPartitionedCall";
}

// Ops in the body of a call stand where the call stood: "layer/StatefulPartitionedCall_1" is in
// "layer/".
std::string scope_of(const Op& call) {
    const auto slash = call.name.rfind('/');
    const auto last = slash == std::string::npos ? call.name : call.name.substr(slash + 1);
    const bool plain =
        last.starts_with("PartitionedCall") || last.starts_with("StatefulPartitionedCall");
    return !plain                       ? call.name + "/"
           : slash == std::string::npos ? std::string()
                                        : call.name.substr(0, slash + 1);
}

bool is_variable(const Tensor& tensor) {
    return tensor.constant &&
           std::any_of(tensor.metadata.begin(), tensor.metadata.end(),
                       [](const Property& one) { return one.key == "variable"; });
}

// Is what such an op makes of the type of what it reads? Frozen variables are read through one.
bool passes_on(const OpSpec& spec) {
    return (spec.type == "Identity" || spec.type == "StopGradient") && spec.inputs.size() == 1 &&
           spec.outputs.size() == 1 && spec.inputs[0] != TensorId::none;
}

// A loop of TensorFlow 1 ends in an op that only goes back.
bool has_loops(const Graph& graph) {
    const auto ops = graph.ops();
    return std::any_of(ops.begin(), ops.end(), [&](OpId id) {
        const auto& metadata = graph.op(id).metadata;
        return std::any_of(metadata.begin(), metadata.end(),
                           [](const Property& one) { return one.key == "back edge"; });
    });
}

// Texts of attributes that may name functions.
std::vector<std::string> names_in(const Op& op) {
    std::vector<std::string> names;
    for (const auto& attribute : op.attributes) {
        if (const auto* one = std::get_if<std::string>(&attribute.value)) {
            names.push_back(*one);
        } else if (const auto* many = std::get_if<std::vector<std::string>>(&attribute.value)) {
            names.insert(names.end(), many->begin(), many->end());
        }
    }
    return names;
}

}  // namespace

bool Flattener::spend(std::size_t bytes) {
    if (bytes > budget_) {
        return false;
    }
    budget_ -= bytes;
    return true;
}

std::string Flattener::free_name(const std::string& name) const {
    return made_->find_tensor(name) ? made_->fresh_name(name) : name;
}

Graph Flattener::flatten(const Graph& source, bool all) {
    Graph made;
    made.name = source.name;
    made_ = &made;
    Map map(source.tensor_limit(), TensorId::none);
    for (const auto input : source.inputs()) {
        const auto& tensor = source.tensor(input);
        const auto id = made.add_input(tensor.name, tensor.type);
        made.tensor_from_file(id).metadata = tensor.metadata;
        map[index(input)] = id;
    }
    expand(source, map, "", 0);
    std::vector<TensorId> outputs;
    for (const auto output : source.outputs()) {
        const auto id = here(source, output, map, "");
        outputs.push_back(id);
        // What a call wrote keeps the name that the model's users know.
        const auto& name = source.tensor(output).name;
        if (made.tensor(id).producer != OpId::none && !made.find_tensor(name)) {
            made.rename(id, name);
        }
    }
    made.set_outputs(std::move(outputs));
    if (!all && !has_loops(made)) {
        made.remove_unused();  // results that a caller does not read
    }
    made.mark_read();
    made_ = nullptr;
    return made;
}

void Flattener::expand(const Graph& source, Map& map, const std::string& scope, int depth) {
    for (const auto id : source.ops()) {
        const auto& op = source.op(id);
        if (op.type == "ReadVariableOp" && op.inputs.size() == 1 && op.outputs.size() == 1) {
            const auto variable = here(source, op.inputs[0], map, scope);
            if (is_variable(made_->tensor(variable))) {
                map[index(op.outputs[0])] = variable;
                continue;
            }
        }
        const auto* function = called(op, depth);
        if (function == nullptr || !expand_call(source, op, *function, map, scope, depth)) {
            copy(source, op, map, scope);
        }
    }
}

const Function* Flattener::called(const Op& op, int depth) {
    const auto name = is_call(op.type) ? op.text("f", "") : op.type;
    if (depth >= deepest || name.empty() || !library_.contains(name)) {
        return nullptr;
    }
    const auto& function = library_.find(name);
    return std::find(open_.begin(), open_.end(), &function) == open_.end() ? &function : nullptr;
}

bool Flattener::expand_call(const Graph& source, const Op& op, const Function& function, Map& map,
                            const std::string& scope, int depth) {
    const auto& body = function.body;
    std::size_t bytes = body.tensor_limit() * sizeof(TensorId);
    for (const auto id : body.ops()) {
        const auto& inner = body.op(id);
        const auto name = scope.size() + op.name.size() + inner.name.size();
        bytes += op_bytes + inner.inputs.size() * sizeof(TensorId) +
                 (inner.outputs.size() + inner.inputs.size() + 1) * name +
                 (inner.outputs.size() + inner.inputs.size()) * tensor_bytes;
        for (const auto& attribute : inner.attributes) {
            bytes += attribute.source.bytes.size();
        }
    }
    if (op.inputs.size() != body.inputs().size() || op.outputs.size() > body.outputs().size() ||
        !spend(bytes)) {
        return false;
    }
    Map inside(body.tensor_limit(), TensorId::none);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (op.inputs[i] == TensorId::none) {
            return false;
        }
        inside[index(body.inputs()[i])] = here(source, op.inputs[i], map, scope);
    }
    open_.push_back(&function);
    const auto inner_scope = scope + scope_of(op);
    expand(body, inside, inner_scope, depth + 1);
    open_.pop_back();
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
        const auto result = here(body, body.outputs()[i], inside, inner_scope);
        map[index(op.outputs[i])] = result;
        const auto& outer = source.tensor(op.outputs[i]).type;
        const auto& inner = made_->tensor(result);
        if (inner.producer != OpId::none && !inner.type.dims && outer.dims) {
            made_->set_type(result, outer);
        }
    }
    ++calls_;
    return true;
}

void Flattener::copy(const Graph& source, const Op& op, Map& map, const std::string& scope) {
    auto spec = static_cast<OpSpec>(op);
    spec.name = scope + op.name;
    for (auto& property : spec.metadata) {
        if (!scope.empty() && (property.key == "after" || property.key == "back edge")) {
            property.value = scope + property.value;
        }
    }
    for (auto& input : spec.inputs) {
        input = input == TensorId::none ? input : here(source, input, map, scope);
    }
    for (std::size_t slot = 0; slot < spec.outputs.size(); ++slot) {
        const auto from = spec.outputs[slot];
        const auto name = slot == 0 ? spec.name : fmt::format("{}:{}", spec.name, slot);
        auto type = source.tensor(from).type;
        if (passes_on(spec) && !type.dims && made_->tensor(spec.inputs[0]).type.dims) {
            type = made_->tensor(spec.inputs[0]).type;
        }
        spec.outputs[slot] = made_->add_tensor(free_name(name), std::move(type));
        map[index(from)] = spec.outputs[slot];
    }
    made_->append(std::move(spec));
}

TensorId Flattener::here(const Graph& source, TensorId tensor, Map& map, const std::string& scope) {
    auto& found = map[index(tensor)];
    if (found == TensorId::none) {  // else an op made it, or a call was given it
        const auto& facts = source.tensor(tensor);
        found = made_->add_constant(free_name(scope + facts.name), *facts.constant);
        made_->tensor_from_file(found).metadata = facts.metadata;
    }
    return found;
}

std::vector<std::shared_ptr<Function>> Flattener::functions(const Graph& graph) {
    std::vector<std::shared_ptr<Function>> all;
    std::vector<std::string> seen;
    std::unordered_set<std::string> known;
    const auto note = [&](const Graph& where) {
        for (const auto id : where.ops()) {
            for (const auto& name : names_in(where.op(id))) {
                if (library_.contains(name) && known.insert(name).second) {
                    seen.push_back(name);
                }
            }
        }
    };
    note(graph);
    for (std::size_t i = 0; i < seen.size(); ++i) {
        const auto& file = library_.find(seen[i]);
        auto made = std::make_shared<Function>();
        made->name = file.name;
        made->doc = file.doc;
        made->attributes = file.attributes;
        made->source = file.source;
        open_ = {&file};
        made->body = flatten(file.body, false);
        open_.clear();
        note(made->body);
        all.push_back(std::move(made));
    }
    return all;
}

}  // namespace trocar::tensorflow
