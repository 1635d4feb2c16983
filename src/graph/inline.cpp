#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "trocar/error.h"
#include "trocar/model.h"

namespace trocar {

namespace {

// No model has this many; one whose functions call themselves would.
constexpr std::size_t most_calls = 1'000'000;

// Puts the body of a function in the place of one call of it.
class Inliner {
public:
    Inliner(Graph& graph, OpId call, const Function& function)
        : graph_(graph), call_(call), function_(function) {}

    void run() {
        const auto body = function_.body.clone();
        const auto stem = call().name.empty() ? call().type : call().name;
        connect(body);
        for (const auto id : body.ops()) {
            auto spec = static_cast<OpSpec>(body.op(id));
            spec.name = fmt::format("{}/{}", stem, spec.name.empty() ? spec.type : spec.name);
            if (spec.origin.module.empty()) {
                spec.origin.module = call().origin.module;
            }
            resolve(spec.attributes);
            move_bodies(body, spec, stem);
            for (auto* list : {&spec.inputs, &spec.outputs}) {
                for (auto& tensor : *list) {
                    tensor = tensor == TensorId::none ? tensor : here(body, tensor, stem);
                }
            }
            graph_.insert_before(call_, std::move(spec));
        }
        std::vector<std::pair<TensorId, TensorId>> replacements;
        std::vector<std::pair<TensorId, std::string>> names;
        for (std::size_t i = 0; i < call().outputs.size(); ++i) {
            const auto output = call().outputs[i];
            if (output == TensorId::none) {
                continue;
            }
            const auto inner = here(body, body.outputs()[i], stem);
            replacements.emplace_back(output, inner);
            if (graph_.tensor(inner).producer != OpId::none) {
                names.emplace_back(inner, graph_.tensor(output).name);
            }
        }
        graph_.remove(call_, replacements);
        // What the call wrote keeps its name, which readers of the model know.
        for (const auto& [tensor, name] : names) {
            if (!graph_.find_tensor(name)) {
                graph_.rename(tensor, name);
            }
        }
    }

private:
    const Op& call() const { return graph_.op(call_); }

    void connect(const Graph& body) {
        for (std::size_t i = 0; i < body.inputs().size(); ++i) {
            const bool given = i < call().inputs.size();
            map_[index(body.inputs()[i])] = given ? call().inputs[i] : TensorId::none;
        }
    }

    TensorId here(const Graph& body, TensorId tensor, const std::string& stem) {
        const auto found = map_.find(index(tensor));
        if (found != map_.end()) {
            return found->second;
        }
        const auto& t = body.tensor(tensor);
        const auto name = graph_.fresh_name(fmt::format("{}/{}", stem, t.name));
        const auto made =
            t.constant ? graph_.add_constant(name, *t.constant) : graph_.add_tensor(name, t.type);
        map_[index(tensor)] = made;
        return made;
    }

    // Bodies of control flow see the tensors of the model under their names there; their own get
    // names that are free around them.
    void move_bodies(const Graph& body, OpSpec& spec, const std::string& stem) {
        const auto move = [&](std::shared_ptr<Graph>& inner) {
            inner = std::make_shared<Graph>(inner->clone());
            for (const auto id : inner->tensors()) {
                const auto& t = inner->tensor(id);
                const auto outer = t.is_captured ? body.find_tensor(t.name) : std::nullopt;
                const auto name = outer ? graph_.tensor(here(body, *outer, stem)).name
                                        : fmt::format("{}/{}", stem, t.name);
                if (name == t.name) {
                    continue;
                }
                if (t.is_captured) {
                    const auto seen = inner->find_tensor(name);
                    inner->replace_uses(id, seen ? *seen : inner->add_capture(name));
                    inner->remove_tensor(id);
                } else {
                    inner->rename(id, name);
                }
            }
            resolve_inside(*inner);
        };
        for (auto& attribute : spec.attributes) {
            if (auto* one = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) {
                move(*one);
            } else if (auto* many =
                           std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
                std::for_each(many->begin(), many->end(), move);
            }
        }
    }

    void resolve_inside(Graph& inner) const {
        for (const auto id : inner.ops()) {
            resolve(inner.op_from_file(id).attributes);
            for (const auto& deeper : inner.op(id).subgraphs()) {
                resolve_inside(*deeper);
            }
        }
    }

    // The function's attributes take the values of the call, or their defaults.
    void resolve(std::vector<Attribute>& attributes) const {
        std::erase_if(attributes, [&](Attribute& attribute) {
            if (attribute.reference.empty()) {
                return false;
            }
            const Attribute* given = call().attribute(attribute.reference);
            for (const auto& fallback : function_.defaults) {
                if (given == nullptr && fallback.name == attribute.reference) {
                    given = &fallback;
                }
            }
            if (given == nullptr) {
                return true;
            }
            attribute.value = given->value;
            attribute.reference.clear();
            attribute.source = {};
            return false;
        });
        for (auto& attribute : attributes) {
            attribute.source = {};
        }
    }

    Graph& graph_;
    OpId call_;
    const Function& function_;
    std::unordered_map<std::size_t, TensorId> map_;
};

const Function* function_of(const Model& model, const Op& op) {
    for (const auto& function : model.functions) {
        if (function->name == op.type && function->domain == op.domain &&
            function->overload == op.overload) {
            return function.get();
        }
    }
    return nullptr;
}

// A body may be written for other versions of the op sets than the model uses.
bool same_versions(const Model& model, const Function& function) {
    return std::all_of(function.opsets.begin(), function.opsets.end(), [&](const OpSet& set) {
        const auto version = model.opset(set.domain);
        return version == 0 || version == set.version;
    });
}

}  // namespace

Model clone(const Model& model) {
    Model copy;
    copy.format = model.format;
    copy.dialect = model.dialect;
    copy.path = model.path;
    copy.file_bytes = model.file_bytes;
    copy.external_bytes = model.external_bytes;
    copy.graph = model.graph.clone();
    copy.functions = model.functions;
    copy.opsets = model.opsets;
    copy.ir_version = model.ir_version;
    copy.producer = model.producer;
    copy.producer_version = model.producer_version;
    copy.domain = model.domain;
    copy.model_version = model.model_version;
    copy.doc = model.doc;
    copy.metadata = model.metadata;
    copy.signatures = model.signatures;
    copy.source = model.source;
    copy.image = model.image;
    return copy;
}

std::size_t inline_functions(Model& model) {
    // A body may call further functions; functions cannot call themselves.
    std::size_t inlined = 0;
    for (auto id = model.graph.first(); id != OpId::none;) {
        const auto* function = function_of(model, model.graph.op(id));
        if (function == nullptr || !same_versions(model, *function)) {
            id = model.graph.next(id);
            continue;
        }
        for (const auto& set : function->opsets) {
            if (model.opset(set.domain) == 0) {
                model.opsets.push_back(set);
            }
        }
        if (inlined == most_calls) {
            throw Error(Fault::input, "the model's functions call one another without end");
        }
        const auto before = model.graph.previous(id);
        Inliner(model.graph, id, *function).run();
        ++inlined;
        id = before == OpId::none ? model.graph.first() : model.graph.next(before);
    }
    return inlined;
}

}  // namespace trocar
