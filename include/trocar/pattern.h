#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trocar/graph.h"
#include "trocar/selector.h"

#pragma GCC visibility push(default)
namespace trocar {

// Ops that follow one another: `pattern("Conv -> BatchNormalization? -> act=Relu|Clip")`. A term is
// one or several type globs with | between them, may have a name in front, and may be left out when
// a ? stands behind it. An arrow says that the op on its right reads an output of the one on its
// left. What is written inside a match is read inside it alone, unless the pattern is `shared`.
class Pattern {
public:
    struct Term {
        std::string name;  // empty: none
        std::vector<std::string> types;
        bool optional = false;
    };
    // The ops of a match, one per term; none where an optional term was left out.
    struct Match {
        std::vector<OpId> ops;
        std::vector<std::string> names;
        OpId operator[](std::string_view name) const;  // none: no such name, or left out
        OpId first() const;
        OpId last() const;
    };

    explicit Pattern(std::vector<Term> terms, std::string text);

    // Others may read what is written inside a match. For selecting, not for rewriting.
    Pattern& shared();

    // In order; no op is in two of them.
    std::vector<Match> find(const Graph& graph) const;

    // Ops that are in a match; those that are the named, the first or the last one.
    Selector all() const;
    Selector named(std::string name) const;
    Selector first() const;
    Selector last() const;

    const std::string& text() const { return text_; }

private:
    using Choice = std::function<OpId(const Match&)>;
    Selector choosing(const Choice& choice, const std::string& what) const;

    std::vector<Term> terms_;
    std::string text_;
    bool shared_ = false;
};

// Throws Error(usage) with the place.
Pattern pattern(std::string_view text);

// Calls `edit` with every match, in order; it may change the graph as it likes, and returns whether
// it did. Matches whose ops are no longer there are left out. Returns the number of edits.
std::size_t rewrite(Graph& graph, const Pattern& pattern,
                    const std::function<bool(Graph&, const Pattern::Match&)>& edit);

}  // namespace trocar
#pragma GCC visibility pop
