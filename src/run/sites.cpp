#include "run/sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

namespace trocar {

namespace {

class Finder {
public:
    Finder(std::span<Tool* const> tools, const SourceView& source)
        : tools_(tools), source_(source) {}

    std::vector<Site> find(const Graph& graph) {
        walk(graph, {});
        return std::move(sites_);
    }

private:
    bool chosen(const Probe& probe, const Graph& graph, OpId id, bool in_body) const {
        if (in_body && !probe.in_bodies) {
            return false;
        }
        if (probe.selector(graph, id)) {
            return true;
        }
        if (source_.graph == nullptr || in_body) {
            return false;
        }
        const auto& sources = (*source_.sources)[index(id)];
        return std::any_of(sources.begin(), sources.end(),
                           [&](OpId op) { return probe.selector(*source_.graph, op); });
    }

    void walk(const Graph& graph, const std::vector<BodyStep>& path) {
        for (const auto id : graph.ops()) {
            Site site{path, &graph, id, {}, {}, {}};
            for (const auto* tool : tools_) {
                for (const auto& probe : tool->probes()) {
                    if (chosen(*probe, graph, id, !path.empty())) {
                        attach(site, *tool, *probe);
                    }
                }
            }
            if (!site.before.empty() || !site.after.empty() || !site.instead.empty()) {
                sites_.push_back(std::move(site));
            }
            const auto bodies = graph.op(id).subgraphs();
            for (std::size_t i = 0; i < bodies.size(); ++i) {
                auto inside = path;
                inside.push_back({id, i});
                walk(*bodies[i], inside);
            }
        }
    }

    static void attach(Site& site, const Tool& tool, const Probe& probe) {
        switch (probe.at) {
            case Port::When::before:
                site.before.push_back({&tool, &probe});
                break;
            case Port::When::after:
                site.after.push_back({&tool, &probe});
                break;
            case Port::When::instead:
                if (site.instead.empty()) {
                    site.instead.push_back({&tool, &probe});
                }
                break;
        }
    }

    std::span<Tool* const> tools_;
    const SourceView& source_;
    std::vector<Site> sites_;
};

}  // namespace

bool any(const std::vector<Attached>& list, bool Probe::*flag) {
    return std::any_of(list.begin(), list.end(), [&](const Attached& a) { return a.probe->*flag; });
}

std::vector<Site> find_sites(const Model& model, std::span<Tool* const> tools,
                             const SourceView& source) {
    return Finder(tools, source).find(model.graph);
}

std::vector<std::string> unmatched(const std::vector<Site>& sites, std::span<Tool* const> tools) {
    std::set<const Probe*> met;
    for (const auto& site : sites) {
        for (const auto* list : {&site.before, &site.after, &site.instead}) {
            for (const auto& attached : *list) {
                met.insert(attached.probe);
            }
        }
    }
    std::vector<std::string> texts;
    for (const auto* tool : tools) {
        for (const auto& probe : tool->probes()) {
            if (!met.contains(probe.get())) {
                texts.push_back(probe->selector.text());
            }
        }
    }
    return texts;
}

const Graph& graph_at(const Graph& graph, std::span<const BodyStep> path) {
    const auto* at = &graph;
    for (const auto& step : path) {
        at = at->op(step.op).subgraphs().at(step.body).get();
    }
    return *at;
}

Graph& graph_at(Graph& graph, std::span<const BodyStep> path) {
    auto* at = &graph;
    for (const auto& step : path) {
        at = at->op(step.op).subgraphs().at(step.body).get();
    }
    return *at;
}

}  // namespace trocar
