#pragma once

#include <span>
#include <string>
#include <vector>

#include "trocar/deployed.h"
#include "trocar/tool.h"

namespace trocar {

// From a graph into a body of one of its ops: `body` counts the op's subgraphs.
struct BodyStep {
    OpId op;
    std::size_t body;
};

// A probe at one op, and how often it was called there.
struct Attached {
    const Tool* tool;
    const Probe* probe;
    std::uint64_t calls = 0;
};

// Does one of the probes have this flag?
bool any(const std::vector<Attached>& list, bool Probe::*flag);

// An op that somebody wants to be at.
struct Site {
    std::vector<BodyStep> path;  // from the model's graph to the op's; empty: the model's own
    const Graph* graph = nullptr;
    OpId op = OpId::none;
    std::vector<Attached> before;
    std::vector<Attached> after;
    std::vector<Attached> instead;  // at most one

    bool in_body() const { return !path.empty(); }
};

// The ops of a model, those in bodies included, at which the probes of `tools` stand. In order,
// those of bodies right after the op they belong to. `sources`, of the deployed view, is asked
// beside the graph itself: an op is chosen when one of the ops it computes is.
struct SourceView {
    const Graph* graph = nullptr;
    const std::vector<std::vector<OpId>>* sources = nullptr;
};
std::vector<Site> find_sites(const Model& model, std::span<Tool* const> tools,
                             const SourceView& source = {});

// Texts of the selectors of probes that chose nothing.
std::vector<std::string> unmatched(const std::vector<Site>& sites, std::span<Tool* const> tools);

// The graph at the end of a path, in this model or in a clone of the one it was found in.
Graph& graph_at(Graph& graph, std::span<const BodyStep> path);
const Graph& graph_at(const Graph& graph, std::span<const BodyStep> path);

}  // namespace trocar
