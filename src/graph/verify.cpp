#include <fmt/format.h>

#include <unordered_map>

#include "trocar/graph.h"

namespace trocar {

namespace {

// Checks one graph; subgraphs are checked with the prefix that says where they are.
class Verifier {
public:
    Verifier(const Graph& graph, std::string prefix, std::vector<Problem>& problems)
        : graph_(graph), prefix_(std::move(prefix)), problems_(problems) {}

    void run() {
        ops();
        tensors();
        interface();
    }

private:
    void report(std::string where, std::string what) {
        problems_.push_back({prefix_ + std::move(where), std::move(what)});
    }
    std::string describe(std::size_t place, const Op& op) const {
        return op.name.empty() ? fmt::format("op {} ({})", place, op.type)
                               : fmt::format("op {} ({} '{}')", place, op.type, op.name);
    }
    static std::string quoted(const std::string& name) { return fmt::format("tensor '{}'", name); }

    bool defined(TensorId id) const {
        const auto& t = graph_.tensor(id);
        return t.producer != OpId::none || t.is_input || t.is_captured || t.constant.has_value();
    }

    void read(const std::string& where, OpId reader, TensorId id) {
        if (!graph_.contains(id)) {
            report(where,
                   fmt::format("reads a tensor that is not in the graph (handle {})", index(id)));
            return;
        }
        const auto& t = graph_.tensor(id);
        if (!defined(id)) {
            report(where, fmt::format("reads '{}', which nothing writes", t.name));
        } else if (t.producer != OpId::none && !graph_.before(t.producer, reader)) {
            report(where, fmt::format("reads '{}' before it is written", t.name));
        }
    }

    void ops() {
        std::size_t place = 0;
        auto before = OpId::none;
        for (const auto id : graph_.ops()) {
            const auto& op = graph_.op(id);
            const auto where = describe(place++, op);
            if (before != OpId::none && !graph_.before(before, id)) {
                report(where, "stands out of order");
            }
            before = id;
            if (op.type.empty()) {
                report(where, "has no type");
            }
            for (std::uint32_t slot = 0; slot < op.inputs.size(); ++slot) {
                if (op.inputs[slot] != TensorId::none) {
                    read(where, id, op.inputs[slot]);
                    ++links_;
                }
            }
            for (const auto capture : op.captures) {
                read(where, id, capture);
                ++links_;
            }
            for (std::uint32_t slot = 0; slot < op.outputs.size(); ++slot) {
                const auto output = op.outputs[slot];
                if (output == TensorId::none) {
                    continue;
                }
                if (!graph_.contains(output)) {
                    report(where,
                           fmt::format("writes a tensor that is not in the graph (handle {})",
                                       index(output)));
                } else if (graph_.tensor(output).producer != id ||
                           graph_.tensor(output).producer_slot != slot) {
                    report(where, fmt::format("writes '{}', which is written elsewhere too",
                                              graph_.tensor(output).name));
                }
            }
            for (const auto& subgraph : op.subgraphs()) {
                Verifier(*subgraph,
                         fmt::format("{}{}, graph '{}': ", prefix_, where, subgraph->name),
                         problems_)
                    .run();
                for (const auto captured : subgraph->captured()) {
                    const auto& name = subgraph->tensor(captured).name;
                    if (!graph_.find_tensor(name)) {
                        report(where, fmt::format("a subgraph reads '{}', which is not defined "
                                                  "around it",
                                                  name));
                    }
                }
            }
        }
        if (place != graph_.op_count()) {
            report("graph",
                   fmt::format("has {} ops in order but counts {}", place, graph_.op_count()));
        }
    }

    void tensors() {
        std::size_t uses = 0;
        for (const auto id : graph_.tensors()) {
            const auto& t = graph_.tensor(id);
            if (graph_.find_tensor(t.name) != id) {
                report(quoted(t.name), "shares its name with another tensor");
            }
            if (t.producer != OpId::none && (t.is_input || t.is_captured || t.constant)) {
                report(quoted(t.name), "is written by an op and defined otherwise too");
            }
            for (const auto& use : t.uses) {
                ++uses;
                const bool known =
                    graph_.contains(use.op) &&
                    (use.slot == Use::captured || (use.slot < graph_.op(use.op).inputs.size() &&
                                                   graph_.op(use.op).inputs[use.slot] == id));
                if (!known) {
                    report(quoted(t.name), "notes a use that is none");
                }
            }
        }
        if (uses != links_) {
            report("graph",
                   fmt::format("ops read {} inputs but tensors note {} uses", links_, uses));
        }
    }

    void interface() {
        for (const auto id : graph_.inputs()) {
            if (!graph_.contains(id) || !graph_.tensor(id).is_input) {
                report("graph", "lists an input that is none");
            }
        }
        for (const auto id : graph_.outputs()) {
            if (!graph_.contains(id)) {
                report("graph", "lists an output that is not in it");
            } else if (!defined(id)) {
                report(quoted(graph_.tensor(id).name),
                       "is an output of the graph, but nothing writes it");
            }
        }
    }

    const Graph& graph_;
    std::string prefix_;
    std::vector<Problem>& problems_;
    std::size_t links_ = 0;
};

}  // namespace

std::vector<Problem> Graph::verify() const {
    std::vector<Problem> problems;
    Verifier(*this, {}, problems).run();
    return problems;
}

}  // namespace trocar
