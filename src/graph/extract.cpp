#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/graph_edit.h"
#include "trocar/error.h"
#include "trocar/model.h"
#include "util/text.h"

namespace trocar {

bool Model::intact() const {
    return source.intact() && !graph.edited() &&
           std::none_of(functions.begin(), functions.end(), [](const auto& function) {
               return function->source.edited || function->body.edited();
           });
}

std::int64_t Model::opset(std::string_view wanted) const {
    const auto same = [](std::string_view text) { return text == "ai.onnx" ? "" : text; };
    for (const auto& opset : opsets) {
        if (same(opset.domain) == same(wanted)) {
            return opset.version;
        }
    }
    return 0;
}

namespace {

// Builds a new graph out of ops of another one. Names stay, so an op's own bytes stay true.
class Extraction {
public:
    Extraction(const Graph& from, Graph& to, std::span<const Constant* const> constants)
        : from_(from), to_(to), constants_(constants) {}

    void add(OpId id) {
        const auto& op = from_.op(id);
        for (const auto* list : {&op.inputs, &op.captures}) {
            for (const auto input : *list) {
                if (input != TensorId::none) {
                    reach(input);
                }
            }
        }
        OpSpec spec = op;
        for (auto& input : spec.inputs) {
            input = input == TensorId::none ? input : made_.at(input);
        }
        for (auto& output : spec.outputs) {
            if (output != TensorId::none) {
                const auto old = output;
                output = to_.add_tensor(from_.tensor(old).name, from_.tensor(old).type);
                carry(old, output);
                made_.emplace(old, output);
            }
        }
        clone_subgraphs(spec.attributes);
        const auto copy = to_.append(std::move(spec));
        to_.op_from_file(copy).source = op.source;
    }

    // The tensor in the new graph: made by an op already added, a constant, or an input of the
    // part.
    TensorId reach(TensorId id) {
        if (const auto found = made_.find(id); found != made_.end()) {
            return found->second;
        }
        const auto& t = from_.tensor(id);
        TensorId copy{};
        const Constant* constant = nullptr;
        if (!constants_.empty()) {
            constant = constants_[index(id)];
        } else if (t.constant && !forced_inputs_.contains(id)) {
            constant = &*t.constant;
        }
        if (constant != nullptr) {
            copy = to_.add_constant(t.name, *constant);
            // The bytes in the file are those of the tensor's own constant, not of another one that
            // stands for it.
            if (t.constant && constant == &*t.constant) {
                to_.tensor_from_file(copy).constant_source = t.constant_source;
            }
        } else {
            copy = to_.add_input(t.name, t.type);
        }
        carry(id, copy);
        made_.emplace(id, copy);
        return copy;
    }

    void force_input(TensorId id) { forced_inputs_.insert(id); }

private:
    void carry(TensorId old, TensorId copy) {
        const auto& t = from_.tensor(old);
        auto& c = to_.tensor_from_file(copy);
        c.declaration = t.declaration;
        c.doc = t.doc;
        c.metadata = t.metadata;
        c.quantization = t.quantization;
    }

