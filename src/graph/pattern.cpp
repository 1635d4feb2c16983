#include "trocar/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "trocar/error.h"
#include "util/text.h"

namespace trocar {

namespace {

// Finds one way to lay the terms of a pattern over ops, beginning at a given one.
class Matcher {
public:
    Matcher(const Graph& graph, const std::vector<Pattern::Term>& terms, bool shared)
        : graph_(graph), terms_(terms), shared_(shared) {}

    std::optional<Pattern::Match> from(OpId start) {
        ops_.assign(terms_.size(), OpId::none);
        if (!lay(0, OpId::none, start)) {
            return std::nullopt;
        }
        Pattern::Match match;
        match.ops = ops_;
        for (const auto& term : terms_) {
            match.names.push_back(term.name);
        }
        return match;
    }

private:
    bool fits(const Pattern::Term& term, OpId id) const {
        const auto& op = graph_.op(id);
        return std::any_of(term.types.begin(), term.types.end(), [&](const std::string& glob) {
            return glob_match(glob, op.type) || glob_match(glob, op.domain + ":" + op.type);
        });
    }

    // Puts the term at `place` on `candidate`, which reads what `before` writes, and goes on.
    bool lay(std::size_t place, OpId before, OpId candidate) {
        if (fits(terms_[place], candidate)) {
            ops_[place] = candidate;
            if (go_on(place + 1, candidate)) {
                return true;
            }
            ops_[place] = OpId::none;
        }
        // A pattern may begin with terms that are left out.
        return terms_[place].optional && before == OpId::none && place + 1 < terms_.size() &&
               lay(place + 1, before, candidate);
    }

    // The terms from `place` on, behind `last`.
    bool go_on(std::size_t place, OpId last) {
        if (place == terms_.size()) {
            return true;
        }
        for (const auto next : graph_.consumers(last)) {
            const bool used = std::find(ops_.begin(), ops_.end(), next) != ops_.end();
            if (!used && (shared_ || only_reader(last, next)) && lay(place, last, next)) {
                return true;
            }
        }
        return terms_[place].optional && go_on(place + 1, last);
    }

    bool only_reader(OpId writer, OpId reader) const {
        const auto& outputs = graph_.op(writer).outputs;
        return std::all_of(outputs.begin(), outputs.end(), [&](TensorId id) {
            if (id == TensorId::none) {
                return true;
            }
            const auto& tensor = graph_.tensor(id);
            return !tensor.is_output &&
                   std::all_of(tensor.uses.begin(), tensor.uses.end(),
                               [&](const Use& use) { return use.op == reader; });
        });
    }

