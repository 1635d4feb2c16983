#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/tensorflow/node_reader.h"

namespace trocar::tensorflow {

// The value of a variable by what its op says of it, and what it is: "parameter" or "buffer".
struct Variable {
    Constant constant;
    const char* kind = "parameter";
};
using FindVariable = std::function<std::optional<Variable>(const Node&)>;

// Makes a Graph of nodes. Const ops become constants; so do the ops of variables whose value is
// known, with the metadata `variable`. Nodes are put in order; an edge that closes a loop
// (NextIteration to Merge) is left out and noted in the metadata.
class GraphReader {
public:
    // `results`: how many results all nodes may have yet; a number in a name costs a file nothing.
    // It must outlive the reader, and goes down.
    GraphReader(FilePtr file, FindVariable variables, std::size_t& results)
        : file_(std::move(file)), variables_(std::move(variables)), allowed_(&results) {}

    // The graph of a model with all its nodes: Placeholder ops are inputs, what no op reads is an
    // output.
    Graph read(std::vector<Node> nodes);
    // The part of it that `outputs` ("name:0") are computed by, from `inputs`, which are names of
    // nodes.
    Graph read_part(std::vector<Node> nodes, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs);

    // The body of a function: its arguments and what it returns, by name.
    struct Argument {
        std::string name;
        Type type;
    };
    Graph read_body(std::vector<Node> nodes, const std::vector<Argument>& arguments,
                    const std::vector<std::string>& results);

    // Nodes that the last part or body was read without: no output is computed by them.
    std::size_t left_out() const { return left_out_; }

private:
    // Where a result of a node is: "name:arg:2" or "name:2".
    struct Reference {
        std::string node;
        std::string argument;
        std::size_t number = 0;
    };
    Reference parse(const std::string& text) const;
    void keep_needed(std::vector<Node>& nodes, const std::vector<std::string>& outputs);
    void prepare(const std::vector<Node>& nodes);
    Graph build(std::vector<Node>& nodes, const std::vector<std::string>& inputs);
    void count_results(const std::vector<Node>& nodes, const std::vector<std::string>& outputs);
    void add_results(Graph& graph, Node& node);
    bool add_constant(Graph& graph, Node& node);
    void add_input(Graph& graph, Node& node);
    void append(Graph& graph, std::vector<Node>& nodes);
    std::vector<std::size_t> order(const std::vector<Node>& nodes) const;
    std::optional<TensorId> find(const std::string& reference) const;
    TensorId resolve(const Node* reader, const std::string& reference) const;
    void set_outputs(Graph& graph, const std::vector<std::string>& outputs) const;
    [[noreturn]] void fail(const Node& node, std::string_view what) const;

    FilePtr file_;
    FindVariable variables_;
    std::size_t* allowed_;
    bool in_function_ = false;
    std::size_t left_out_ = 0;
    std::unordered_map<std::string, std::size_t> by_name_;  // of nodes
    // Of each node, the arguments that are read of it in order, and how many results each has.
    std::vector<std::vector<std::pair<std::string, std::size_t>>> results_;
    std::unordered_map<std::string, TensorId> values_;  // "name:0", "name:arg:0", arguments
    std::vector<bool> is_op_;                           // of each node, else an input or a constant
};

}  // namespace trocar::tensorflow
