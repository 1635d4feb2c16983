#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trocar/difference.h"
#include "trocar/model.h"

#pragma GCC visibility push(default)
namespace trocar {

// Which op of one graph is which of another: by OpId, OpId::none where there is none.
struct OpMatches {
    std::vector<OpId> to_b;  // of an op of A
    std::vector<OpId> to_a;  // of an op of B
};
// By what ops compute and what stands around them, in both directions, and by name; a graph in
// which everything has another name matches fully. In time nearly linear in the size of the graphs.
OpMatches match_ops(const Graph& a, const Graph& b);

struct GraphDiffOptions {
    Tolerance tolerance = {};  // within it, constants count as the same
    bool names = false;        // other names of ops and tensors inside of a graph are differences
    bool metadata = true;      // so is what a file says besides
    bool types = true;         // and the declared types of tensors
    bool constants = true;     // and the elements of constants
    std::function<bool()> cancel = {};  // asked now and then; true: end early
};

// How two models differ. A "scope" says in which body or function; empty: in the main graph.
struct GraphDiff {
    struct Lone {  // an op that the other model does not have
        std::string scope, op, type;
        std::vector<std::string> outputs;
    };
    struct Changed {
        std::string scope, op, type;
        std::string name_b;             // where it has another one
        std::vector<std::string> what;  // a text for each difference
    };
    struct Elements {  // of a constant
        std::string scope, tensor, name_b, op;
        std::string type_a, type_b;
        std::optional<Difference> difference;  // absent: other type or shape, or not numbers
        std::size_t changed = 0;               // elements with other bits; 0 where not compared
    };
    struct Fact {                       // of a tensor, an input or output, or the model
        std::string scope, what, a, b;  // empty: it has none
    };

    std::vector<Lone> removed;  // only in A
    std::vector<Lone> added;    // only in B
    std::vector<Changed> changed;
    std::vector<Elements> constants;
    std::vector<Fact> types;
    std::vector<Fact> interface;  // inputs and outputs
    std::vector<Fact> metadata;
    std::size_t ops_a = 0;
    std::size_t ops_b = 0;
    std::size_t matched = 0;
    std::size_t same_constants = 0;
    std::size_t within = 0;  // constants that differ, but not beyond the tolerance
    std::size_t renamed_ops = 0;
    std::size_t renamed_tensors = 0;
    bool complete = true;  // false: it was cancelled

    bool same(const GraphDiffOptions& options) const;
};
// Throws Error(unsupported) on models of different dialects.
GraphDiff diff_models(const Model& a, const Model& b, const GraphDiffOptions& options = {});

}  // namespace trocar
#pragma GCC visibility pop
