#include "tools/profile/cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "trocar/error.h"
#include "trocar/session.h"
#include "util/text.h"

namespace trocar::profiles {

namespace {

// "a.b" of "a.b.c.d" for 2.
std::string outer_module(const std::string& module, int levels) {
    std::size_t end = 0;
    for (int level = 0; level < levels && end != std::string::npos; ++level) {
        end = module.find('.', end == 0 ? 0 : end + 1);
    }
    return module.substr(0, end);
}

Selector at_modules(const Model& model, int levels) {
    const auto plan = make_plan(model, {});
    auto last = OpId::none;
    auto ends = std::make_shared<std::set<OpId>>();
    for (const auto& segment : plan.segments) {
        for (const auto id : segment.ops) {
            const auto& graph = model.graph;
            if (last != OpId::none && outer_module(graph.op(last).origin.module, levels) !=
                                          outer_module(graph.op(id).origin.module, levels)) {
                ends->insert(last);
            }
            last = id;
        }
    }
    return Selector([ends](const Graph&, OpId id) { return ends->contains(id); },
                    fmt::format("modules {} deep", levels));
}

// What can be selected, for somebody who mistyped it.
std::string near_matches(const Graph& graph, const std::string& selector) {
    std::set<std::string> known;
    std::set<std::string> types;
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        types.insert(op.type);
        known.insert(op.type);
        known.insert("name:" + op.name);
        if (!op.origin.module.empty()) {
            known.insert("module:" + op.origin.module);
        }
    }
    const std::vector<std::string> candidates(known.begin(), known.end());
    const auto near = did_you_mean(selector, candidates);
    std::vector<std::string> some(types.begin(), types.end());
    some.resize(std::min<std::size_t>(some.size(), 12));
    return fmt::format("{}{}its types are {}{}; --allow-empty goes on without", near,
                       near.empty() ? "" : " ", join(some, ", "),
                       types.size() > some.size() ? ", …" : "");
}

}  // namespace

Selector find_cut(const Model& model, const std::string& selector, int modules, bool allow_empty) {
    if (selector.empty() && modules == 0) {
        return every_op();
    }
    const auto cut = modules > 0 ? at_modules(model, modules) : parse_selector(selector);
    if (allow_empty || !select(model.graph, cut).empty()) {
        return cut;
    }
    if (modules > 0) {
        throw Error(Fault::usage, "the model does not say which modules its ops come from",
                    "--cut SELECTOR chooses ops; --allow-empty goes on without cuts");
    }
    throw Error(Fault::usage, fmt::format("no op of the model matches --cut {}", selector),
                near_matches(model.graph, selector));
}

}  // namespace trocar::profiles
