#include "run/canonical.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "graph/fingerprints.h"
#include "run/deployed_map.h"
#include "run/twins.h"
#include "trocar/session.h"

namespace trocar {

namespace {

constexpr std::size_t no_place = std::numeric_limits<std::size_t>::max();

// The place in the model at which a name is written, bodies included. What is computed twice has
// the place of the first: the engine keeps any of the two.
class Places {
public:
    explicit Places(const Model& model) {
        const auto twins = find_twins(model.graph, make_plan(model, {}));
        add(model.graph);
        for (const auto id : model.graph.tensors()) {
            const auto found = places_.find(model.graph.tensor(id).name);
            const auto first = places_.find(model.graph.tensor(twins[index(id)]).name);
            if (found != places_.end() && first != places_.end()) {
                found->second = std::min(found->second, first->second);
            }
        }
    }
    std::size_t of(std::string_view name) const {
        const auto found = places_.find(name);
        return found == places_.end() ? no_place : found->second;
    }

private:
    // Views of the model's names.
    void add(const Graph& graph) {
        for (const auto id : graph.ops()) {
            for (const auto& body : graph.op(id).subgraphs()) {
                add(*body);
            }
            for (const auto output : graph.op(id).outputs) {
                if (output != TensorId::none) {
                    places_.emplace(graph.tensor(output).name, next_);
                }
            }
            ++next_;
        }
    }
    std::unordered_map<std::string_view, std::size_t> places_;
    std::size_t next_ = 0;
};

// For each op the place of what it writes; where that has a name of the engine's making, of the
// first that is computed from it.
std::vector<std::size_t> places_of(const Graph& graph, const Places& places) {
    std::vector<std::size_t> all(graph.op_limit(), no_place);
    for (auto id = graph.last(); id != OpId::none; id = graph.previous(id)) {
        auto& place = all[index(id)];
        for (const auto output : graph.op(id).outputs) {
            if (output != TensorId::none) {
                place = std::min(place, places.of(graph.tensor(output).name));
            }
        }
        if (place == no_place) {
            for (const auto consumer : graph.consumers(id)) {
                place = std::min(place, all[index(consumer)]);
            }
        }
    }
    return all;
}

std::vector<OpId> canonical_order(const Graph& graph, const Places& places) {
    const auto at = places_of(graph, places);
    const Fingerprints prints(graph);
    using Key = std::tuple<std::size_t, std::uint64_t, std::uint64_t, std::size_t, OpId>;
    std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
    std::vector<std::size_t> waits(graph.op_limit(), 0);
    std::vector<std::size_t> number(graph.op_limit(), 0);
    const auto add = [&](OpId id) {
        ready.emplace(at[index(id)], prints.strong_forward[index(id)],
                      prints.strong_backward[index(id)], number[index(id)], id);
    };
    std::size_t count = 0;
    for (const auto id : graph.ops()) {
        number[index(id)] = count++;
        waits[index(id)] = graph.producers(id).size();
        if (waits[index(id)] == 0) {
            add(id);
        }
    }
    std::vector<OpId> order;
    while (!ready.empty()) {
        const auto id = std::get<OpId>(ready.top());
        ready.pop();
        order.push_back(id);
        for (const auto consumer : graph.consumers(id)) {
            if (--waits[index(consumer)] == 0) {
                add(consumer);
            }
        }
    }
    return order;
}

// Copies a graph op by op.
class Rebuilder {
public:
    Rebuilder(const Graph& from, const Places& places) : from_(from), places_(places) {
        known_.assign(from.tensor_limit(), TensorId::none);
    }

    Graph rebuild() {
        to_.name = from_.name;
        to_.doc = from_.doc;
        to_.metadata = from_.metadata;
        for (const auto id : from_.inputs()) {
            const auto& tensor = from_.tensor(id);
            known_[index(id)] = to_.add_input(tensor.name, tensor.type);
            if (tensor.constant) {
                to_.set_constant(known_[index(id)], *tensor.constant);
            }
        }
        for (const auto id : canonical_order(from_, places_)) {
            add(from_.op(id));
        }
        std::vector<TensorId> outputs;
        for (const auto id : from_.outputs()) {
            outputs.push_back(read(id));
        }
        to_.set_outputs(std::move(outputs));
        return std::move(to_);
    }

private:
    // What is not written by an op comes in where it is first read.
    TensorId read(TensorId id) {
        if (id == TensorId::none || known_[index(id)] != TensorId::none) {
            return id == TensorId::none ? id : known_[index(id)];
        }
        const auto& tensor = from_.tensor(id);
        auto& made = known_[index(id)];
        if (tensor.constant) {
            made = to_.add_constant(tensor.name, *tensor.constant);
        } else if (tensor.is_captured) {
            made = to_.add_capture(tensor.name);
        } else {
            made = to_.add_tensor(tensor.name, tensor.type);
        }
        return made;
    }

