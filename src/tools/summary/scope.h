#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trocar/counting.h"
#include "trocar/model.h"

namespace trocar::summary {

// Where a shape was learnt.
enum class Known { no, declared, constant, run };

// What is known of one tensor.
struct Fact {
    Type::Kind kind = Type::Kind::unknown;
    DType dtype = DType::undefined;
    std::optional<Shape> shape;
    Known known = Known::no;
    const Constant* constant = nullptr;  // through Identity and Constant ops
    std::string text;  // of a tensor without a shape, and of other kinds: the type
};

struct Scope;

// A graph that belongs to an op: a branch, the body of a loop, the body of a function.
struct Body {
    std::string label;                   // name of the attribute, or of the function
    const Function* function = nullptr;  // whose body it is; nullptr: a subgraph
    std::unique_ptr<Scope> scope;
    bool taken = true;                   // false: a branch that the run did not go into
    std::optional<std::uint64_t> times;  // how often the op runs it; absent: unknown
};

// A graph and what is known of its tensors, by handle; with the bodies of its ops. Refers to the
// graph.
struct Scope {
    const Graph* graph = nullptr;
    std::string dialect;                 // of the model
    std::shared_ptr<const Graph> owner;  // of a graph made for this call of a function
    const Scope* outer =
        nullptr;  // the graph around; nullptr for the model's graph and for functions
    std::vector<Fact> tensors;
    std::shared_ptr<std::map<const Constant*, Role>> roles;  // of the model's, where the file tells
    std::deque<Constant> made;          // what Constant ops give as plain attributes
    std::vector<bool> passes_constant;  // by OpId: its outputs are constants, it is no layer
    std::map<OpId, std::vector<Body>> bodies;
    std::map<OpId, std::string> failures;  // why an op did not run
    std::map<OpId, std::int64_t> limits;   // of the iterations of loops, as a run was given them

    Fact& fact(TensorId id) { return tensors[index(id)]; }
    const Fact& fact(TensorId id) const { return tensors[index(id)]; }
    const std::vector<Body>* bodies_of(OpId op) const;
    std::optional<Role> role_of(const Constant& constant) const;  // as the file gives it
};

// Does the op run one of its bodies (If, cond)?
bool is_choice(const Scope& scope, const Op& op);

// What the file says: declared types, constants, bodies of control flow and functions. A function
// that calls itself is followed no further.
std::unique_ptr<Scope> read_scope(const Model& model);

// Brings what a body captures and what a function is given up to date with the graph around it, and
// the number of times bodies run where shapes tell. After a run.
void settle(Scope& scope);

// A value that is known from a file as a fact.
Fact fact_of(const Type& type);
Fact fact_of(const Constant& constant);

// The op with its tensors, as counting takes it.
OpFacts facts_of(const Scope& scope, OpId op);

// The shape as a report shows it: "1x3x224x224", with the dtype where it is not f32; the declared
// type where there is no shape.
std::string text_of(const Fact& fact);

}  // namespace trocar::summary
