#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trocar::mapping {

// What a rule file says, as a tree. docs/mapping.md describes the language.

struct Expression;
using Child = std::unique_ptr<Expression>;

struct Expression {
    enum class Kind {
        none,
        truth,          // integer
        integer,        // integer
        number,         // number
        text,           // text
        variable,       // text
        attribute,      // text: its name; target: the output of the op that has it, "" the last op
        list,           // children
        comprehension,  // children: element, list; text: the variable
        choice,         // children: condition, then, otherwise
        binary,         // text: the operator; children
        unary,          // text; child
        index,          // children: list, index
        slice,          // children: list, from, to (either may be nullptr)
        spread,         // child: a list of inputs
        call,           // text: a function; children
        op,             // text: its type; children: inputs; named: attributes; count: outputs
    };
    Kind kind = Kind::none;
    int line = 0;
    std::int64_t integer = 0;
    double number = 0;
    std::string text;
    std::string target;
    std::vector<Child> children;
    std::vector<std::pair<std::string, Child>> named;
    Child count;  // of outputs; nullptr: one
};

// An op that is looked for: `(y, z) = TYPE(a, b?, c...)`.
struct MatchedOp {
    struct Place {
        std::string name;  // "_": anything
        bool optional = false;
        bool rest = false;  // all from here on
    };
    int line = 0;
    std::vector<std::string> types;  // any of them
    bool unordered = false;          // its two inputs may be swapped
    std::vector<Place> inputs;
    std::vector<Place> outputs;
};

struct Statement {
    enum class Kind { let, require };
    Kind kind = Kind::let;
    int line = 0;
    std::vector<std::string> names;  // let: several where a list is taken apart
    Child value;
    Child reason;  // of `require`, nullptr: none
};

// What a tensor of a test is, in one of the cases.
struct TestTensor {
    bool absent = false;  // an optional input that is not there
    std::string dtype;
    Child shape;     // nullptr: of an output
    Child elements;  // nullptr: drawn at random
};
// One line of a test: what an input, an attribute or the op itself is, in turn.
struct TestField {
    int line = 0;
    std::string name;  // of a tensor, or "@attribute", "y@attribute"; "": the type of the last op
    bool constant = false;
    std::vector<TestTensor> tensors;  // alternatives
    std::vector<Child> values;        // of an attribute: alternatives
    std::vector<std::string> types;   // of the op: alternatives
    Child scale;                      // quantization of a tensor
    Child zero_point;
};
struct RuleTest {
    int line = 0;
    std::vector<TestField> fields;
    double tolerance = 1e-5;  // relative to the largest element
    bool declined = false;    // the rule must not apply
};

struct Rule {
    std::string name;
    int line = 0;
    std::vector<MatchedOp> match;  // the last one is the anchor
    bool raw = false;              // reads quantised tensors as the integers they are
    std::vector<Statement> body;
    std::vector<RuleTest> tests;
    std::string untested;  // why it has none
};

struct Definition {
    std::string name;
    int line = 0;
    std::vector<std::string> parameters;
    Child value;
};

// An op of the target dialect that a change of layout can move through, and what of it counts axes.
struct LayoutOp {
    std::string type;
    std::string axis;          // attribute that names axes; "" none
    std::optional<int> axes;   // input that names axes
    std::vector<int> sizes;    // inputs with a number for each axis
    std::optional<int> pairs;  // input with two numbers for each axis: all firsts, all seconds
    std::optional<int> rows;   // input with two numbers for each axis, in rows
    std::string keep;          // attribute that must be 1, where axes vanish otherwise
};
struct Layout {
    std::string transpose;    // its type; empty: layouts are left as they are
    std::string attribute;    // that holds the order of axes,
    std::optional<int> slot;  // or the input that does, as i32
    std::vector<LayoutOp> through;
};

// An activation that the op before it can do itself, by an attribute that says "NONE" otherwise.
struct Fused {
    std::string attribute;                           // empty: none can
    std::map<std::string, std::string> activations;  // by type: what the attribute says
    std::vector<std::string> into;                   // types of the ops
};

// An op of the target dialect that computes on integers as well: int8 with one scale, but for
// weights, which have one for each channel and no zero point.
struct IntegerOp {
    enum class Kind {
        free,    // inputs and outputs have scales of their own
        same,    // the output has numbers of its first input alone, and so its scale
        joined,  // all inputs have the scale of the output
        fixed,   // the output has this one scale
    };
    std::string type;
    Kind kind = Kind::free;
    std::optional<int> weights;  // an input that is constant; `axis`: of its channels
    std::size_t axis = 0;
    std::optional<int> bias;    // an input that is constant, in 32 bits
    std::optional<int> number;  // an input that is one number among the others
    bool largest = false;       // only the largest numbers count
    double scale = 0;           // of a fixed output
    std::int64_t zero_point = 0;
};
struct Integers {
    std::string quantize;  // types of ops; empty: integers are left as they are
    std::string dequantize;
    std::vector<IntegerOp> ops;
};

struct RuleFile {
    std::string file;
    std::string from;
    std::string to;
    std::int64_t version = 0;  // of the target's op set
    std::map<std::string, Definition> definitions;
    std::vector<std::unique_ptr<Rule>> rules;
    Layout layout;
    Fused fused;
    Integers integers;
    bool needs_types = false;  // of all tensors
    std::string quantize;      // types of the target's ops that quantise and dequantise
    std::string dequantize;
    std::string copy;      // type of the target's op that passes its input on
    std::string untested;  // why its rules have no tests, where they do not say themselves
};

// Throws Error(input) with file and line.
RuleFile parse_rules(std::string_view text, const std::string& file);

}  // namespace trocar::mapping