    const Graph& from_;
    Graph& to_;
    std::span<const Constant* const> constants_;
    std::unordered_map<TensorId, TensorId> made_;
    std::unordered_set<TensorId> forced_inputs_;
};

// Does an op name a function in one of its attributes, as loops and choices of TensorFlow do?
bool names(const Op& op, const std::string& function) {
    return std::any_of(op.attributes.begin(), op.attributes.end(), [&](const Attribute& one) {
        if (const auto* text = std::get_if<std::string>(&one.value)) {
            return *text == function;
        }
        const auto* texts = std::get_if<std::vector<std::string>>(&one.value);
        return texts != nullptr &&
               std::find(texts->begin(), texts->end(), function) != texts->end();
    });
}

// The functions that ops of the graph call or name, and those that these call.
void add_functions(const Model& model, const Graph& graph, Model& part,
                   std::unordered_set<const Function*>& known) {
    if (model.functions.empty()) {
        return;
    }
    const bool by_name = model.dialect == "tf";
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        for (const auto& function : model.functions) {
            const bool called = function->name == op.type && function->domain == op.domain &&
                                function->overload == op.overload;
            if ((called || (by_name && names(op, function->name))) &&
                known.insert(function.get()).second) {
                add_functions(model, function->body, part, known);
                part.functions.push_back(function);
            }
        }
        for (const auto& subgraph : op.subgraphs()) {
            add_functions(model, *subgraph, part, known);
        }
    }
}

Model shell_of(const Model& model) {
    Model part;
    part.format = model.format;
    part.dialect = model.dialect;
    part.opsets = model.opsets;
    // From version 4 of ONNX on, constants need not be inputs too.
    part.ir_version =
        model.dialect == "onnx" ? std::max<std::int64_t>(model.ir_version, 4) : model.ir_version;
    part.producer = model.producer;
    part.producer_version = model.producer_version;
    part.domain = model.domain;
    part.model_version = model.model_version;
    part.graph.name = model.graph.name;
    return part;
}

void finish(const Model& model, Model& part) {
    std::unordered_set<const Function*> known;
    add_functions(model, part.graph, part, known);
}

}  // namespace

Model extract_ops(const Model& model, std::span<const OpId> ops, std::span<const TensorId> outputs,
                  std::span<const Constant* const> constants) {
    Model part = shell_of(model);
    Extraction extraction(model.graph, part.graph, constants);
    for (const auto id : ops) {
        extraction.add(id);
    }
    std::vector<TensorId> wanted;
    for (const auto output : outputs) {
        wanted.push_back(extraction.reach(output));
    }
    part.graph.set_outputs(std::move(wanted));
    finish(model, part);
    return part;
}

Model extract(const Model& model, std::span<const TensorId> from, std::span<const TensorId> to) {
    const auto& graph = model.graph;
    if (to.empty()) {
        throw Error(Fault::usage, "nothing to extract: no tensor to compute is given");
    }
    const std::unordered_set<TensorId> given(from.begin(), from.end());
    std::unordered_set<OpId> needed;
    std::unordered_set<TensorId> read;
    std::vector<std::string> missing;
    std::vector<TensorId> work(to.begin(), to.end());
    while (!work.empty()) {
        const auto id = work.back();
        work.pop_back();
        const auto& t = graph.tensor(id);
        if (given.contains(id) || !read.insert(id).second) {
            continue;
        }
        if (t.producer == OpId::none) {
            if (!from.empty() && t.is_input && !t.constant) {
                missing.push_back(t.name);
            }
            continue;
        }
        if (needed.insert(t.producer).second) {
            const auto& op = graph.op(t.producer);
            for (const auto* list : {&op.inputs, &op.captures}) {
                for (const auto input : *list) {
                    if (input != TensorId::none) {
                        work.push_back(input);
                    }
                }
            }
        }
    }
    if (!missing.empty()) {
        std::sort(missing.begin(), missing.end());
        throw Error(
            Fault::usage,
            fmt::format("the part also needs '{}', which is not among the tensors to start from",
                        join(missing, "', '")),
            "name them too, or start at tensors that lie between");
    }
    for (const auto output : to) {
        if (given.contains(output)) {
            throw Error(Fault::usage, fmt::format("'{}' is both start and end of the part",
                                                  graph.tensor(output).name));
        }
    }
    Model part = shell_of(model);
    part.metadata = model.metadata;
    Extraction extraction(graph, part.graph, {});
    for (const auto id : from) {
        extraction.force_input(id);
        extraction.reach(id);
    }
    for (const auto id : graph.inputs()) {
        if (from.empty() && read.contains(id) && !graph.tensor(id).constant) {
            extraction.reach(id);
        }
    }
    std::vector<OpId> ops(needed.begin(), needed.end());
    std::sort(ops.begin(), ops.end(), [&](OpId a, OpId b) { return graph.before(a, b); });
    for (const auto id : ops) {
        extraction.add(id);
    }
    std::vector<TensorId> outputs;
    for (const auto id : to) {
        outputs.push_back(extraction.reach(id));
    }
    part.graph.set_outputs(std::move(outputs));
    finish(model, part);
    return part;
}

}  // namespace trocar