    const Graph& graph_;
    const std::vector<Pattern::Term>& terms_;
    bool shared_;
    std::vector<OpId> ops_;
};

Pattern::Term parse_term(std::string_view text, std::string_view whole) {
    Pattern::Term term;
    auto rest = trim(text);
    if (rest.ends_with('?')) {
        term.optional = true;
        rest = trim(rest.substr(0, rest.size() - 1));
    }
    if (const auto equals = rest.find('='); equals != std::string_view::npos) {
        term.name = trim(rest.substr(0, equals));
        rest = trim(rest.substr(equals + 1));
    }
    for (const auto& type : split(rest, '|')) {
        term.types.emplace_back(trim(type));
        if (term.types.back().empty()) {
            throw Error(Fault::usage, fmt::format("in the pattern '{}' a type is missing", whole),
                        "write types with -> between them, as in Conv -> Relu|Clip");
        }
    }
    return term;
}

}  // namespace

OpId Pattern::Match::operator[](std::string_view name) const {
    const auto found = std::find(names.begin(), names.end(), name);
    return found == names.end() || name.empty()
               ? OpId::none
               : ops[static_cast<std::size_t>(found - names.begin())];
}

OpId Pattern::Match::first() const {
    return *std::find_if(ops.begin(), ops.end(), [](OpId id) { return id != OpId::none; });
}

OpId Pattern::Match::last() const {
    return *std::find_if(ops.rbegin(), ops.rend(), [](OpId id) { return id != OpId::none; });
}

Pattern::Pattern(std::vector<Term> terms, std::string text)
    : terms_(std::move(terms)), text_(std::move(text)) {}

Pattern& Pattern::shared() {
    shared_ = true;
    return *this;
}

std::vector<Pattern::Match> Pattern::find(const Graph& graph) const {
    std::vector<Match> matches;
    std::vector<bool> taken(graph.op_limit(), false);
    Matcher matcher(graph, terms_, shared_);
    for (const auto id : graph.ops()) {
        auto match = taken[index(id)] ? std::nullopt : matcher.from(id);
        const auto in_use = [&](OpId op) { return op != OpId::none && taken[index(op)]; };
        if (!match || std::any_of(match->ops.begin(), match->ops.end(), in_use)) {
            continue;
        }
        for (const auto op : match->ops) {
            if (op != OpId::none) {
                taken[index(op)] = true;
            }
        }
        matches.push_back(std::move(*match));
    }
    return matches;
}

// A selector is asked op by op; the matches of a graph are found once, when the first of its ops is
// asked for.
Selector Pattern::choosing(const Choice& choice, const std::string& what) const {
    struct Found {
        const Graph* graph = nullptr;
        std::set<OpId> chosen;
    };
    const auto found = std::make_shared<Found>();
    const auto test = [pattern = *this, choice, found](const Graph& graph, OpId op) {
        if (found->graph != &graph || op == graph.first()) {
            found->graph = &graph;
            found->chosen.clear();
            for (const auto& match : pattern.find(graph)) {
                if (choice) {
                    found->chosen.insert(choice(match));
                } else {
                    found->chosen.insert(match.ops.begin(), match.ops.end());
                }
            }
        }
        return found->chosen.contains(op);
    };
    return Selector(test, fmt::format("pattern:'{}'{}", text_, what));
}

Selector Pattern::all() const {
    return choosing({}, "");
}

Selector Pattern::named(std::string name) const {
    const bool known = std::any_of(terms_.begin(), terms_.end(),
                                   [&](const Term& term) { return term.name == name; });
    if (!known || name.empty()) {
        throw Error(Fault::usage,
                    fmt::format("the pattern '{}' has no term named '{}'", text_, name),
                    "write NAME=TYPE for a term");
    }
    return choosing([name](const Match& match) { return match[name]; }, ":" + name);
}

Selector Pattern::first() const {
    return choosing([](const Match& match) { return match.first(); }, ":first");
}

Selector Pattern::last() const {
    return choosing([](const Match& match) { return match.last(); }, ":last");
}

Pattern pattern(std::string_view text) {
    std::vector<Pattern::Term> terms;
    std::size_t at = 0;
    while (true) {
        const auto arrow = text.find("->", at);
        terms.push_back(parse_term(text.substr(at, arrow - at), text));
        if (arrow == std::string_view::npos) {
            break;
        }
        at = arrow + 2;
    }
    if (std::all_of(terms.begin(), terms.end(), [](const auto& term) { return term.optional; })) {
        throw Error(Fault::usage,
                    fmt::format("the pattern '{}' may leave out all of its ops", text));
    }
    return Pattern(std::move(terms), std::string(text));
}

std::size_t rewrite(Graph& graph, const Pattern& pattern,
                    const std::function<bool(Graph&, const Pattern::Match&)>& edit) {
    std::size_t edits = 0;
    for (const auto& match : pattern.find(graph)) {
        const bool whole = std::all_of(match.ops.begin(), match.ops.end(), [&](OpId id) {
            return id == OpId::none || graph.contains(id);
        });
        edits += whole && edit(graph, match) ? 1 : 0;
    }
    return edits;
}

}  // namespace trocar