    void add(const Op& op) {
        OpSpec spec = op;
        for (auto& input : spec.inputs) {
            input = read(input);
        }
        auto captures = op.captures;
        std::sort(captures.begin(), captures.end(),
                  [&](TensorId a, TensorId b) { return captured_key(a) < captured_key(b); });
        for (const auto captured : captures) {
            read(captured);
        }
        for (auto& output : spec.outputs) {
            output = read(output);
        }
        std::sort(spec.attributes.begin(), spec.attributes.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
        to_.append(std::move(spec));
    }

    // The names of constants are the engine's.
    std::tuple<std::uint64_t, std::string_view> captured_key(TensorId id) const {
        const auto& tensor = from_.tensor(id);
        return {tensor.constant ? content_hash(*tensor.constant) : 0, tensor.name};
    }

    const Graph& from_;
    const Places& places_;
    Graph to_;
    std::vector<TensorId> known_;  // by TensorId of `from_`
};

// Bodies first: what an op does is told by what is in them.
Graph canonical(Graph graph, const Places& places) {
    std::vector<OpId> ops(graph.ops().begin(), graph.ops().end());
    for (const auto id : ops) {
        const auto attributes = graph.op(id).attributes;
        for (const auto& attribute : attributes) {
            const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
            if (body != nullptr && *body != nullptr) {
                graph.set_attribute(id, attribute.name,
                                    std::make_shared<Graph>(canonical((*body)->clone(), places)));
            }
        }
        graph.update_captures(id);
    }
    return Rebuilder(graph, places).rebuild();
}

}  // namespace

void order_canonically(const Model& source, Model& made) {
    made.graph = canonical(std::move(made.graph), Places(source));
}

namespace {

bool same_constant(const Constant& a, const Constant& b) {
    return a.dtype() == b.dtype() && a.shape() == b.shape() && a.is_sparse() == b.is_sparse() &&
           content_hash(a) == content_hash(b);
}

// "FusedConv" is still a Conv.
std::string_view base_type(const Op& op) {
    std::string_view type = op.type;
    if (type.starts_with("Fused")) {
        type.remove_prefix(5);
    }
    return type;
}

// A name that the engine counted up: what is before the number.
std::string_view stem(std::string_view name) {
    const auto at = name.rfind("_token_");
    return at != std::string_view::npos &&
                   name.find_first_not_of("0123456789", at + 7) == std::string_view::npos
               ? name.substr(0, at)
               : name;
}

class Namer {
public:
    Namer(const Model& source, Deployed& to)
        : source_(source.graph),
          to_(to),
          graph_(to.model.graph),
          plan_(make_plan(source, {})),
          twins_(find_twins(source_, plan_)) {
        wanted_.resize(graph_.tensor_limit());
        for (const auto id : source_.tensors()) {
            alike_[twins_[index(id)]].push_back(id);
        }
    }

    void name() {
        for (const auto id : graph_.tensors()) {
            const auto& tensor = graph_.tensor(id);
            if (tensor.is_input || tensor.is_output || tensor.is_captured) {
                wanted_[index(id)] = tensor.name;
                taken_.insert(tensor.name);
            }
        }
        for (const auto id : graph_.ops()) {
            for (const auto output : graph_.op(id).outputs) {
                if (output != TensorId::none && wanted_[index(output)].empty()) {
                    want(output, of_output(id, output));
                }
            }
        }
        for (const auto id : graph_.ops()) {
            const auto& op = graph_.op(id);
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
                const auto input = op.inputs[slot];
                if (input != TensorId::none && wanted_[index(input)].empty() &&
                    graph_.tensor(input).constant) {
                    want(input, of_constant(id, slot));
                }
            }
            std::size_t captured = 0;
            for (const auto input : op.captures) {
                if (wanted_[index(input)].empty() && graph_.tensor(input).constant) {
                    want(input, of_captured(id, input, captured++));
                }
            }
        }
        rename_tensors();
        rename_ops();
    }

private:
    // The first of these names that is free.
    void want(TensorId id, const std::string& name) {
        auto free = name;
        for (int count = 2; !taken_.insert(free).second; ++count) {
            free = fmt::format("{} {}", name, count);
        }
        wanted_[index(id)] = std::move(free);
    }

