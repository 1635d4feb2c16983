#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "formats/pt2/writes.h"
#include "trocar/graph.h"

namespace trocar::pt2 {

// Makes a Graph of a graph in a file.
//
// An op's arguments that are tensors, or numbers known only at run time, become its inputs; all
// others become attributes. The attribute "inputs" says which argument each input is: "weight",
// or "tensors[1]" for one of a list. docs/formats/pt2.md has the whole convention.
class GraphReader {
public:
    // `graph` is the file's; names of its values come from there.
    GraphReader(const JsonPlace& place, const Json& graph, int depth);

    // A value of the graph that no op writes: an input, or a constant under another name.
    void define(const std::string& name, TensorId id);
    bool defined(const std::string& name) const { return values_.contains(name); }

    // Adds the graph's inputs as they stand, for graphs without a signature.
    void add_inputs();
    TensorId add_input(const std::string& name);
    void add_ops();
    // The tensors that arguments of the graph's outputs name; others go to metadata.
    std::vector<TensorId> output(const Json& argument, std::size_t number);
    void add_outputs();

    Graph& graph() { return graph_; }
    Graph finish();

    // The name of a value that an argument stands for; nothing for plain values.
    static std::optional<std::string> value_name(const JsonPlace& place, const Json& argument);

private:
    struct Value {
        Type type;
        std::vector<Property> metadata;
    };
    // An op while its arguments are read.
    struct Draft {
        OpSpec spec;
        std::vector<std::string> slots;    // the argument of each input
        std::vector<std::string> returns;  // likewise of each output
        bool grouped = false;              // some output is one of a list
        std::size_t nones = 0;             // trailing inputs that are left out
    };

    Value value_of(const std::string& name) const;
    TensorId add_value(const std::string& name);
    TensorId resolve(const JsonPlace& place, const std::string& name) const;

    void add_op(const Json& node, std::size_t number);
    // Readers of what a draft writes in place read its output from now on.
    void follow_memory(Draft& draft, std::size_t number);
    void read_target(const JsonPlace& place, const std::string& target, OpSpec& spec) const;
    void add_argument(const JsonPlace& place, Draft& draft, const std::string& name,
                      const Json& argument);
    void add_list(const JsonPlace& place, Draft& draft, const std::string& name,
                  const std::string& kind, const Json& list);
    void add_symbols(const JsonPlace& place, Draft& draft, const std::string& name,
                     const Json& list);
    void add_plain(const JsonPlace& place, Draft& draft, const std::string& name,
                   const std::string& kind, const Json& value);
    void add_graph(const JsonPlace& place, Draft& draft, const std::string& name,
                   const Json& value);
    void add_input(Draft& draft, const std::string& slot, TensorId id) const;
    static void set_attribute(Draft& draft, const std::string& name, Attribute::Value value);
    void add_return(const JsonPlace& place, Draft& draft, const Json& argument, std::size_t number);

    const JsonPlace& place_;
    const Json& json_;
    int depth_;
    Graph graph_;
    std::unordered_map<std::string, TensorId> values_;
    Writes writes_;
};

}  // namespace trocar::pt2
