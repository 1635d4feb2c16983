#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "trocar/error.h"
#include "trocar/selector.h"
#include "util/text.h"

namespace trocar {

namespace {

// The words of a selector's text: what stands in its terms behind "type:", "name:" and the like.
std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    std::string word;
    const auto end = [&] {
        const auto colon = word.rfind("type:", 0) == 0 || word.rfind("name:", 0) == 0 ||
                                   word.rfind("module:", 0) == 0 || word.rfind("writes:", 0) == 0 ||
                                   word.rfind("reads:", 0) == 0
                               ? word.find(':') + 1
                               : 0;
        std::erase(word, '*');
        if (word.size() > colon) {
            words.push_back(word.substr(colon));
        }
        word.clear();
    };
    for (const char c : text) {
        if (std::string_view(" &|!(),'").find(c) != std::string_view::npos) {
            end();
        } else {
            word += c;
        }
    }
    end();
    return words;
}

// What ops can be chosen by.
void collect(const Graph& graph, std::set<std::string>& names) {
    for (const auto id : graph.ops()) {
        const auto& op = graph.op(id);
        names.insert(op.type);
        names.insert(op.name);
        names.insert(op.origin.module);
        for (const auto output : op.outputs) {
            if (output != TensorId::none) {
                names.insert(graph.tensor(output).name);
            }
        }
        for (const auto& body : op.subgraphs()) {
            collect(*body, names);
        }
    }
    names.erase("");
}

}  // namespace

std::vector<std::string> near_matches(const Graph& graph, const Selector& selector) {
    constexpr std::size_t most = 3;
    std::set<std::string> names;
    collect(graph, names);
    std::vector<std::string> near;
    for (const auto& word : words_of(selector.text())) {
        std::vector<std::string> candidates(names.begin(), names.end());
        while (near.size() < most) {
            const auto found = closest(word, candidates);
            if (!found) {
                break;
            }
            std::erase(candidates, *found);
            if (std::find(near.begin(), near.end(), *found) == near.end()) {
                near.push_back(*found);
            }
        }
    }
    return near;
}

std::vector<OpId> select_some(const Graph& graph, const Selector& selector, const char* option) {
    auto ops = select(graph, selector);
    if (ops.empty()) {
        const auto near = near_matches(graph, selector);
        throw Error(Fault::usage,
                    fmt::format("no op of the model matches {} {}", option, selector.text()),
                    near.empty() ? "`trocar summary` lists its ops"
                                 : fmt::format("near to it: {}", join(near, ", ")));
    }
    return ops;
}

}  // namespace trocar