    std::string of_output(OpId by, TensorId output) {
        const auto& tensor = graph_.tensor(output);
        if (const auto own = source_.find_tensor(tensor.name)) {
            return first_free_twin(*own);
        }
        const auto source = to_.source_tensors[index(output)];
        if (source == TensorId::none) {
            const auto& op = graph_.op(by);
            const auto input = op.inputs.empty() ? TensorId::none : op.inputs[0];
            const auto& from = input == TensorId::none ? op.name : wanted_[index(input)];
            return fmt::format("{} ({})", from.empty() ? std::string(stem(op.name)) : from,
                               op.type);
        }
        const auto& name = source_.tensor(twins_[index(source)]).name;
        return to_.layouts[index(output)].block > 0
                   ? name + " (blocked)"
                   : fmt::format("{} ({})", name, graph_.op(by).type);
    }

    // What is computed twice is kept under any of its names: takes the first one that is free.
    std::string first_free_twin(TensorId source) const {
        const auto found = alike_.find(twins_[index(source)]);
        for (const auto id : found->second) {
            if (!taken_.contains(source_.tensor(id).name)) {
                return source_.tensor(id).name;
            }
        }
        return source_.tensor(source).name;
    }

    // After the constant that the model's op reads in the same place.
    std::string of_constant(OpId by, std::size_t slot) const {
        const auto& op = graph_.op(by);
        const auto& constant = *graph_.tensor(op.inputs[slot]).constant;
        for (const auto id : to_.sources[index(by)]) {
            const auto& source = source_.op(id);
            if (base_type(source) != base_type(op) || slot >= source.inputs.size() ||
                source.inputs[slot] == TensorId::none) {
                continue;
            }
            const auto* original = plan_.constants[index(source.inputs[slot])];
            const auto& name = source_.tensor(source.inputs[slot]).name;
            if (original == nullptr) {
                return name + " (folded)";
            }
            return same_constant(*original, constant) ? name
                   : is_blocked_domain(op)            ? name + " (blocked)"
                                                      : name + " (folded)";
        }
        const auto own = source_.find_tensor(graph_.tensor(op.inputs[slot]).name);
        if (own && plan_.constants[index(*own)] != nullptr) {
            return first_free_twin(*own);
        }
        return fmt::format("{} (input {})", written_by(op), slot);
    }

    std::string of_captured(OpId by, TensorId id, std::size_t number) const {
        const auto own = source_.find_tensor(graph_.tensor(id).name);
        return own ? first_free_twin(*own)
                   : fmt::format("{} (capture {})", written_by(graph_.op(by)), number);
    }

    std::string written_by(const Op& op) const {
        for (const auto output : op.outputs) {
            if (output != TensorId::none) {
                return wanted_[index(output)];
            }
        }
        return std::string(stem(op.name));
    }

    // Aside first: a name may still be that of another tensor.
    void rename_tensors() {
        std::vector<TensorId> other;
        for (const auto id : graph_.tensors()) {
            if (!wanted_[index(id)].empty() && wanted_[index(id)] != graph_.tensor(id).name) {
                other.push_back(id);
            }
        }
        for (const auto id : other) {
            graph_.rename(id, graph_.fresh_name("renaming"));
        }
        for (const auto id : other) {
            auto name = wanted_[index(id)];
            graph_.rename(id, graph_.find_tensor(name) ? graph_.fresh_name(name) : name);
        }
    }

    // Those of the model's ops, and those that are made of a tensor's name, stay. Others are
    // counted in the order of the graph: "ReorderOutput", "ReorderOutput 2".
    void rename_ops() {
        const std::vector<OpId> ops(graph_.ops().begin(), graph_.ops().end());
        std::unordered_set<std::string> seen;
        for (const auto id : ops) {
            const auto& op = graph_.op(id);
            const auto own = std::string(stem(op.name));
            if (own.empty() || (own == op.name && seen.insert(own).second)) {
                continue;
            }
            auto free = own;
            for (int count = 2; !seen.insert(free).second; ++count) {
                free = fmt::format("{} {}", own, count);
            }
            graph_.rename(id, free);
        }
    }

    const Graph& source_;
    Deployed& to_;
    Graph& graph_;
    Plan plan_;
    std::vector<TensorId> twins_;
    std::unordered_map<TensorId, std::vector<TensorId>> alike_;  // by the first of them
    std::vector<std::string> wanted_;                            // by TensorId of the made graph
    std::unordered_set<std::string> taken_;
};

}  // namespace

void name_canonically(const Model& source, Deployed& deployed) {
    Namer(source, deployed).name();
}

}  // namespace trocar
