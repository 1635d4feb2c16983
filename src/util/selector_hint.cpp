#include "util/selector_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "util/text.h"

namespace trocar {

namespace {

constexpr std::size_t most_types = 8;

// What ops can be chosen by.
struct Words {
    std::set<std::string> types;
    std::set<std::string> names;
    std::set<std::string> modules;
    std::set<std::string> tensors;

    void add(const Graph& graph) {
        for (const auto id : graph.ops()) {
            const auto& op = graph.op(id);
            types.insert(op.type);
            names.insert(op.name);
            modules.insert(op.origin.module);
            for (const auto output : op.outputs) {
                if (output != TensorId::none) {
                    tensors.insert(graph.tensor(output).name);
                }
            }
            for (const auto& body : op.subgraphs()) {
                add(*body);
            }
        }
    }
};

// The terms of a selector, without operators and quotes.
std::vector<std::string> terms_of(std::string_view text) {
    std::vector<std::string> terms(1);
    for (const char c : text) {
        if (std::string_view("&|!(),'\" ").find(c) == std::string_view::npos) {
            terms.back().push_back(c);
        } else if (!terms.back().empty()) {
            terms.emplace_back();
        }
    }
    std::erase(terms, "");
    return terms;
}

std::string near(std::string_view prefix, std::string word, const std::set<std::string>& known) {
    std::erase(word, '*');
    std::vector<std::string> candidates(known.begin(), known.end());
    std::erase(candidates, "");
    const auto found = word.empty() ? std::nullopt : closest(word, candidates);
    return found ? fmt::format("'{}{}'", prefix, *found) : "";
}

void add_near(std::vector<std::string>& found, const std::string& term, const Words& words) {
    const std::array<std::pair<std::string_view, const std::set<std::string>*>, 6> kinds{{
        {"type:", &words.types},
        {"name:", &words.names},
        {"module:", &words.modules},
        {"writes:", &words.tensors},
        {"reads:", &words.tensors},
        {"", &words.types},
    }};
    for (const auto& [prefix, known] : kinds) {
        if (term.starts_with(prefix)) {
            found.push_back(near(prefix, term.substr(prefix.size()), *known));
            break;
        }
    }
    if (term.find(':') == std::string::npos) {  // a type was meant, or so we read it
        found.push_back(near("name:", term, words.names));
        found.push_back(near("module:", term, words.modules));
        found.push_back(near("writes:", term, words.tensors));
    }
}

}  // namespace

bool selects_anything(const Graph& graph, const Selector& selector) {
    for (const auto id : graph.ops()) {
        const auto bodies = graph.op(id).subgraphs();
        if (selector(graph, id) || std::any_of(bodies.begin(), bodies.end(), [&](const auto& body) {
                return selects_anything(*body, selector);
            })) {
            return true;
        }
    }
    return false;
}

std::string selector_hint(const Graph& graph, std::string_view text) {
    Words words;
    words.add(graph);
    std::vector<std::string> found;
    for (const auto& term : terms_of(text)) {
        add_near(found, term, words);
    }
    std::erase(found, "");
    std::vector<std::string> types(words.types.begin(), words.types.end());
    const bool more = types.size() > most_types;
    types.resize(std::min(types.size(), most_types));
    const auto known = fmt::format("the model has {}{}", join(types, ", "), more ? "…" : "");
    return found.empty() ? known : fmt::format("did you mean {}? {}", join(found, " or "), known);
}

}  // namespace trocar
